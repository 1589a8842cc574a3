"""After a commit, partial or not, it can still be told what happened before it."""

from __future__ import annotations

import contextlib
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_points import points
from tests.support.program import Program, run_code
from tests.support.terminal import Terminal
from yolofs.paths import RelPath
from yolofs.session.history.named_states import named_state
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.mount


@contextlib.contextmanager
def with_two_runs(project: Path) -> Iterator[Program]:
    """Give the program in a new project with two runs, and a view of / mounted."""
    (project / "dir").mkdir(parents=True)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "dir/b.txt").write_text("b\n")
    (project / "gone.txt").write_text("gone\n")
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        program("run", "sh", "-c", "echo ONE > a.txt; rm gone.txt")
        program("run", "sh", "-c", "echo two >> a.txt; echo new > new.txt; mv dir/b.txt c.txt; echo c >> c.txt")
        yield program


@contextlib.contextmanager
def with_a_part_committed(project: Path) -> Iterator[Program]:
    """Give the same with a part of it committed, and a run after that."""
    with with_two_runs(project) as program:
        program("commit", "--yes", "a.txt", "gone.txt", "c.txt")
        program("run", "sh", "-c", "echo three >> a.txt")
        yield program


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a project with two runs."""
    with with_two_runs(tmp_path / "project") as program:
        yield program


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


def test_the_log_of_a_run_before_a_commit_has_each_record(looked_at: Program) -> None:
    assert looked_at("log", "--run", "1").out.count("a.txt") == 2
    records = looked_at("log", "--run", "1", "--json").json["records"]
    assert [(record["kind"], record["commit"]) for record in records] == [
        ("run", 1), ("stage", 1), ("delete", 1), ("run-end", 1),
    ]  # fmt: skip
    assert "commit    1" in looked_at("log", "-v").out
    assert [line for line in looked_at("log", "--", "gone.txt").out.splitlines() if "delete" in line]


def test_runs_tell_their_generation_or_the_commit_that_came_after(looked_at: Program) -> None:
    runs = looked_at("runs", "--json").json["runs"]
    assert [(run["run"], run["before"], run["after"], run["commit"]) for run in runs] == [
        (1, 0, 1, 1), (2, 1, 2, 1), (3, 1, 2, None)
    ]  # fmt: skip
    lines = looked_at("runs").out.splitlines()
    assert ["  commit 1  " in line for line in lines] == [True, True, False]
    assert ["  generation 2  " in line for line in lines] == [False, False, True]
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


@pytest.mark.parametrize(("path", "styles"), [("c.txt", 1), ("new.txt", 0)])
def test_blame_is_dimmed_where_it_tells_of_what_a_commit_has_ended(looked_at: Program, path: str, styles: int) -> None:
    with Terminal(looked_at.project, ["blame", path]) as terminal:
        assert terminal.wait() == 0
        assert terminal.seen.count("\x1b[2m") == styles
        assert f"{path}: written, " in terminal.text


@pytest.fixture(scope="module")
def with_a_long_command(tmp_path_factory: pytest.TempPathFactory, traces: object) -> Iterator[Program]:
    """Return one with a run more, whose command is long; tests change nothing in it."""
    with with_a_part_committed(tmp_path_factory.mktemp("long") / "project") as program:
        program("run", "sh", "-c", f": {'日本語 ' * 30}; exit 3", code=3)
        program.wait_for_watcher()
        yield program


@pytest.mark.parametrize("columns", [80, 200])
def test_a_run_is_one_line_of_the_terminal_however_long_its_command_is(
    with_a_long_command: Program, columns: int
) -> None:
    with Terminal(with_a_long_command.project, ["log"], size=(columns, 24), COLUMNS=str(columns)) as terminal:
        assert terminal.wait() == 0
        lines = [line for line in terminal.screen.splitlines() if not line.startswith("note: ")]
        assert all(re.match(r"[\d-]+ [\d:]+ +\d? +(run|snapshot|commit) ", line) for line in lines), terminal.screen
        assert re.search(r"  run       4: sh -c ': .*…  \(exit 3, ", lines[-1])
    with Terminal(with_a_long_command.project, ["runs"], size=(columns, 24), COLUMNS=str(columns)) as terminal:
        assert terminal.wait() == 0
        lines = terminal.screen.splitlines()
        assert len(lines) == 4
        assert re.search(r"  sh -c '.*…$", lines[-1])
    assert f"{'日本語 ' * 30}; exit 3'  (exit 3, " in with_a_long_command("log").out


def test_blame_names_the_run_and_the_commit_that_made_it_real(committed: Program) -> None:
    committed("abort", "--yes")
    assert committed("blame", "--json", "a.txt").json["run"] == 2
    assert ", commit 1, run 2: sh -c " in committed("blame", "a.txt").out
    assert committed("blame", "gone.txt").out.startswith("gone.txt: deleted, ")
    assert committed("blame", "--json", "dir").json["what"] == "as in base"
    (committed.project / "a.txt").write_text("of the host\n")
    assert committed("blame", "a.txt").out.endswith("; base has changed since\n")


def test_log_blame_and_runs_tell_earlier_commits_after_several_more(committed: Program) -> None:
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
    with program.mounted("--root", "/"):
        yield program


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


WAYS_TO_COMMIT = ("all", "after each", "in parts", "undone and again")


@pytest.mark.parametrize("commits", points(WAYS_TO_COMMIT, "ways to commit", some=2))
def test_the_diff_of_a_run_is_the_same_before_its_commit_and_after(varied: Program, commits: str) -> None:
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


def test_restore_brings_back_a_version_of_a_run_after_its_commit(varied: Program) -> None:
    seen: dict[int, dict[str, object]] = {}
    view = Path(varied.daemon["mountpoint"]) / str(varied.project)[1:]
    for run, script in enumerate((EVERYTHING, AGAIN, "rm -r dir text; echo third > third"), 1):
        varied("run", "sh", "-c", script)
        seen[run] = content(view)
        if run > 1:  # the second commit has what two runs did
            varied("commit", "--yes")
    for run, then in seen.items():
        names = sorted({path.partition("/")[0] for found in (then, seen[3]) for path in found})
        varied("restore", "--from", "run", str(run), *names)
        assert content(view) == then, f"run {run}"
        assert content(varied.project) == seen[3]
        varied("travel", "base", "--force")


def test_a_file_is_read_as_a_run_left_it_after_its_commit(looked_at: Program) -> None:
    assert looked_at("cat", "run 1:a.txt").out == "ONE\n"
    assert looked_at("cat", "run 2:c.txt").out == "b\nc\n"
    assert looked_at("cat", "run 3:a.txt").out == "ONE\ntwo\nthree\n"
    assert looked_at("ls", "run 1:.").out.split() == [".yolofs.toml", "a.txt", "dir/"]
    assert "\n-ONE\n+ONE\n" not in looked_at("diff", "run 1:a.txt", "run 2:a.txt").out
    assert "\n ONE\n+two\n" in looked_at("diff", "run 1:a.txt", "run 2:a.txt").out
    assert "\n ONE\n+two\n+three\n" in looked_at("diff", "run 1:a.txt", ":a.txt").out


def test_what_a_run_left_before_the_commit_comes_back_without_touching_base(committed: Program) -> None:
    said = committed("restore", "--from", "run", "1", "a.txt").err
    assert "brought back from run 1; to undo that: yolofs travel" in said
    assert committed("cat", ":a.txt").out == "ONE\n"
    assert (committed.project / "a.txt").read_text() == "ONE\ntwo\n"


def test_a_version_of_a_run_that_base_has_not_any_more_is_refused_with_the_reason(worked: Program) -> None:
    worked("commit", "--yes")
    (worked.project / "new.txt").write_text("the host's\n")
    said = worked.refused("restore", "--from", "run", "2", "new.txt", code=1)
    assert "new.txt: what run 2 has there is not kept, as base has changed since" in said
    assert f"hint: which other versions there were: yolofs log -- {worked.project}/new.txt\n" in said
    assert worked.refused("cat", "run 2:new.txt", code=1)


def test_a_failure_to_read_what_a_run_left_is_no_change_of_base(worked: Program) -> None:
    worked("commit", "--yes")
    with Session.open(os.fsencode(worked.project), SessionAccess.READ) as session:
        files = named_state(session, "run 2").files
        file = files.look(RelPath(os.fsencode(worked.project)[1:] + b"/new.txt"))
        assert file is not None
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                files.descriptor(file)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_run_whose_commit_is_not_kept_says_so(worked: Program) -> None:
    worked("commit", "--yes")
    for number in (2, 3):
        worked("run", "sh", "-c", f"echo {number} > number")
        worked("commit", "--yes")
    (worked.project / ".yolofs.toml").write_text("scratch = []\nkeep_commits = { count = 1 }\n")
    worked.trust()
    worked("gc")
    said = worked.refused("restore", "--from", "run", "1", "a.txt", code=2)
    assert "what run 1 left was dropped, or its commit is no longer kept" in said
    assert "hint: yolofs runs" in said


def test_a_run_that_changed_nothing_left_what_it_found(worked: Program) -> None:
    worked("run", "cat", "a.txt")
    worked("run", "sh", "-c", "echo later > a.txt")
    assert worked("cat", "run 3:a.txt").out == "ONE\ntwo\n"
    worked("commit", "--yes")
    assert worked("cat", "run 3:a.txt").out == "ONE\ntwo\n"


def test_a_run_without_a_generation_says_that_it_has_none(worked: Program) -> None:
    worked("run", "--no-snapshot", "sh", "-c", "echo three > a.txt")
    said = worked.refused("restore", "--from", "run", "3", "a.txt", code=2)
    assert "run 3 made no generation when it ended, so what it left is not known" in said
    assert "hint: yolofs timeline has the generations; what it changed: yolofs log --run 3" in said


def test_a_hunk_is_not_dropped_to_what_stood_on_another_base(looked_at: Program) -> None:
    (hunk, *_) = looked_at("hunks", "--json", "--", "a.txt").json["hunks"]
    said = looked_at.refused("restore", "--from", "run", "1", "--hunk", hunk["id"], code=2)
    assert "run 1 stands on base as it was before a later commit, so no single hunk can be taken from it" in said
    assert "hint: whole paths can: yolofs restore --from run 1 PATH" in said


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


def test_a_file_that_stays_staged_keeps_all_runs_that_made_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "dir").mkdir(parents=True)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    for name in ("text", "dir/in", "gone", "other"):
        (project / name).write_text("1\n2\n3\n")
    program = Program(project)
    program.start_session()
    program("mount", "--root", "/")
    program("run", "sh", "-c", "sed -i s/1/one/ text; echo 4 >> dir/in; echo 4 >> gone")
    program("run", "sh", "-c", "sed -i s/2/two/ text; echo 5 >> dir/in; rm gone; echo other >> other")
    program("run", "sh", "-c", "mv dir moved; echo 6 >> moved/in; echo only > alone")
    program("commit", "--yes", "other")
    left = {line.split()[4]: line for line in program("log", "-v", "1..").out.splitlines()}
    left |= {line.split()[4]: line for line in program("log", "-v").out.splitlines() if "(staged)" in line}
    assert left["text"].endswith("[runs 1, 2]")
    assert left["moved/in"].endswith("[runs 1, 2, 3]")
    assert left["alone"].endswith("[run 3]")
    assert " keep " in program("log", "--run", "1").out
    kept = [one for one in program("log", "--json").json["records"] if one["kind"] == "keep" and "run" in one]
    assert {one["path"].rpartition("/")[2]: (one["run"], one.get("also")) for one in kept}["text"] == (2, [1])
    program("commit", "--yes")
    assert [one["runs"] for one in program("commits", "--json").json["commits"]] == [[2], [1, 2, 3]]
    program("unmount", "--force")


def test_blame_names_no_commit_that_was_undone(worked: Program) -> None:
    (worked.project / "b.txt").write_text("1\n")
    worked("run", "sh", "-c", "echo 2 > b.txt")
    worked("commit", "--yes", "b.txt")
    worked("run", "sh", "-c", "echo 3 > b.txt")
    worked("commit", "--yes", "b.txt")
    assert "commit 2, run 4" in worked("blame", "b.txt").out
    worked("undo", "--yes")
    worked("restore", "b.txt")
    assert "commit 1, run 3" in worked("blame", "b.txt").out
    worked("undo", "--yes", "1")
    worked("restore", "b.txt")
    assert worked("blame", "b.txt").out == "b.txt: as in base\n"
    worked("undo", "--yes", "4")
    worked("restore", "b.txt")
    assert "commit 1, run 3" in worked("blame", "b.txt").out


def test_blame_tells_after_an_undo_and_a_redo_who_wrote_a_file_and_not_who_moved_it(worked: Program) -> None:
    worked("run", "sh", "-c", "echo 1 > was")
    worked("run", "sh", "-c", "mv was is")
    by_the_writer = "run 3: sh -c 'echo 1 > was'"
    assert by_the_writer in worked("blame", "is").out
    worked("commit", "--yes")
    for _ in range(2):
        assert f"commit 1, {by_the_writer}" in worked("blame", "is").out
        worked("undo", "--yes")
        assert f"generation 1, {by_the_writer}" in worked("blame", "is").out
        number = len(worked("commits", "--json").json["commits"])
        worked("undo", "--yes", str(number))


def test_blame_tells_after_an_undo_who_wrote_a_file_and_not_who_moved_its_directory(worked: Program) -> None:
    (worked.project / "was/deep").mkdir(parents=True)
    (worked.project / "was/deep/file").write_text("1\n")
    worked("run", "sh", "-c", "mv was/deep was/down; echo 2 >> was/down/file")
    worked("run", "sh", "-c", "mv was is")
    by_the_writer = "run 3: sh -c 'mv was/deep was/down; echo 2 >> was/down/file'"
    assert by_the_writer in worked("blame", "is/down/file").out
    worked("commit", "--yes")
    assert f"commit 1, {by_the_writer}" in worked("blame", "is/down/file").out
    worked("undo", "--yes")
    assert f"generation 1, {by_the_writer}" in worked("blame", "is/down/file").out


def test_blame_tells_of_what_was_renamed_who_had_written_it_before(worked: Program) -> None:
    (worked.project / "was/deep").mkdir(parents=True)
    (worked.project / "was/deep/file").write_text("1\n")
    (worked.project / "was/other").write_text("1\n")
    worked("run", "sh", "-c", "echo 2 >> was/deep/file")
    worked("commit", "--yes", "was")
    written = ", commit 1, run 3: sh -c 'echo 2 >> was/deep/file'"
    for number, (old, new) in enumerate([("was", "is"), ("is/deep", "is/down"), ("is", "goes")], 2):
        worked("run", "sh", "-c", f"mv {old} {new}")
        place = {"is": "is/deep/file", "is/down": "is/down/file"}.get(new, "goes/down/file")
        for when in ("generation", f"commit {number}"):
            first, second = worked("blame", place).out.splitlines()
            assert first.startswith(f"{place}: renamed, ")
            assert f", {when}" in first
            assert f", run {number + 2}: sh -c 'mv {old} {new}'" in first
            assert second.startswith("was/deep/file: written, ")
            assert second.endswith(written)
            if when == "generation":
                worked("commit", "--yes", old, new)
    document = worked("blame", "--json", "goes/down/file").json
    assert (document["what"], document["commit"]) == ("renamed", 4)
    assert document["before_rename"]["path"].endswith("was/deep/file")
    assert document["before_rename"]["run"] == 3
    assert len(worked("blame", "goes/other").out.splitlines()) == 1
    assert "is/other: renamed, " in worked("blame", "is/other").out
    worked.refused("blame", "goes/nosuch", code=2)
    (worked.project / "goes/down/file").write_text("of the host\n")
    assert worked("blame", "goes/down/file").out.endswith(f"{written}; base has changed since\n")


def test_a_travel_to_a_run_says_what_leads_there(looked_at: Program) -> None:
    said = looked_at.refused("travel", "run 1", code=7)
    assert "hint: yolofs runs tells which generation it made; a part of it: yolofs restore --from 'run 1' PATH" in said


def test_the_log_has_a_line_for_an_abort_and_for_the_runs_before_it(worked: Program) -> None:
    worked("abort", "--yes")
    worked("run", "sh", "-c", "echo three >> a.txt")
    worked("commit", "--yes")
    worked("run", "sh", "-c", "echo four >> a.txt")
    worked("abort", "--yes")
    lines = worked("log").out.splitlines()
    words = [line[24:].split()[0] for line in lines]
    assert words == ["run", "run", "abort", "run", "commit", "run", "abort"]
    assert [line[24:].split()[1] for line in lines if "  run  " in line] == ["1:", "2:", "3:", "4:"]
    assert worked("log", "-v").out.count("  abort\n") == 2
    records = worked("log", "--json").json["records"]
    assert [one["kind"] for one in records if one.get("aborted") or one["kind"] == "abort"] == [
        *("run", "run-end") * 2, "abort", "run", "run-end", "abort",
    ]  # fmt: skip
    assert "abort" not in worked("log", "0..").out
    of_run = worked("log", "--run", "2").out.splitlines()
    assert [line[24:].split()[0] for line in of_run] == ["run", "run-end", "abort"]


def test_an_abort_of_what_no_run_has_made_is_in_the_log(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project)
    program.start_session()
    with program.mounted() as view:
        (view / "a").write_text("a")
        program("abort", "--yes")
        assert program("log").out.splitlines()[0].endswith("  abort")


def test_what_a_commit_has_left_is_told_with_no_earlier_time_than_the_commit(committed: Program) -> None:
    """It is written down before the commit is done, which may take a while."""
    done = committed.session / "commits/1/done"
    left_ns = next(
        record["time_ns"]
        for record in committed("log", "--json").json["records"]
        if record.get("name") == "left by commit 1"
    )
    os.utime(done, ns=(left_ns + 5 * 10**9,) * 2)
    for words in (("log",), ("log", "-v"), ("timeline",)):
        lines = committed(*words).out.splitlines()
        (at,) = (number for number, line in enumerate(lines) if re.search(r"(?<!left by )commit +1$", line))
        (commit,) = re.findall(r"\d\d:\d\d:\d\d", lines[at])
        left = [line for line in lines[at + 1 :] if "left by commit 1" in line]
        assert [re.findall(r"\d\d:\d\d:\d\d", line) for line in left] == [[commit]]
