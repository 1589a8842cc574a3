"""Each record carries the run of the process that made it, whatever else goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.started import start

pytestmark = pytest.mark.mount


def records(yolofs: Program, *words: str) -> list[tuple[str, str, int | None]]:
    """Return kind, name and run of the records that a log shows."""
    found = yolofs("log", *words, "--json").json["records"]
    return [(record["kind"], Path(record["path"]).name, record.get("run")) for record in found if "path" in record]


def last_run(yolofs: Program) -> int:
    notes = map(json.loads, (yolofs.session / "audit.jsonl").read_text().splitlines())
    return int([note["run"] for note in notes if note["kind"] == "run-end"][-1])


def test_every_kind_of_change_carries_the_run(yolofs: Program) -> None:
    (yolofs.project / "base").write_text("base")
    (yolofs.project / "other").write_text("other")
    script = (
        "import os, mmap\n"
        "open('new', 'w').write('x'); os.mkdir('dir'); os.symlink('x', 'link'); os.link('new', 'hard')\n"
        "os.chmod('base', 0o600); os.rename('new', 'newer'); os.unlink('link'); os.rmdir('dir'); os.mkfifo('fifo')\n"
        "with open('other', 'r+b') as file, mmap.mmap(file.fileno(), 0) as shared:\n"
        "    shared[0:1] = b'O'\n"
    )
    yolofs("run", "python3", "-c", script)
    number = last_run(yolofs)
    assert records(yolofs, "--run", str(number)) == [
        ("stage", "new", number),
        ("stage", "dir", number),
        ("stage", "link", number),
        ("stage", "hard", number),
        ("stage", "base", number),
        ("rename", "newer", number),
        ("delete", "link", number),
        ("delete", "dir", number),
        ("stage", "fifo", number),
        ("stage", "other", number),
    ]
    assert yolofs("run", "cat", "other").out == "Other"


def test_a_change_outside_of_runs_carries_no_run(yolofs: Program) -> None:
    inside = Path(yolofs.daemon["mountpoint"]) / str(yolofs.project)[1:]
    (inside / "by-hand").write_text("x")
    assert ("stage", "by-hand", None) in records(yolofs)


def test_changes_of_two_runs_at_once_carry_the_run_that_made_them(yolofs: Program) -> None:
    script = "echo first > first; echo ready; read line; mv first first-renamed; echo more >> first-renamed"
    first = start(["run", "--no-review", "sh", "-c", script], yolofs.project, has_input=True)
    assert first.stdout is not None
    assert first.stdout.readline() == b"ready\n"
    yolofs("run", "sh", "-c", "echo second > second; mv second second-renamed")
    second_run = last_run(yolofs)
    first.communicate(b"go\n", timeout=60)
    first_run = last_run(yolofs)
    assert first_run != second_run
    assert {name for _, name, _ in records(yolofs, "--run", str(second_run))} == {"second", "second-renamed"}
    assert {name for _, name, _ in records(yolofs, "--run", str(first_run))} == {"first", "first-renamed"}
    listed = yolofs("diff", "--run", str(first_run), "--json").json["changes"]
    assert [Path(change["path"]).name for change in listed] == ["first-renamed"]


def test_a_write_after_a_snapshot_carries_the_run_that_opened_the_file(yolofs: Program) -> None:
    script = "exec 3> long; echo one >&3; echo ready; read line; echo two >&3"
    run = start(["run", "--no-review", "sh", "-c", script], yolofs.project, has_input=True)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    yolofs("snapshot", "between")
    run.communicate(b"go\n", timeout=60)
    number = last_run(yolofs)
    assert records(yolofs, "--run", str(number)) == [("stage", "long", number)] * 2


def test_blame_names_the_run_that_made_the_present_content(yolofs: Program) -> None:
    (yolofs.project / "text").write_text("base\n")
    (yolofs.project / "moved").write_text("base\n")
    assert yolofs("blame", "text").out == "text: as in base\n"
    yolofs("run", "sh", "-c", "echo one > text; mv moved there")
    first = last_run(yolofs)
    said = yolofs("blame", "text").out
    assert said.startswith("text: written, ")
    assert said.endswith(f'run {first}: sh -c "echo one > text; mv moved there"\n') or f"run {first}: sh -c" in said
    assert yolofs("blame", "there", "--json").json["what"] == "renamed"
    assert yolofs("blame", "moved", "--json").json["what"] == "renamed"
    yolofs("run", "sh", "-c", "echo two > text; rm there")
    assert yolofs("blame", "text", "--json").json["run"] == last_run(yolofs)
    assert yolofs("blame", "there", "--json").json["what"] == "deleted"
    yolofs("travel", "base")
    assert yolofs("blame", "text").out == "text: as in base\n"


def test_blame_knows_a_file_by_all_its_names_in_base(yolofs: Program) -> None:
    (yolofs.project / "links").mkdir()
    (yolofs.project / "links/one").write_text("base\n")
    (yolofs.project / "links/two").hardlink_to(yolofs.project / "links/one")
    assert yolofs("blame", "links/one").out == "links/one: as in base\n"
    yolofs("run", "sh", "-c", "echo more >> links/two")
    for name in ("links/one", "links/two"):
        said = yolofs("blame", name).out
        assert said.startswith(f"{name}: written, ")
        assert f"run {last_run(yolofs)}: " in said


def test_blame_takes_a_path_that_is_nowhere_for_a_mistake(yolofs: Program) -> None:
    for words in (["nowhere"], ["nowhere", "--json"], ["nowhere/below"], ["/nowhere"]):
        message = yolofs.refused("blame", *words, code=2)
        assert "neither in the view nor in base" in message
    yolofs("run", "sh", "-c", "echo > made")
    yolofs("travel", "base")
    assert "there is nothing at" in yolofs.refused("blame", "made", code=2)  # no run has it in what shows now


def test_runs_lists_commands_with_code_and_generation(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo 1 > listed; exit 3", code=3)
    run = yolofs("runs", "--json").json["runs"][-1]
    assert run["command"] == ["sh", "-c", "echo 1 > listed; exit 3"]
    assert (run["code"], run["after"] - run["before"]) == (3, 1)
    line = yolofs("runs").out.splitlines()[-1]
    assert "exit 3" in line
    assert f"generation {run['after']}" in line


def test_the_diff_of_a_run_that_changed_nothing_is_empty(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo 1 > something")
    yolofs("run", "true")
    assert yolofs("diff", "--run", str(last_run(yolofs))).out == ""


def test_a_run_that_never_was_is_refused(yolofs: Program) -> None:
    for words in (("log", "--run", "99999"), ("diff", "--run", "99999")):
        assert "there is no run 99999" in yolofs.refused(*words, code=7)


def test_a_directory_tells_how_much_has_changed_below_it(yolofs: Program) -> None:
    (yolofs.project / "top/deep").mkdir(parents=True)
    (yolofs.project / "top/deep/old").write_text("old\n")
    assert yolofs("blame", "top").out == "top: as in base\n"
    yolofs("run", "sh", "-c", "echo new > top/deep/new; echo > top/deep/old")
    assert yolofs("blame", "top").out == ("top: as in base; below it 1 added, 1 modified: yolofs log -- top\n")
    found = yolofs("blame", "--json", "top").json
    assert (found["what"], found["below"]["A"], found["below"]["M"]) == ("as in base", 1, 1)
    assert "below it" not in yolofs("blame", "top/deep/new").out


def test_a_commit_names_the_runs_that_its_own_changes_are_due_to(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    yolofs = Program(tmp_path / "project")
    yolofs("init")

    def listed() -> list[list[int]]:
        return [commit["runs"] for commit in yolofs("commits", "--json").json["commits"]]

    with yolofs.mounted("--root", "/"):
        yolofs("run", "sh", "-c", "echo a > a; echo b > b")
        yolofs("run", "sh", "-c", "echo c > c")
        yolofs("commit", "--yes", "a")
        assert listed() == [[1]]
        yolofs("run", "sh", "-c", "echo gone > gone")
        yolofs("travel", "1")
        yolofs("commit", "--yes")
        assert listed() == [[1], [1, 2]]
        assert "(made just now, of runs 1, 2)" in yolofs("undo", "--dry-run").err
        yolofs("undo", "--yes", "2")
        yolofs("undo", "--yes", "1")
        assert listed() == [[1], [1, 2], [], []]
        yolofs("commit", "--yes")
        assert listed() == [[1], [1, 2], [], [], [1, 2]]
