"""After a commit, partial or not, it can still be told what happened before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture
def worked(tmp_path: Path) -> Program:
    """Return the program in a project with two runs, of which a part is committed, and one after that."""
    project = tmp_path / "project"
    (project / "dir").mkdir(parents=True)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "dir/b.txt").write_text("b\n")
    (project / "gone.txt").write_text("gone\n")
    program = Program(project)
    program("init")
    program("mount", "--root", "/")
    program("run", "sh", "-c", "echo ONE > a.txt; rm gone.txt")
    program("run", "sh", "-c", "echo two >> a.txt; echo new > new.txt; mv dir/b.txt c.txt; echo c >> c.txt")
    return program


@pytest.fixture
def committed(worked: Program) -> Program:
    """Return the same with a part of it committed, and a run after that."""
    worked("commit", "--yes", "a.txt", "gone.txt", "c.txt")
    worked("run", "sh", "-c", "echo three >> a.txt")
    yield worked
    worked("unmount", "--force")


def columns(line: str) -> str:
    """Return what stands after the time of a line."""
    return line[19:].strip()


def test_the_log_begins_before_the_commit(committed: Program) -> None:
    lines = [columns(line).partition("  (exit 0")[0] for line in committed("log").out.splitlines()]
    assert lines == [
        "1  run       1: sh -c echo ONE > a.txt; rm gone.txt",
        "2  run       2: sh -c echo two >> a.txt; echo new > new.txt; mv dir/b.txt c.txt; echo c >> c.txt",
        "commit    1",
        '1  snapshot  "left by commit 1"',
        "2  run       3: sh -c echo three >> a.txt",
    ]


def test_each_record_of_a_run_before_the_commit_is_there(committed: Program) -> None:
    assert committed("log", "--run", "1").out.count("a.txt") == 2
    records = committed("log", "--run", "1", "--json").json["records"]
    assert [(record["kind"], record["commit"]) for record in records] == [
        ("run", 1), ("stage", 1), ("delete", 1), ("run-end", 1),
    ]  # fmt: skip
    assert "commit    1" in committed("log", "-v").out
    assert [line for line in committed("log", "--", "gone.txt").out.splitlines() if "delete" in line]


def test_runs_tell_generation_and_commit(committed: Program) -> None:
    runs = committed("runs", "--json").json["runs"]
    assert [(run["run"], run["before"], run["after"], run["commit"]) for run in runs] == [
        (1, 0, 1, 1), (2, 1, 2, 1), (3, 1, 2, None)
    ]  # fmt: skip
    assert "generation 1, commit 1" in committed("runs").out.splitlines()[0]


def test_the_timeline_shows_the_generations_before_dimmed_and_apart(committed: Program) -> None:
    with Terminal(committed.project, ["timeline"]) as terminal:
        assert terminal.wait() == 0
        dim, present = terminal.seen.split("commit 1\x1b", 1)
        assert dim.count("\x1b[2m") == 4
        assert "left by commit 1" in present
    document = committed("timeline", "--json").json
    assert [one["commit"] for one in document["earlier"]] == [1]
    assert [node["number"] for node in document["earlier"][0]["generations"]] == [0, 1, 2]


def test_blame_names_the_run_and_the_commit_that_made_it_real(committed: Program) -> None:
    committed("abort", "--yes")
    assert committed("blame", "--json", "a.txt").json["run"] == 2
    assert ", commit 1, run 2: sh -c " in committed("blame", "a.txt").out
    assert committed("blame", "gone.txt").out.startswith("gone.txt: deleted, ")
    assert committed("blame", "--json", "dir").json["what"] == "as in base"
    (committed.project / "a.txt").write_text("of the host\n")
    assert committed("blame", "a.txt").out.endswith("; base has changed since\n")


def test_what_a_commit_made_is_told_after_several_more(committed: Program) -> None:
    committed("commit", "--yes")
    committed("run", "sh", "-c", "echo four > four.txt")
    committed("commit", "--yes")
    shown = [columns(line) for line in committed("log").out.splitlines()]
    assert [line for line in shown if line.startswith("commit")] == ["commit    1", "commit    2", "commit    3"]
    assert committed("blame", "--json", "new.txt").json["run"] == 2
    assert [run["commit"] for run in committed("runs", "--json").json["runs"]] == [1, 1, 2, 3]


def test_it_goes_with_the_commits_that_are_not_kept(committed: Program) -> None:
    config = Path(committed.project / ".yolofs.toml")
    config.write_text("scratch = []\n[keep_commits]\ncount = 1\n")
    committed.trust()
    committed("commit", "--yes")
    assert [one["commit"] for one in committed("timeline", "--json").json["earlier"]] == [2]
    assert committed("runs", "--json").json["runs"][0]["commit"] is None
