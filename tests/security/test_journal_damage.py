"""A journal that was damaged between two commands: what is said, by whom, for how long; and nothing
is silent.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Done, Program, connected, kill, wait_until
from tests.property.core_driver import CoreDriver

pytestmark = pytest.mark.mount

NAMES = ("one", "two", "three", "four", "five")
STORED = Path(__file__).parents[1] / "fixtures/journal-1"
"""A session's journal of version 1, and the sum of its parts."""


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Return the program in a project with a session that has staged five files, and is not
    mounted.
    """
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("a\n")
    program = Program(project)
    program("init")
    view = CoreDriver(os.fsencode(project))
    for name in NAMES:
        view.create(name.encode(), f"{name}\n".encode(), 0o644)
    view.close()
    return program


def stage(program: Program, *names: str) -> None:
    with program.mounted() as view:
        for name in names:
            (view / name).write_text(f"{name}\n")


def journal_of(program: Program) -> Path:
    return program.session / "journal"


def lines_of(program: Program) -> list[bytes]:
    return journal_of(program).read_bytes().splitlines(keepends=True)


def rewrite(program: Program, lines: list[bytes]) -> None:
    journal_of(program).write_bytes(b"".join(lines))


def tear(program: Program, tail: bytes = b"S 1767225600123456789 torn 7 #12") -> int:
    """Leave a torn tail; return the line that it stands on."""
    line = len(lines_of(program)) + 1
    with journal_of(program).open("ab") as file:
        file.write(tail)
    return line


def about_cut(text: str) -> list[str]:
    return [line for line in text.splitlines() if "tail was torn" in line]


def finding(program: Program, check: str, code: int = 0) -> dict[str, str]:
    """Return what doctor finds; all findings have different names."""
    document = program("doctor", "--json", code=code).json
    found: dict[str, dict[str, str]] = {one["check"]: one for one in document["findings"]}
    return found.get(check, {})


def mount(program: Program) -> Done:
    return program("mount", "--root", ".")


# ---- a torn tail


def test_a_mount_that_cuts_says_what_where_and_what_next_and_so_do_log_status_and_doctor(yolofs: Program) -> None:
    line = tear(yolofs)
    offset = journal_of(yolofs).stat().st_size - 32
    said = mount(yolofs)
    try:
        (told,) = about_cut(said.err)
        assert f"32 bytes (1 record) from line {line} (byte {offset}) on" in told
        assert str(yolofs.session / "journal.torn") in told
        assert "yolofs doctor --acknowledge" in told
        sentence = told.removeprefix("warning: ")
        (logged,) = about_cut(yolofs.log)
        assert logged.endswith(sentence)
        assert " WARNING " in logged
        assert about_cut(yolofs("status").err) == [told]
        status = yolofs("status", "--json").json
        assert [one for one in status["warnings"] if "torn" in one] == [sentence]
        (cut,) = status["cuts"]
        assert cut.pop("time_ns") > 0
        assert cut == {
            "kind": "torn",
            "line": line,
            "offset": offset,
            "bytes": 32,
            "records": 1,
            "kept_in": str(yolofs.session / "journal.torn"),
        }
        found = finding(yolofs, "cut")
        assert (found["level"], found["message"]) == ("warn", sentence.rsplit("; ", 1)[0])
        assert "yolofs doctor --acknowledge" in found["advice"]
    finally:
        yolofs("unmount")


def test_run_says_it_when_it_starts_the_daemon_that_cuts_and_once_only(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    yolofs("init")
    yolofs("run", "--", "touch", "one")
    yolofs("unmount")
    line = tear(yolofs)
    assert f"from line {line} " in about_cut(yolofs("run", "--", "true").err)[0]
    assert about_cut(yolofs("run", "--", "true").err) == []
    yolofs("unmount")
    assert about_cut(yolofs("run", "--", "true").err) == []
    assert len(about_cut(yolofs("status").err)) == 1
    yolofs("unmount")


@pytest.mark.parametrize(
    "words", [("snapshot", "s"), ("travel", "0"), ("commit", "--yes"), ("abort", "--yes")], ids=lambda words: words[0]
)
def test_a_command_that_cuts_without_a_mount_says_so(yolofs: Program, words: tuple[str, ...]) -> None:
    tear(yolofs)
    assert len(about_cut(yolofs(*words).err)) == 1
    assert b"S 1767225600123456789 torn 7 #12" in (yolofs.session / "journal.torn").read_bytes()
    ends_the_journal = words[0] in ("commit", "abort")
    assert len(about_cut(yolofs("status").err)) == (0 if ends_the_journal else 1)


def test_a_torn_tail_is_told_before_anybody_cuts_it(yolofs: Program) -> None:
    line = tear(yolofs)
    before = journal_of(yolofs).read_bytes()
    (told,) = about_cut(yolofs("status").err.replace("tail is torn", "tail was torn"))
    assert f"32 bytes (1 record) from line {line} " in told
    assert len(yolofs("status", "--json").json["warnings"]) == 1
    found = finding(yolofs, "journal")
    assert found["level"] == "warn"
    assert f"line {line} " in found["message"]
    assert "mount" in found["advice"]
    assert journal_of(yolofs).read_bytes() == before
    assert not (yolofs.session / "journal.torn").exists()


def test_it_is_said_until_it_is_acknowledged_over_mounts_and_unmounts(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    for _ in range(2):
        assert len(about_cut(yolofs("status").err)) == 1
        assert finding(yolofs, "cut")["level"] == "warn"
        assert about_cut(mount(yolofs).err) == []  # who mounts was told once
        assert len(about_cut(yolofs("status").err)) == 1
        yolofs("unmount")
    kept = (yolofs.session / "journal.torn").read_bytes()
    assert "torn" in yolofs("doctor", "--acknowledge").err
    assert (yolofs.session / "journal.torn").read_bytes() == kept
    assert about_cut(yolofs("status").err) == []
    assert yolofs("status", "--json").json["cuts"] == []
    assert finding(yolofs, "cut") == {}
    assert "nothing to acknowledge" in yolofs("doctor", "--acknowledge").err


def test_after_a_repair_or_an_acknowledgement_only_what_is_not_in_order_is_listed(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    done = yolofs("doctor", "--acknowledge")
    assert "acknowledged: " in done.err
    assert "\nok " not in f"\n{done.out}"
    assert "cut:" not in done.out
    assert "\nok    journal: " in yolofs("doctor").out
    lines = lines_of(yolofs)
    rewrite(yolofs, [*lines[:3], *lines[4:]])
    done = yolofs("doctor", "--repair", "--yes")
    assert "\nok " not in f"\n{done.out}"
    (yolofs.project / ".yolofs.toml").write_text('nonsense = "x"\n')
    assert "fail  config: " in yolofs("doctor", "--repair", code=1).out


def test_it_can_be_acknowledged_while_it_is_mounted(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    try:
        yolofs("doctor", "--acknowledge")
        assert yolofs("status").err == ""
        with connected(yolofs) as client:
            assert client.info().warnings == ()
    finally:
        yolofs("unmount")


@pytest.mark.parametrize("words", [("commit", "--yes"), ("abort", "--yes"), ("commit", "--yes", "one")], ids=" ".join)
def test_the_end_of_the_journal_ends_it_with_and_without_a_mount(yolofs: Program, words: tuple[str, ...]) -> None:
    tear(yolofs)
    mount(yolofs)
    try:
        yolofs(*words)
        assert yolofs("status").err == ""
    finally:
        yolofs("unmount")
    assert yolofs("status").err == ""
    assert finding(yolofs, "cut") == {}


def test_a_second_tear_keeps_what_the_first_has_moved_and_both_are_told(yolofs: Program) -> None:
    first = tear(yolofs, b"S 1 first")
    mount(yolofs)
    yolofs("unmount")
    with yolofs.mounted(expected_in_log=("tail was torn",)) as view:
        (view / "six").touch()
    second = tear(yolofs, b"S 2 second")
    assert f"from line {second} " in about_cut(mount(yolofs).err)[0]
    yolofs("unmount")
    told = about_cut(yolofs("status").err)
    assert [f"from line {first} " in told[0], f"from line {second} " in told[1]] == [True, True]
    assert len(yolofs("status", "--json").json["cuts"]) == 2
    torn = (yolofs.session / "journal.torn").read_bytes()
    assert torn.index(b"\nS 1 first\n") < torn.index(b"\nS 2 second\n")


def test_what_was_moved_and_then_removed_by_the_user_is_not_told_any_more(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    (yolofs.session / "journal.torn").unlink()
    assert yolofs("status").err == ""


def test_notes_of_cuts_that_make_no_sense_stop_nobody(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    notes = yolofs.session / "journal.cuts"
    good = notes.read_bytes()
    for bad in (b"", b"\0" * 5000, b"[]\n{}\n", b'{"line": "x"}\n', good[:-9], b"\xff\n"):
        notes.write_bytes(bad + good)
        yolofs("status")
        yolofs("doctor")
        notes.write_bytes(good + bad)
        assert len(about_cut(yolofs("status").err)) == 1
    notes.unlink()
    notes.mkdir()
    yolofs("status")
    tear(yolofs)
    before = journal_of(yolofs).read_bytes()
    message = yolofs.refused("mount", "--root", ".", code=6)
    assert f"{journal_of(yolofs)}.cuts: it is no regular file" in message
    assert journal_of(yolofs).read_bytes() == before


def test_a_run_of_zero_bytes_at_the_end_is_a_torn_tail(yolofs: Program) -> None:
    """As after a power failure: the file has grown, and its last pages were never written."""
    whole = journal_of(yolofs).read_bytes()
    journal_of(yolofs).write_bytes(whole[:-30] + b"\0" * 4096)
    line = whole.count(b"\n")
    assert (
        f"{journal_of(yolofs).stat().st_size - len(b''.join(whole.splitlines(keepends=True)[:-1]))} bytes"
        in (about_cut(mount(yolofs).err)[0])
    )
    yolofs("unmount")
    (cut,) = yolofs("status", "--json").json["cuts"]
    assert cut["line"] == line
    assert journal_of(yolofs).read_bytes() == b"".join(whole.splitlines(keepends=True)[:-1])


# ---- damage


Harm = Callable[[list[bytes], list[bytes]], tuple[list[bytes], int, str]]
"""What is done to the lines of a journal, given those of another; the bad line's number, and what
is said of it.
"""


def removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:4], *lines[5:]], 5, "a line before it is missing"


def three_removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:2], *lines[5:]], 3, "3 lines before it are missing"


def last_but_one_removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:-2], lines[-1]], len(lines) - 1, "a line before it is missing"


def first_removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [lines[0], *lines[2:]], 2, "a line before it is missing"


def swapped(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]], 4, "lines have changed places"


def duplicated(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:4], lines[3], *lines[4:]], 5, "it is there twice, and is line 4"


def last_duplicated(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines, lines[-1]], len(lines) + 1, f"it is there twice, and is line {len(lines)}"


def foreign(lines: list[bytes], others: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:3], others[3], *lines[4:]], 4, "the checksum does not match"


def foreign_first(lines: list[bytes], others: list[bytes]) -> tuple[list[bytes], int, str]:
    return [lines[0], others[1], *lines[2:]], 2, "the checksum does not match"


def flipped(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    bad = bytearray(lines[3])
    bad[5] ^= 1
    return [*lines[:3], bytes(bad), *lines[4:]], 4, "the checksum does not match"


def zeroed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    """A page in the middle that a power failure has kept from the disk, with whole lines after
    it.
    """
    whole = b"".join(lines[3:5])
    hole = whole[:10] + b"\0" * (len(whole) - 20) + whole[-10:]
    return [*lines[:3], hole, *lines[5:]], 4, "zero bytes"


HARMS = [
    removed,
    three_removed,
    last_but_one_removed,
    first_removed,
    swapped,
    duplicated,
    last_duplicated,
    foreign,
    foreign_first,
    flipped,
    zeroed,
]


def harm(yolofs: Program, tmp_path: Path, how: Harm) -> tuple[int, str]:
    other = Program(tmp_path / "other")
    other.project.mkdir()
    other("init")
    stage(other, *NAMES)
    lines, line, reason = how(lines_of(yolofs), lines_of(other))
    rewrite(yolofs, lines)
    return line, reason


@pytest.mark.parametrize("how", HARMS, ids=lambda how: how.__name__)
def test_every_command_names_the_line_and_nothing_is_changed(yolofs: Program, tmp_path: Path, how: Harm) -> None:
    line, reason = harm(yolofs, tmp_path, how)
    before = journal_of(yolofs).read_bytes()
    others = [["diff"], ["log"], ["commit", "--yes"], ["snapshot"], ["travel", "0"], ["abort", "--yes"]]
    for words in (["status"], ["mount"], ["run", "--", "true"], *(others if how is removed else [])):
        message = yolofs.refused(*words, code=6)
        assert f"journal, line {line} (byte " in message
        assert reason in message
        assert "yolofs doctor --repair" in message
    found = finding(yolofs, "journal", code=1)
    assert found["level"] == "fail"
    assert found["message"].startswith(f"line {line} (byte ")
    assert reason in found["message"]
    assert "yolofs doctor --repair" in found["advice"]
    assert journal_of(yolofs).read_bytes() == before
    assert not (yolofs.session / "journal.torn").exists()


def test_the_list_of_sessions_tells_of_damage(yolofs: Program) -> None:
    def damage() -> str | None:
        (entry,) = yolofs("sessions", "--json", yolofs.session.name).json["sessions"]
        found: str | None = entry["damage"]
        return found

    assert damage() is None
    lines = lines_of(yolofs)
    rewrite(yolofs, [*lines[:3], *lines[4:]])
    said = yolofs("sessions").out
    assert f"{journal_of(yolofs)}, line 4 (byte " in said
    assert f"a line before it is missing: yolofs -C {yolofs.project} doctor\n" in said
    assert "a line before it is missing" in (damage() or "")
    journal_of(yolofs).unlink()
    assert f"{journal_of(yolofs)} is missing, and there are 5 staged files" in yolofs("sessions").out
    assert "staged files" in (damage() or "")


@pytest.mark.parametrize("how", HARMS, ids=lambda how: how.__name__)
def test_a_repair_cuts_there_keeps_the_rest_and_the_session_goes_on(yolofs: Program, tmp_path: Path, how: Harm) -> None:
    line, _ = harm(yolofs, tmp_path, how)
    before = journal_of(yolofs).read_bytes()
    yolofs("doctor", "--repair", "--yes")
    good = b"".join(before.splitlines(keepends=True)[: line - 1])
    assert journal_of(yolofs).read_bytes() == good
    assert (yolofs.session / "journal.torn").read_bytes().endswith(before[len(good) :] + b"\n")
    stage(yolofs, "later")
    assert "A  later" in yolofs("status").out


# ---- journals of version 1


@pytest.fixture
def stored(tmp_path: Path) -> Program:
    """Return the program in a project whose session an earlier yolofs has left, with its journal of
    version 1.
    """
    project = tmp_path / "project"
    shutil.copytree(STORED / "project", project)
    program = Program(project)
    program("init")
    shutil.copytree(STORED / "session", program.session, dirs_exist_ok=True)
    for made, _, _ in os.walk(program.session):
        os.chmod(made, 0o700)
    (program.session / "session.json").write_text(json.dumps({"root": str(project), "configured": "/", "version": 1}))
    return program


STAGED = ["D  b.txt", "A  later", "A  moved", "A  two words"]


def changes_of(program: Program) -> list[str]:
    return [line for line in program("status").out.splitlines() if line[1:3] == "  " and line[0] != "!"]


def test_a_stored_journal_of_version_1_is_read_and_written_to_until_it_ends(stored: Program) -> None:
    assert changes_of(stored) == STAGED
    assert stored("log", "-v").out.count("first") >= 1
    found = finding(stored, "journal")
    assert found["level"] == "ok"
    assert "version 1" in found["message"]
    before = journal_of(stored).read_bytes()
    with stored.mounted() as view:
        assert sorted(path.name for path in view.iterdir()) == [".yolofs.toml", "a.txt", "later", "moved", "two words"]
        assert (view / "two words").read_text() == "two words\nx"
        (view / "six").write_text("6\n")
        stored("travel", "first")
        assert sorted(path.name for path in view.iterdir()) == [".yolofs.toml", "a.txt", "b.txt", "one", "two words"]
        stored("travel", "-")
        (view / "seven").write_text("7\n")
    after = journal_of(stored).read_bytes()
    assert after.startswith(before)
    assert changes_of(stored) == ["D  b.txt", *STAGED[1:3], "A  seven", "A  six", STAGED[3]]
    stored("commit", "--yes", "six")
    assert journal_of(stored).read_bytes().startswith(b"yolofs-journal 2 ")
    assert (stored.session / "commits/1/journal").read_bytes().startswith(after)
    assert changes_of(stored) == ["D  b.txt", *STAGED[1:3], "A  seven", STAGED[3]]
    stored("commit", "--yes", "--force")
    assert sorted(path.name for path in stored.project.iterdir() if not path.name.startswith(".")) == [
        "a.txt",
        "later",
        "moved",
        "seven",
        "six",
        "two words",
    ]


def test_a_stored_journal_of_version_1_ends_with_an_abort_too(stored: Program) -> None:
    stored("abort", "--yes")
    assert journal_of(stored).read_bytes().startswith(b"yolofs-journal 2 ")
    assert changes_of(stored) == []
    assert "version" not in finding(stored, "journal")["message"]


def test_a_torn_tail_of_version_1_is_told_until_the_journal_ends(stored: Program) -> None:
    before = journal_of(stored).read_bytes()
    line = tear(stored)
    assert f"from line {line} " in about_cut(stored("mount", "--root", ".").err)[0]
    stored("unmount")
    assert journal_of(stored).read_bytes() == before
    assert len(about_cut(stored("status").err)) == 1
    stored("abort", "--yes")
    assert stored("status").err == ""


def test_damage_of_version_1_is_told_as_before(stored: Program) -> None:
    lines = lines_of(stored)
    lines[5] = lines[5].replace(b"later", b"LATER")
    rewrite(stored, lines)
    message = stored.refused("status", code=6)
    assert "journal, line 6 (byte " in message
    assert "the checksum does not match" in message
    stored("doctor", "--repair", "--yes")
    assert changes_of(stored) == ["A  moved", "A  two words"]


def test_a_version_that_is_not_known_yet_is_refused_and_not_touched(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [b"yolofs-journal 3 and so on\n", *lines[1:]])
    for words in (["status"], ["mount"], ["doctor", "--repair", "--yes"]):
        assert "has format version 3, but this yolofs reads versions 1 to 2" in yolofs.refused(*words, code=6)
    assert lines_of(yolofs)[1:] == lines[1:]


def test_a_damaged_first_line_is_told(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [lines[0].replace(b" 2 ", b" 2 0"), *lines[1:]])
    for words in (["status"], ["mount"], ["doctor", "--repair", "--yes"]):
        assert "journal is damaged in its first line" in yolofs.refused(*words, code=6)


# ---- keeping the rest


def test_the_rest_is_kept_if_the_user_says_so(yolofs: Program, tmp_path: Path) -> None:
    harm(yolofs, tmp_path, removed)
    before = journal_of(yolofs).read_bytes()
    message = yolofs("doctor", "--repair", "--keep-rest", code=2).err
    assert "1 line from there on can be kept; 0 lines cannot, and 1 line is not there any more" in message
    assert "hint: yolofs doctor --repair --keep-rest --yes" in message
    assert journal_of(yolofs).read_bytes() == before
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert changes_of(yolofs) == ["A  five", "A  one", "A  three", "A  two"]
    stage(yolofs, "later")
    assert "A  later" in changes_of(yolofs)
    assert "nothing to repair" in yolofs("doctor", "--repair", "--keep-rest").err


def test_a_changed_line_is_not_told_as_one_that_is_not_there_any_more(yolofs: Program, tmp_path: Path) -> None:
    harm(yolofs, tmp_path, flipped)
    message = yolofs("doctor", "--repair", "--keep-rest", code=2).err
    assert "2 lines from there on can be kept; 1 line cannot\n" in message


def test_lines_that_have_changed_places_are_put_back(yolofs: Program, tmp_path: Path) -> None:
    good = journal_of(yolofs).read_bytes()
    harm(yolofs, tmp_path, swapped)
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert journal_of(yolofs).read_bytes() == good


def test_keeping_the_rest_is_a_way_to_repair(yolofs: Program) -> None:
    assert "yolofs doctor --repair --keep-rest" in yolofs.refused("doctor", "--keep-rest", code=2)


# ---- a first line that says nothing


def first_changed(lines: list[bytes]) -> list[bytes]:
    return [b"X" + lines[0][1:], *lines[1:]]


def first_zeroed(lines: list[bytes]) -> list[bytes]:
    return [b"\0" * len(lines[0]), *lines[1:]]  # its newline, too


def first_gone(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


@pytest.mark.parametrize("how", [first_changed, first_zeroed, first_gone], ids=lambda how: how.__name__)
def test_a_damaged_first_line_is_written_anew_by_the_others(
    yolofs: Program, how: Callable[[list[bytes]], list[bytes]]
) -> None:
    good = journal_of(yolofs).read_bytes()
    rewrite(yolofs, how(lines_of(yolofs)))
    bad = journal_of(yolofs).read_bytes()
    assert "yolofs doctor --repair --keep-rest" in yolofs.refused("status", code=6)
    assert "yolofs doctor --repair --keep-rest" in finding(yolofs, "journal", code=1)["advice"]
    assert "yolofs doctor --repair --keep-rest --yes" in yolofs("doctor", "--repair", "--keep-rest", code=2).err
    assert journal_of(yolofs).read_bytes() == bad
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert journal_of(yolofs).read_bytes() == good
    assert bad in (yolofs.session / "journal.torn").read_bytes()
    assert changes_of(yolofs) == ["A  five", "A  four", "A  one", "A  three", "A  two"]


def test_other_damage_is_repaired_along_with_the_first_line(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [b"X" + lines[0][1:], *lines[1:3], *lines[4:]])
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert len(changes_of(yolofs)) == 4


def test_where_no_line_tells_the_first_one_all_is_kept_beside_an_empty_journal(yolofs: Program) -> None:
    journal_of(yolofs).write_bytes(b"nothing\nof use\n")
    assert "no line after it tells what it was" in yolofs("doctor", "--repair", "--keep-rest", "--yes").err
    assert changes_of(yolofs) == []
    assert b"nothing\nof use\n" in (yolofs.session / "journal.torn").read_bytes()
    assert sorted(path.read_text() for path in (yolofs.session / "lost/1").iterdir()) == sorted(f"{n}\n" for n in NAMES)


# ---- no journal at all


@pytest.mark.parametrize(
    "words",
    [("status",), ("mount",), ("commit", "--yes"), ("abort", "--yes"), ("doctor", "--acknowledge"), ("init",)],
)
def test_a_missing_journal_is_told_and_no_command_begins_another(yolofs: Program, words: tuple[str, ...]) -> None:
    journal_of(yolofs).unlink()
    if words != ("init",):
        message = yolofs.refused(*words, code=6)
        assert "journal is missing, and there are 5 staged files, whose names only it knew" in message
        assert "yolofs doctor --repair" in message
    else:
        yolofs(*words)
    assert not journal_of(yolofs).exists()
    assert len([path for path in (yolofs.session / "files").rglob("*") if path.is_file()]) == len(NAMES)
    found = finding(yolofs, "journal", code=1)
    assert found["level"] == "fail"
    assert "yolofs doctor --repair" in found["advice"]
    assert "staged" in yolofs("sessions").out


def test_a_repair_begins_an_empty_journal_and_keeps_what_was_staged(yolofs: Program) -> None:
    for number in (1, 2):  # the second loss has the same numbers
        journal_of(yolofs).unlink()
        assert "yolofs doctor --repair --yes" in yolofs("doctor", "--repair", code=2).err
        assert not journal_of(yolofs).exists()
        assert str(yolofs.session / f"lost/{number}") in yolofs("doctor", "--repair", "--yes").err
        assert changes_of(yolofs) == []
        kept = sorted(path.read_text() for path in (yolofs.session / f"lost/{number}").iterdir())
        assert kept == sorted(f"{name}\n" for name in NAMES)
        stage(yolofs, *NAMES)


def test_a_journal_is_not_missed_where_nothing_was_staged_or_a_commit_has_put_it_away(yolofs: Program) -> None:
    yolofs("commit", "--yes")
    journal_of(yolofs).unlink()
    assert changes_of(yolofs) == []


# ---- whole lines that are missing at the end


def about_missing(text: str) -> list[str]:
    return [line for line in text.splitlines() if "missing at the journal's end" in line]


def lost_in(program: Program) -> dict[str, str]:
    """Return what the first directory below ``lost`` keeps."""
    place = program.session / "lost" / "1"
    return {file.name: file.read_text() for file in place.iterdir()} if place.is_dir() else {}


@pytest.mark.parametrize("count", [1, 3, 5])
def test_lines_missing_at_the_end_are_told_and_what_only_they_named_is_kept(yolofs: Program, count: int) -> None:
    lines = lines_of(yolofs)
    staged = [line for line in lines if line.startswith(b"S ")]
    assert len(staged) == len(NAMES)
    first = lines.index(staged[-count])
    rewrite(yolofs, lines[:first])
    missing = len(lines) - first
    said = f"{missing} record{'s are' if missing > 1 else ' is'} missing at the journal's end, from line {first + 1} on"
    assert said in about_missing(yolofs("status").err)[0]
    found = finding(yolofs, "journal", code=1)
    assert (found["level"], said in found["message"]) == ("fail", True)
    told = about_missing(mount(yolofs).err)
    try:
        assert said in told[0]
        assert str(yolofs.session / "lost" / "1") in told[0]
        assert about_missing(yolofs("status").err) == told
        assert about_missing(yolofs.log)
        (cut,) = yolofs("status", "--json").json["cuts"]
        assert (cut["kind"], cut["records"], cut["line"]) == ("missing", missing, first + 1)
        assert cut["kept_in"] == str(yolofs.session / "lost" / "1")
    finally:
        yolofs("unmount")
    assert sorted(lost_in(yolofs).values()) == sorted(f"{name}\n" for name in NAMES[-count:])
    assert about_missing(yolofs("status").err) == told  # until somebody says that he knows
    yolofs("doctor", "--acknowledge")
    assert about_missing(yolofs("status").err) == []
    assert finding(yolofs, "journal")["level"] == "ok"
    assert lost_in(yolofs)


def test_a_journal_that_is_as_it_was_lacks_nothing(yolofs: Program) -> None:
    for words in (("status",), ("snapshot", "s"), ("travel", "0"), ("travel", "1"), ("commit", "--yes")):
        assert about_missing(yolofs(*words).err) == []
    stage(yolofs, "six")
    assert about_missing(yolofs("abort", "--yes").err + yolofs("status").err) == []
    assert finding(yolofs, "journal")["level"] == "ok"
    assert not (yolofs.session / "lost").exists()


def test_repair_keeps_what_only_missing_lines_named(yolofs: Program) -> None:
    rewrite(yolofs, lines_of(yolofs)[:3])
    said = yolofs("doctor", "--repair", "--yes")
    assert about_missing(said.err + said.out)
    assert len(lost_in(yolofs)) == 3
    assert finding(yolofs, "journal")["level"] == "ok"


def test_all_records_missing_is_told(yolofs: Program) -> None:
    rewrite(yolofs, lines_of(yolofs)[:1])
    assert about_missing(yolofs("status").err)
    assert about_missing(yolofs("snapshot", "s").err)
    assert len(lost_in(yolofs)) == len(NAMES)


def test_lines_missing_after_a_kill_are_told(yolofs: Program) -> None:
    mount(yolofs)
    view = yolofs.session / "mnt"
    (view / "six").write_text("six\n")
    journal, noted = journal_of(yolofs), yolofs.session / "journal.length"
    before = noted.read_bytes()
    wait_until(lambda: noted.read_bytes() != before, "the length being noted")
    kill(yolofs.daemon["pid"])
    yolofs("unmount", "--force")
    lines = lines_of(yolofs)
    journal.write_bytes(b"".join(line for line in lines if b" six " not in line))
    assert len(lines_of(yolofs)) < len(lines)
    assert about_missing(yolofs("snapshot", "s").err)
    assert "six\n" in lost_in(yolofs).values()


def test_a_torn_line_is_not_told_as_missing_too(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [*lines[:-1], lines[-1][:-12]])
    said = yolofs("snapshot", "s").err
    assert len(about_cut(said)) == 1
    assert about_missing(said) == []


def test_a_project_that_moved_with_a_short_journal_is_told_too(yolofs: Program) -> None:
    rewrite(yolofs, lines_of(yolofs)[:3])
    moved = yolofs.project.with_name("moved")
    yolofs.project.rename(moved)
    program = Program(moved)
    assert about_missing(program("status").err)
    assert about_missing(program("snapshot", "s").err)
    assert len(lost_in(program)) == 3
