"""After a commit, partial or not, it can still be told what happened before it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program, run_code
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.mount


def with_two_runs(project: Path) -> Program:
    """Return the program in a new project with two runs, and a view of / mounted."""
    (project / "dir").mkdir(parents=True)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "dir/b.txt").write_text("b\n")
    (project / "gone.txt").write_text("gone\n")
    program = Program(project)
    program.start_session()
    program("mount", "--root", "/")
    program("run", "sh", "-c", "echo ONE > a.txt; rm gone.txt")
    program("run", "sh", "-c", "echo two >> a.txt; echo new > new.txt; mv dir/b.txt c.txt; echo c >> c.txt")
    return program


@contextlib.contextmanager
def with_a_part_committed(project: Path) -> Iterator[Program]:
    """Give the same with a part of it committed, and a run after that."""
    program = with_two_runs(project)
    program("commit", "--yes", "a.txt", "gone.txt", "c.txt")
    program("run", "sh", "-c", "echo three >> a.txt")
    yield program
    program("unmount", "--force")


@pytest.fixture
def worked(tmp_path: Path) -> Program:
    """Return the program in a project with two runs."""
    return with_two_runs(tmp_path / "project")


@pytest.fixture
def committed(tmp_path: Path) -> Iterator[Program]:
    """Return the same with a part of it committed, and a run after that."""
    with with_a_part_committed(tmp_path / "project") as program:
        yield program


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory, traces: object) -> Iterator[Program]:
    """Return one like it, in which tests change nothing."""
    with with_a_part_committed(tmp_path_factory.mktemp("history") / "project") as program:
        program.wait_for_watcher()
        yield program


def columns(line: str) -> str:
    """Return what stands after the time of a line."""
    return line[19:].strip()


def test_the_log_begins_before_the_commit(looked_at: Program) -> None:
    lines = [columns(line).partition("  (exit 0")[0] for line in looked_at("log").out.splitlines()]
    assert lines == [
        "1  run       1: sh -c 'echo ONE > a.txt; rm gone.txt'",
        "2  run       2: sh -c 'echo two >> a.txt; echo new > new.txt; mv dir/b.txt c.txt; echo c >> c.txt'",
        "commit    1",
        "1  snapshot  left by commit 1",
        "2  run       3: sh -c 'echo three >> a.txt'",
    ]


def test_each_record_of_a_run_before_the_commit_is_there(looked_at: Program) -> None:
    assert looked_at("log", "--run", "1").out.count("a.txt") == 2
    records = looked_at("log", "--run", "1", "--json").json["records"]
    assert [(record["kind"], record["commit"]) for record in records] == [
        ("run", 1), ("stage", 1), ("delete", 1), ("run-end", 1),
    ]  # fmt: skip
    assert "commit    1" in looked_at("log", "-v").out
    assert [line for line in looked_at("log", "--", "gone.txt").out.splitlines() if "delete" in line]


def test_runs_tell_generation_and_commit(looked_at: Program) -> None:
    runs = looked_at("runs", "--json").json["runs"]
    assert [(run["run"], run["before"], run["after"], run["commit"]) for run in runs] == [
        (1, 0, 1, 1), (2, 1, 2, 1), (3, 1, 2, None)
    ]  # fmt: skip
    lines = looked_at("runs").out.splitlines()
    assert "generation 1, commit 1" in lines[0]
    assert len({line.index("sh -c") for line in lines}) == 1


def test_the_timeline_shows_the_generations_before_dimmed_and_apart(looked_at: Program) -> None:
    with Terminal(looked_at.project, ["timeline"]) as terminal:
        assert terminal.wait() == 0
        dim, present = terminal.seen.split("commit 1\x1b", 1)
        assert dim.count("\x1b[2m") == 4
        assert "left by commit 1" in present
    document = looked_at("timeline", "--json").json
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


def test_history_goes_with_the_commits_that_are_not_kept(committed: Program) -> None:
    config = Path(committed.project / ".yolofs.toml")
    config.write_text("scratch = []\n[keep_commits]\ncount = 1\n")
    committed.trust()
    committed("commit", "--yes")
    assert [one["commit"] for one in committed("timeline", "--json").json["earlier"]] == [2]
    assert committed("runs", "--json").json["runs"][0]["commit"] is None


def test_the_changes_of_a_run_tell_which_commit_came_after_it(looked_at: Program) -> None:
    documents = [looked_at("diff", "--run", str(run), "--json").json for run in (1, 2, 3)]
    assert [(found["from"], found["to"], found["commit"]) for found in documents] == [
        (0, 1, 1),
        (1, 2, 1),
        (1, 2, None),
    ]
    assert looked_at("diff", "--json").json["commit"] is None


def test_a_damaged_journal_of_a_commit_is_told_by_all_that_miss_it(committed: Program) -> None:
    committed("abort", "--yes")
    journal = committed.session / "commits/1/journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], b"nonsense\n", *lines[3:]]))
    said = "note: what was done before commit 1 is not shown, as its journal is damaged: yolofs doctor\n"
    for command in (["log"], ["log", "-v"], ["log", "--json"], ["runs"], ["timeline"], ["blame", "a.txt"]):
        done = committed(*command)
        assert done.err.count(said) == 1, command
        assert "commit 1" not in done.out
    assert said in committed("diff", "--run", "1", code=2).err
    assert said not in committed("diff").err
    doctor = committed("doctor").out
    assert f"history: the journal of commit 1 is damaged: {journal}, line 3 (byte " in doctor
    assert "yolofs undo 1 works all the same" in doctor
    committed("undo", "1", "--yes")


def test_a_missing_journal_of_a_commit_is_told_by_all_that_miss_it(committed: Program) -> None:
    committed("commit", "--yes")
    journal = committed.session / "commits/1/journal"
    journal.unlink()
    said = "note: what was done before commit 1 is not shown, as its journal is missing: yolofs doctor\n"
    for command in (["log"], ["log", "-v"], ["log", "--json"], ["runs"], ["timeline"], ["blame", "a.txt"]):
        done = committed(*command)
        assert done.err.count(said) == 1, command
    assert said in committed("diff", "--run", "1", code=2).err
    assert f"history: the journal of commit 1 is missing: {journal}\n" in committed("doctor").out


KILLED = """
import os, sys
from yolofs.cli.main import main

really = os.rename

def rename(source, target, **options):
    if os.fsencode(target).endswith(b"commits/2/journal"):
        os._exit(9)
    really(source, target, **options)

os.rename = rename
sys.exit(main())
"""


def test_a_journal_that_is_about_to_be_put_away_is_not_missing(committed: Program) -> None:
    """As after a kill between the end of a commit and the move of its journal."""
    committed("unmount")
    done = run_code(KILLED, ["commit", "--yes"], committed.project)
    assert done.returncode == 9
    assert (committed.session / "commits/2/done").exists()
    assert not (committed.session / "commits/2/journal").exists()
    for command in (["log"], ["runs"]):
        assert "is missing" not in committed(*command, code=None).err


EVERYTHING = """
    echo more >> text; rm gone; mv moved there; mv dir newdir; echo x > newdir/inside; rm -r tree; mkdir tree
    echo other > tree/other; chmod 755 mode; ln -sf elsewhere link; echo named >> hard; printf '\\0\\1' > binary
    mkdir -p made/deep; echo made > made/deep/file; rm kind; mkdir kind
"""
AGAIN = """
    echo again >> text; rm there; mv newdir dir; echo y > dir/inside; rm -r tree made; echo kind > made
    chmod 600 mode; echo again >> hard; rmdir kind; echo new > gone
"""


@pytest.fixture
def varied(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a project with a file of each kind."""
    project = tmp_path / "project"
    (project / "dir/sub").mkdir(parents=True)
    (project / "tree/a").mkdir(parents=True)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    for name in ("text", "gone", "moved", "dir/inside", "dir/sub/deep", "tree/a/b", "mode", "hard", "binary", "kind"):
        (project / name).write_text(f"{name}\n")
    (project / "link").symlink_to("nowhere")
    (project / "other name").hardlink_to(project / "hard")
    program = Program(project)
    program.start_session()
    program("mount", "--root", "/")
    yield program
    program("unmount", "--force")


def told(program: Program, run: int) -> dict[str, object]:
    """Return what a run changed: the patch, and JSON by path, but for marks, times of directories,
    and hard links.
    """
    document = program("diff", "--run", str(run), "--json").json
    found: dict[str, object] = {
        change["path"]: {
            key: _without_times(value) for key, value in change.items() if key not in ("marks", "unseen_names")
        }
        for change in document["changes"]
    }
    return found | {"patch": program("diff", "--run", str(run), "--binary").out}


def _without_times(value: Any) -> Any:
    is_directory = isinstance(value, dict) and value["type"] == "directory"
    return {key: each for key, each in value.items() if key != "mtime_ns"} if is_directory else value


@pytest.mark.parametrize("commits", ["all", "after each", "in parts", "undone and again"])
def test_what_a_run_changed_is_the_same_before_its_commit_and_after(varied: Program, commits: str) -> None:
    varied("run", "sh", "-c", EVERYTHING)
    first = told(varied, 1)
    if commits != "all":
        varied("commit", "--yes", *(["text", "dir", "tree", "mode"] if commits == "in parts" else []))
        assert told(varied, 1) == first
    if commits == "undone and again":
        varied("undo", "--yes")
        assert told(varied, 1) == first
        varied("commit", "--yes")
        assert told(varied, 1) == first
    varied("run", "sh", "-c", AGAIN)
    second = told(varied, 2)
    varied("commit", "--yes")
    assert told(varied, 1) == first
    assert told(varied, 2) == second
    varied("run", "sh", "-c", "rm -r dir text; echo third > third")
    varied("commit", "--yes")
    assert told(varied, 1) == first
    assert told(varied, 2) == second


def test_what_the_host_changed_since_is_not_taken_for_what_a_run_wrote(varied: Program) -> None:
    varied("run", "sh", "-c", "echo run > new; echo more >> text")
    varied("commit", "--yes")
    (varied.project / "new").write_text("of the host\n")
    done = varied("diff", "--run", "1")
    assert "of the host" not in done.out
    assert "+more\n" in done.out


def test_what_a_commit_applied_is_brought_back_whatever_later_ones_made_of_it(varied: Program) -> None:
    seen = {}
    for commit, script in enumerate((EVERYTHING, AGAIN, "rm -r dir text; echo third > third"), 1):
        varied("run", "sh", "-c", script)
        varied("commit", "--yes")
        seen[commit] = content(varied.project)
    view = Path(varied.daemon["mountpoint"]) / str(varied.project)[1:]
    for number, then in seen.items():
        names = sorted({path.partition("/")[0] for found in (then, seen[3]) for path in found})
        varied("restore", "--from", "commit", str(number), *names)
        assert content(view) == then, f"commit {number}"
        assert content(varied.project) == seen[3]
        varied("travel", "base", "--force")


def content(top: Path) -> dict[str, object]:
    """Return mode and content of all that lies below, but what yolofs itself keeps."""
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if not name.startswith(".yolofs"):
            data = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[name] = (path.lstat().st_mode, data)
    return found


def test_a_commit_that_is_not_kept_cannot_be_brought_back_from(looked_at: Program) -> None:
    said = looked_at.refused("restore", "--from", "commit", "9", "a.txt", code=2)
    assert "commit 9 is not kept, or there never was one" in said
