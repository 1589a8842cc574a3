"""What is asked, refused and changed in the rules stands in the audit, and in the log between the
records.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import CREATE, READ, Reader, reader, settings
from tests.support.fault_points import points
from tests.support.program import Program, connected, replace_text, wait_until
from tests.support.watching import alone
from yolofs.daemon.rpc.ask_messages import WarningsInfo
from yolofs.system.clock import coarse_clock_ns

pytestmark = pytest.mark.mount


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    project = tmp_path_factory.mktemp("w") / "p"
    (project / "secret").mkdir(parents=True)
    (project / "secret/a").write_text("a\n")
    (project / "closed").write_text("closed\n")
    program = Program(project)
    program.start_session()
    settings(program)
    with (project / ".yolofs.toml").open("a") as file:
        file.write('"closed" = "deny"\n')
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def notes(yolofs: Program) -> list[dict[str, Any]]:
    path = yolofs.session / "audit.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def wait_for_asks(yolofs: Program, count: int) -> None:
    """Wait until there are so many, and it is known who asks."""

    def described() -> list[dict[str, Any]]:
        return [ask for ask in yolofs("asks", "--json").json["asks"] if ask["process"]["command"]]

    wait_until(lambda: len(described()) == count, f"{count} asks")


def test_every_ask_is_noted_with_its_answer(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as blocked:
        wait_for_asks(yolofs, 1)
        yolofs("answer", "1", "allow")
        blocked.end()
    (note,) = notes(yolofs)
    assert (note["kind"], note["path"], note["operation"]) == ("ask", f"{yolofs.project}/secret/a", "read")
    assert note["rule"] == {"key": f"{yolofs.project}/secret", "state": "ask", "source": ".yolofs.toml:3"}
    assert note["process"]["pid"] == blocked.process.pid
    assert note["process"]["command"][-1] == str(view / "secret/a")
    assert note["process"]["parent"] == os.getpid()
    assert note["outcome"] == "allowed"
    assert note["by"].startswith("yolofs answer, process ")
    assert note["waited_ms"] > 0
    assert (yolofs.session / "audit.jsonl").stat().st_mode & 0o777 == 0o600


ASKED = [
    ("secret/a", READ),
    ("secret/new", CREATE),
    ("secret/a", "import os, sys; os.unlink(sys.argv[1])"),
    ("secret/d", "import os, sys; os.chdir(os.path.dirname(sys.argv[1])); os.mkdir('d')"),
]


@pytest.mark.parametrize(
    ("name", "script", "answer"),
    points([(*asked, answer) for asked in ASKED for answer in ("--always", "--session")], "asked", some=4),
)
def test_an_ask_that_was_denied_is_not_noted_as_a_refusal_too(
    yolofs: Program, view: Path, name: str, script: str, answer: str
) -> None:
    def noted() -> list[str]:
        yolofs("status")  # what is refused is noted by another thread; here it is
        return [note["kind"] for note in notes(yolofs) if note["kind"] != "rule"]

    with reader(view / name, script=script) as blocked:
        wait_for_asks(yolofs, 1)
        yolofs("answer", "1", "deny", answer)
        assert "Error" in blocked.end()[1]
    assert noted() == ["ask"]
    with connected(yolofs) as client:
        allowed = client.accesses()
    assert yolofs("rule", "test", "--json").json["accesses"] == 1, (allowed, notes(yolofs))
    assert "Error" in Reader(view / name, script=script).end()[1]
    assert noted() == ["ask", "refusal"]


def test_an_ask_that_a_rule_settles_is_not_noted_as_a_refusal_too(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as blocked:
        wait_for_asks(yolofs, 1)
        yolofs("rule", "deny", "secret")
        assert "PermissionError" in blocked.end()[1]
    yolofs("status")
    assert [note["kind"] for note in notes(yolofs)] == ["rule", "ask"]


def test_the_log_tells_how_many_got_an_answer(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as first, reader(view / "secret/a") as second:
        wait_until(lambda: [ask["requesters"] for ask in yolofs("asks", "--json").json["asks"]] == [2], "two of them")
        yolofs("answer", "1", "allow")
        first.end()
        second.end()
    (line,) = [line for line in yolofs("log", "-v").out.splitlines() if " ask " in line]
    assert " and 1 more: allowed by yolofs answer, process " in line


def test_refusals_that_are_alike_are_counted(yolofs: Program, view: Path) -> None:
    for _ in range(5):
        assert "PermissionError" in Reader(view / "closed").end()[1]
    with pytest.raises(PermissionError):
        (view / "closed").write_text("")
    wait_until(lambda: len(notes(yolofs)) == 2, "noted")
    assert [(note["operation"], note["count"]) for note in notes(yolofs)] == [("read", 1), ("write", 1)]
    yolofs("unmount")
    assert [(note["operation"], note["count"]) for note in notes(yolofs)][2:] == [("read", 4)]
    assert notes(yolofs)[0]["process"]["name"] == "python"


def test_reading_the_log_writes_down_all_refusals_so_far(yolofs: Program, view: Path) -> None:
    """They are written now and then, so as not to fill the disk, and before each marker: so they
    are in their place.
    """

    def refuse(times: int) -> None:
        for _ in range(times):
            with pytest.raises(PermissionError):
                (view / "closed").read_text()

    refuse(5)
    lines = yolofs("log", "-v").out.splitlines()
    assert [line.split()[2:4] for line in lines] == [["refusal", "read"]] * 2
    assert "(4 times)" in lines[1]
    refuse(2)
    assert yolofs("rule", "test", "--json").json["refused"] == 7
    refuse(3)
    yolofs("snapshot", "between")
    refuse(4)
    told = [line for line in yolofs("log", "-v").out.splitlines() if "times)" in line or "between" in line]
    assert [word in line for word, line in zip(["(4 ", "(2 ", "(3 ", "between", "(4 "], told, strict=True)] == [
        True
    ] * 5


def test_refusals_that_are_counted_later_stand_in_their_place_in_the_log(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for _ in range(3):
            with pytest.raises(PermissionError):
                (view / "closed").read_text()
        yolofs("rule", "deny", "other")  # whose note is written at once, and that of the count at the end
    told = [line for line in yolofs("log", "-v").out.splitlines() if "closed" in line or "other" in line]
    assert [word in line for word, line in zip(["refusal", "(2 times)", "other"], told, strict=True)] == [True] * 3


INTERLEAVED = """
import os, sys
view = sys.argv[1]
for number in range(5):
    open(f"{view}/made{number}", "x").close()
    try:
        open(f"{view}/closed{number}")
    except PermissionError:
        pass
"""


def test_notes_stand_between_the_records_however_quickly_these_follow(yolofs: Program) -> None:
    """The times of records move by ticks, in which a program does many things."""
    with (yolofs.project / ".yolofs.toml").open("a") as file:
        file.writelines(f'"closed{number}" = "deny"\n' for number in range(5))
    for number in range(5):
        (yolofs.project / f"closed{number}").touch()
    with yolofs.mounted() as view:
        subprocess.run([sys.executable, "-c", INTERLEAVED, view], check=True)
        yolofs("snapshot", "here")
    expected = [word for number in range(5) for word in (f"made{number}", f"closed{number}")]
    for range_text in ("all", "base..here", ""):
        lines = yolofs("log", "-v", *filter(None, [range_text])).out.splitlines()
        found = [word for line in lines for word in expected if f"{word} " in f"{line} " or f"/{word}," in line]
        assert found == expected, lines
    assert "closed" not in yolofs("log", "-v", "here..").out


def test_an_audit_that_cannot_be_written_is_told(yolofs: Program) -> None:
    path = yolofs.session / "audit.jsonl"
    with yolofs.mounted(expected_in_log=("audit.jsonl cannot be written",)) as view:
        path.unlink(missing_ok=True)
        path.mkdir()
        with pytest.raises(PermissionError):
            (view / "closed").read_text()
        wait_until(lambda: "audit.jsonl cannot be written: Is a directory" in yolofs("status").err, "the warning")
        path.rmdir()
        assert "audit" not in yolofs("status").err
        yolofs("rule", "deny", "other")
    assert [note["kind"] for note in map(json.loads, path.read_bytes().splitlines())] == ["rule"]


def test_watchers_are_told_of_an_audit_that_cannot_be_written_and_when_it_can_again(yolofs: Program) -> None:
    path = yolofs.session / "audit.jsonl"
    path.mkdir()
    warning = ".yolofs/audit.jsonl cannot be written: Is a directory"
    with yolofs.mounted(expected_in_log=(warning,)) as view, connected(yolofs) as client:
        client.watch()
        with pytest.raises(PermissionError):
            (view / "closed").read_text()
        told = client.next_event()
        assert isinstance(told, WarningsInfo)
        assert told.warnings == client.info().warnings
        assert told.warnings[0].startswith(warning)
        with alone(yolofs, "--deny-all") as process:
            assert process.stderr is not None
            assert warning in process.stderr.readline().decode()
        path.rmdir()
        assert client.next_event() == WarningsInfo(())


def test_rules_that_answers_make_are_noted_and_last_or_not(yolofs: Program) -> None:
    for number, decision, lifetime in (("1", "deny", "--session"), ("2", "allow", "--always")):
        with yolofs.mounted() as view, reader(view / "secret/a") as blocked:
            wait_for_asks(yolofs, 1)
            yolofs("answer", number, decision, lifetime, "--scope", "secret")
            blocked.end()
    with yolofs.mounted() as view:
        assert Reader(view / "secret/a").end() == ("a\n", "")
    made = [(note["key"], note["state"], note["before"]) for note in notes(yolofs) if note["kind"] == "rule"]
    assert made == [(f"{yolofs.project}/secret", "deny", None), (f"{yolofs.project}/secret", "write-ask", None)]


@pytest.mark.parametrize("is_mounted", [True, False])
def test_rules_that_commands_and_files_change_are_noted(yolofs: Program, is_mounted: bool) -> None:
    def noted(count: int) -> list[tuple[str, str | None, str | None, str]]:
        wait_until(lambda: len(notes(yolofs)) == count, f"{count} notes")
        return [(note["key"], note["state"], note["before"], note["source"]) for note in notes(yolofs)]

    with yolofs.mounted() if is_mounted else contextlib.nullcontext():
        yolofs("rule", "deny", "secret")
        yolofs("rule", "deny", "secret")
        yolofs("rule", "allow", "secret")
        yolofs("rule", "unset", "secret")
        key = f"{yolofs.project}/secret"
        assert noted(3) == [
            (key, "deny", None, ".yolofs/rules.toml:5"),
            (key, "allow", "deny", ".yolofs/rules.toml:5"),
            (key, None, "allow", ".yolofs/rules.toml:5"),
        ]
        if is_mounted:
            path = yolofs.project / ".yolofs.toml"
            replace_text(path, path.read_text().replace('"closed" = "deny"', '"closed" = "hidden"'))
            assert noted(4)[3:] == [(f"{yolofs.project}/closed", "hidden", "deny", ".yolofs.toml:4")]


def test_the_log_shows_asks_refusals_and_records_in_the_order_of_time(yolofs: Program, view: Path) -> None:
    (view / "new").touch()
    with reader(view / "secret/a") as blocked:
        wait_for_asks(yolofs, 1)
        yolofs("answer", "1", "deny")
        blocked.end()
    yolofs("snapshot", "first")
    Reader(view / "closed").end()
    wait_until(lambda: len(notes(yolofs)) == 2, "noted")
    wait_until(lambda: coarse_clock_ns() > notes(yolofs)[1]["time_ns"], "tick of the clock of records")
    (view / "newer").touch()
    shown = yolofs("log", "--json").json["records"]
    assert [item["kind"] for item in shown] == ["stage", "ask", "snapshot", "refusal", "stage"]
    assert [item["time_ns"] for item in shown] == sorted(item["time_ns"] for item in shown)
    assert shown[1]["outcome"] == "denied"
    assert shown[3]["path"] == str(yolofs.project / "closed")
    assert [item["kind"] for item in yolofs("log", "1..", "--json").json["records"]] == ["refusal", "stage"]
    assert [item["kind"] for item in yolofs("log", "0..1", "--json").json["records"]] == ["stage", "ask", "snapshot"]
    assert [item["kind"] for item in yolofs("log", "--json", "--", "secret").json["records"]] == ["ask"]
    lines = yolofs("log", "-v").out.splitlines()
    assert len(lines) == 5
    assert f"  ask       read {yolofs.project}/secret/a, python" in lines[1]
    assert ": denied by yolofs answer, process " in lines[1]
    assert lines[3].endswith(f': {yolofs.project}/closed is "deny" (.yolofs.toml:4)')


def test_after_a_commit_the_log_tells_it_apart_what_was_before(yolofs: Program, view: Path) -> None:
    Reader(view / "closed").end()
    (view / "new").touch()
    wait_until(lambda: len(notes(yolofs)) == 1, "noted")
    yolofs("commit", "--yes")
    records = yolofs("log", "--json").json["records"]
    assert [(record["kind"], record["commit"]) for record in records] == [("refusal", 1), ("stage", 1), ("commit", 1)]
    assert [note["kind"] for note in notes(yolofs)] == ["refusal", "journal"]


def test_names_of_any_bytes_are_noted_and_shown_harmlessly(yolofs: Program, view: Path) -> None:
    name = os.fsdecode(b"\xff\x1b[2J\n")
    (yolofs.project / "secret" / name).touch()
    with reader(view / "secret" / name) as blocked:
        wait_for_asks(yolofs, 1)
        yolofs("answer", "1", "allow")
        blocked.end()
    assert notes(yolofs)[0]["path"].endswith("/secret/%FF%1B%5B2J%0A")
    assert '/secret/\\377\\033[2J\\n"' in yolofs("log", "-v").out
    assert "\x1b" not in yolofs("log", "-v").out
