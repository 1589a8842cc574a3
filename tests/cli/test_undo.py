"""``yolofs undo`` and ``commits``: base is put back, and what a commit had applied is
staged again.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.undone import Committed, committed, view_of
from tests.support.fault_points import points
from tests.support.looks import looks
from tests.support.planting import interrupt
from tests.support.program import Program

__all__ = ["committed"]

pytestmark = pytest.mark.mount


def test_an_undo_puts_base_back_and_leaves_the_view_as_it_is(
    committed: Committed,
) -> None:
    yolofs, before = committed
    after = looks(yolofs.project)
    assert yolofs("undo", "--yes").err.endswith("it had applied is staged again: yolofs status\n")
    assert looks(yolofs.project) == before
    assert view_of(yolofs) == after
    yolofs("commit", "--yes")  # which does it again
    assert looks(yolofs.project) == after
    assert yolofs("undo", "3", "--yes", "--json").json == {
        "commit": 4,
        "undone": 3,
        "steps": 14,
        "stays": [],
        "held": [],
        "copies": [],
        "as_now": [],
    }
    assert looks(yolofs.project) == before
    told = yolofs("commits", "--json").json["commits"]
    assert [(one["undoes"], one["undone_by"]) for one in told] == [(None, [2]), (1, []), (None, [4]), (3, [])]
    assert "there is no commit to undo" in yolofs.refused("undo", "--yes", code=1)
    refused = yolofs.refused("undo", "3", "--yes", code=1)
    assert "commit 3 is undone already, by commit 4" in refused
    assert "what it had applied is staged: yolofs status" in refused
    refused = yolofs.refused("undo", "1", "--yes", code=1)  # commit 3 has applied it again, and is undone, too
    assert "commit 1 is undone already, by commit 2" in refused
    assert "hint: what it had applied was staged again then, and a later commit may have applied it" in refused
    yolofs("undo", "4", "--yes")  # an undo is a commit
    assert looks(yolofs.project) == after


def test_programs_go_on_with_files_that_they_have_open_during_an_undo(committed: Committed) -> None:
    yolofs, before = committed
    with yolofs.mounted() as view, (view / "a.txt").open() as reading, (view / "new/file").open("a") as writing:
        seen = looks(view)
        number = (view / "a.txt").stat().st_ino
        assert reading.readline() == "one\n"
        yolofs("undo", "--yes")
        assert looks(yolofs.project) == before
        assert looks(view) == seen
        assert (view / "a.txt").stat().st_ino == number
        assert reading.read() == "two\nthree\n"
        writing.write("more\n")
        writing.flush()
        assert (view / "new/file").read_text() == "new\nmore\n"
        yolofs("commit", "--yes")
    assert (yolofs.project / "new/file").read_text() == "new\nmore\n"


def test_a_directory_that_comes_back_counts_with_all_that_is_in_it(committed: Committed) -> None:
    yolofs, _ = committed
    (yolofs.project / "gone").mkdir()
    (yolofs.project / "gone/x").write_text("again\n")
    (yolofs.project / "gone/deep").mkdir()
    with yolofs.mounted() as view:
        for name in ("dir", "gone"):
            shutil.rmtree(view / name)
    yolofs("commit", "--yes")
    shown = yolofs("undo", "--dry-run").out
    assert "A  dir/  (and " in shown
    assert "A  gone/  (and 2 in it)" in shown
    removed = yolofs("commits").out.splitlines()[-1]
    count = re.findall(r"(\d+) deleted", removed)[0]
    assert f"{count} changes: {count} added" in shown
    assert "A  gone/deep/\n" in yolofs("undo", "--dry-run", "--unfold").out
    yolofs("undo", "--yes")
    assert f"  {count} added  [undoes commit 2]" in yolofs("commits").out
    yolofs("undo", "3", "--yes")  # which removes them again
    assert f"  {count} deleted  [undoes commit 3]" in yolofs("commits").out


def test_an_undo_of_some_paths_leaves_the_others(committed: Committed) -> None:
    yolofs, before = committed
    after = looks(yolofs.project)
    yolofs("undo", "1", "a.txt", "new", "--yes")
    now = looks(yolofs.project)
    assert now["a.txt"] == before["a.txt"]
    assert "new" not in now
    assert now["dir/moved"] == after["dir/moved"]
    told = yolofs("commits", "--json").json["commits"]
    assert [(one["undone_by"], one["undone"]) for one in told] == [([2], False), ([], False)]
    assert "[undone in part by commit 2]" in yolofs("commits").out
    half = yolofs("undo", "1", "other name of y", "--yes", code=16)
    assert "goes together with" in half.err + yolofs("undo", "1", "other name of y", "--dry-run", code=16).err
    assert looks(yolofs.project) == now
    yolofs("undo", "1", "--yes")  # the rest
    assert {path: one[1] for path, one in looks(yolofs.project).items()} == {
        path: one[1] for path, one in before.items()
    }


def test_undoing_a_commit_part_by_part_undoes_all_of_it(committed: Committed) -> None:
    yolofs, before = committed
    first = yolofs("undo", "1", "a.txt", "--yes").err
    assert "commit 1 is undone in part by commit 2;" in first
    assert "[undone in part by commit 2]" in yolofs("commits").out
    rest = yolofs("undo", "--yes").err
    assert "commit 1 is undone by commit 3;" in rest
    assert "stays:" not in rest
    assert looks(yolofs.project) == before
    assert "[undone by commits 2 and 3]" in yolofs("commits").out
    assert "commit 1 is undone already, by commits 2 and 3" in yolofs.refused("undo", "1", "--yes", code=1)
    yolofs("undo", "2", "--yes")  # what that had taken back is applied again
    assert "[undone in part by commit 3]" in yolofs("commits").out
    assert "taken back and applied again: yolofs undo 4" in yolofs("undo", "1", "--yes", code=16).err
    assert (yolofs.project / "a.txt").read_text() == "one\ntwo\nthree\n"
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before


def test_an_undo_that_was_interrupted_goes_on_or_back(
    committed: Committed,
) -> None:
    yolofs, before = committed
    after = looks(yolofs.project)
    cases = [(way, step) for way in ("--roll-back", "--continue") for step in (0, 3, 7)]
    for way, step in points(cases, "interrupted undo", some=3):
        expected = after if way == "--roll-back" else before
        interrupt(yolofs.project, step, "undo", "--yes")
        said = yolofs.refused("undo", "--yes", code=12)
        assert re.match(r"yolofs: the undo of commit \d+ was interrupted: ", said), said
        for words in (("undo", "--dry-run"), ("gc", "--dry-run"), ("commit", "--dry-run")):
            assert yolofs.refused(*words, code=12).count("was interrupted") == 1
        yolofs("commit", way)
        assert looks(yolofs.project) == expected
        undone = re.match(r"yolofs: the undo of commit (\d+) was interrupted: ", said)
        assert undone is not None
        assert re.search(rf"so base \(.+\) is partly as it was before commit {undone[1]}; ", said) or not step
        if way == "--continue":
            assert view_of(yolofs) == after
            yolofs("commit", "--yes")
            assert looks(yolofs.project) == after


def test_a_commit_that_is_done_is_not_rolled_back_but_undone(committed: Committed) -> None:
    """The daemon may have finished it when its command was killed."""
    yolofs, _ = committed
    done = "no commit was interrupted; nothing to do (commit 1 is done; to take it back: yolofs undo 1)\n"
    for way in ("--roll-back", "--continue"):
        assert yolofs("commit", way).err == done


def test_an_undo_of_an_undo_says_that_the_commit_is_applied_again(
    committed: Committed,
) -> None:
    yolofs, _ = committed
    yolofs("undo", "--yes")
    told = yolofs("undo", "2", "--yes").err
    assert told == (
        "commit 2 is undone by commit 3; what it had taken back is applied again; to undo that: yolofs undo 3\n"
    )
    assert "no changes" in yolofs("status").out
    assert "staged again" not in yolofs("timeline").out.rpartition("commit 3\n")[2]
    assert "what it had taken back is in base again" in yolofs.refused("undo", "2", "--yes", code=1)


@pytest.mark.parametrize("is_mounted", [False, True])
def test_an_undo_of_an_undo_leaves_nothing_staged(committed: Committed, is_mounted: bool) -> None:
    yolofs, _ = committed
    after = looks(yolofs.project)
    with yolofs.mounted() if is_mounted else contextlib.nullcontext():
        yolofs("undo", "--yes")
        yolofs("undo", "2", "--yes")
        assert looks(yolofs.project) == after
        assert "no changes" in yolofs("status").out
        yolofs("commit", "--yes")
        assert "  4  " not in yolofs("commits", "--all").out


def test_changes_staged_since_an_undo_stay_when_that_is_undone(
    committed: Committed,
) -> None:
    yolofs, _ = committed
    yolofs("undo", "--yes")
    with yolofs.mounted() as view:
        (view / "new/file").chmod(0o600)
        (view / "new/late").write_text("late\n")
        shown = looks(view)
    yolofs("undo", "2", "--yes")
    assert view_of(yolofs) == shown
    yolofs("commit", "--yes")
    assert looks(yolofs.project) == shown


def test_an_undo_of_some_paths_names_what_stays_at_these_paths_alone(
    committed: Committed,
) -> None:
    yolofs, _ = committed
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("again\n")
    yolofs("commit", "--yes")
    assert "stays:" in yolofs("undo", "1", "--dry-run", code=16).err
    assert "stays:" not in yolofs("undo", "1", "new", "--dry-run").err
    assert f"stays: {yolofs.project}/a.txt" in yolofs("undo", "1", "a.txt", "--dry-run", code=16).err


def test_paths_that_are_undone_only_together_are_told_with_one_command(
    committed: Committed,
) -> None:
    yolofs, _ = committed
    project = yolofs.project
    paths = " ".join(f"{project}/gone{name}" for name in ("", "/deep", "/deep/y", "/x"))
    command = f"; yolofs undo 1 {paths} '{project}/other name of y'\n"
    assert command in yolofs("undo", "1", "other name of y", "--dry-run", code=16).err
    assert command in yolofs("undo", "1", "other name of y", "--yes", code=16).err


def test_commits_are_counted_in_the_words_of_status(
    committed: Committed,
) -> None:
    yolofs, _ = committed
    line = yolofs("commits").out
    assert " deleted, 1 renamed" in line
    assert "removed" not in line


def test_an_undo_of_no_commit_is_refused(committed: Committed) -> None:
    yolofs, _ = committed
    assert "there is no commit 7\n" in yolofs.refused("undo", "7", "--yes", code=1)
    assert "a.txt is not the number of a commit" in yolofs.refused("undo", "a.txt", "--yes", code=2)
    assert "hint: yolofs undo --yes 1 a.txt --json\n" in yolofs.refused("undo", "1", "a.txt", "--json", code=2)
    assert "hint: yolofs undo --yes 1\n" in yolofs("undo", "1", code=2).err
    assert "--dry-run prints no JSON" in yolofs.refused("undo", "1", "--json", "--dry-run", code=2)
    asked = yolofs("undo", code=2)
    assert "yolofs undo --yes" in asked.err
    plan = yolofs.session / "commits/1/plan.json"
    plan.write_bytes(plan.read_bytes().replace(b"}", b"} ", 1))
    assert "commit 1 is not undone: its plan was changed" in yolofs.refused("undo", "--yes", code=15)


def test_an_undo_of_a_path_that_is_nowhere_is_refused(committed: Committed) -> None:
    yolofs, _ = committed
    for options in ((), ("--yes",), ("--dry-run",)):
        said = yolofs.refused("undo", "1", *options, "nosuch", code=2)
        assert f"there is nothing at {yolofs.project}/nosuch, and commit 1 changed nothing there" in said
        assert "hint: yolofs undo 1 --dry-run" in said
    assert "nothing of commit 1 is to be undone" in yolofs("undo", "1", "--yes", "dir/b.txt").err
    yolofs("undo", "1", "--yes", "gone")  # the other name of y stays what it is, so it need not be named
    assert (yolofs.project / "gone/deep/y").samefile(yolofs.project / "other name of y")


def test_a_path_at_which_the_commit_changed_nothing_is_told(committed: Committed) -> None:
    yolofs, _ = committed
    (yolofs.project / "host's own").write_text("host\n")
    told = f"{yolofs.project}/host's own: commit 1 changed nothing there\n"
    for options in (("--yes",), ("--dry-run",)):
        assert yolofs("undo", "1", *options, "host's own").err.startswith(told)
    said = yolofs("undo", "1", "--yes", "host's own", "a.txt").err
    assert said.startswith(told)
    assert said.count("changed nothing there") == 1
    assert "commit 1 is undone in part by commit 2" in said


def test_an_undo_at_whose_paths_all_stays_has_exit_code_16(yolofs: Program) -> None:
    for text in ("1", "2"):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(text)
        yolofs("commit", "--yes")
    assert "nothing of commit 1 is undone at the named paths" in yolofs("undo", "1", "a.txt", "--yes", code=16).err
    told = yolofs("undo", "1", "--yes", code=16).err
    assert "nothing of commit 1 is undone, as 1 path stays\n" in told


@pytest.mark.parametrize("named", ["old", "new", "old directory", "new directory"])
@pytest.mark.some(2)
def test_a_rename_is_undone_by_either_name(tmp_path: Path, named: str) -> None:
    yolofs = Program(tmp_path)
    (tmp_path / "old").write_text("file\n")
    (tmp_path / "old directory").mkdir()
    (tmp_path / "old directory/inside").write_text("inside\n")
    yolofs.start_session()
    with yolofs.mounted() as view:
        (view / "old").rename(view / "new")
        (view / "old directory").rename(view / "new directory")
    yolofs("commit", "--yes")
    yolofs("undo", "1", "--yes", named)
    back = "old directory" if "directory" in named else "old"
    there = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert there == ({"old directory", "new"} if "directory" in named else {"old", "new directory"})
    assert (tmp_path / back).exists()


@pytest.mark.parametrize("kind", ["link", "link to a directory", "file", "fifo"])
def test_a_directory_that_something_else_replaced_comes_back_with_the_links_below_it(
    yolofs: Program, kind: str
) -> None:
    project = yolofs.project
    (project / "top/sub").mkdir(parents=True)
    (project / "stays").write_text("two names\n")
    (project / "top/sub/link").hardlink_to(project / "stays")
    before = looks(project)
    with yolofs.mounted() as view:
        (view / "top/sub/link").unlink()
        (view / "top/sub").rmdir()
        (view / "top").rmdir()
        match kind:
            case "link":
                (view / "top").symlink_to("nowhere")
            case "link to a directory":
                (view / "top").symlink_to("dir")
            case "file":
                (view / "top").write_text("a file\n")
            case _:
                os.mkfifo(view / "top")
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    assert looks(project) == before
    assert (project / "top/sub/link").samefile(project / "stays")


@pytest.mark.parametrize("kind", ["file", "link", "directory"])
def test_a_move_that_was_applied_again_stays_with_what_it_had_replaced(yolofs: Program, kind: str) -> None:
    project = yolofs.project
    (project / "old").write_text("moves\n")
    (project / "there").write_text("goes\n")
    if kind == "link":
        (project / "other").hardlink_to(project / "old")
    if kind == "directory":
        for name in ("old", "there"):
            (project / name).rename(project / "inside")
            (project / name).mkdir()
            (project / "inside").rename(project / name / "inside")
    before = looks(project)
    with yolofs.mounted() as view:
        if kind == "directory":
            (view / "there/inside").unlink()
        (view / "old").rename(view / "there")
        (view / "new").write_text("new\n")
    yolofs("commit", "--yes")
    after = looks(project)
    yolofs("undo", "--yes")
    yolofs("undo", "2", "--yes")
    told = yolofs("undo", "1", "--yes", code=16).err
    assert f"{project}/there" in told
    assert "it was taken back and applied again: yolofs undo 3" in told
    assert not (project / "new").exists()
    yolofs("undo", "4", "--yes")
    assert looks(project) == after
    yolofs("undo", "3", "--yes")
    assert looks(project) == before


def test_a_move_that_is_taken_back_with_what_it_had_replaced_is_not_in_the_way_of_the_rest(yolofs: Program) -> None:
    project = yolofs.project
    (project / "b.txt").write_text("b\n")
    before = looks(project)
    with yolofs.mounted() as view:
        (view / "b.txt").rename(view / "a.txt")
        (view / "new").write_text("new\n")
    yolofs("commit", "--yes")
    yolofs("undo", "1", "a.txt", "--yes")
    done = yolofs("undo", "1", "--yes")
    assert "stays" not in done.err
    assert looks(project) == before


@pytest.mark.parametrize("named", ["gone/link", "gone/file", "gone"])
def test_a_removed_directory_with_hard_links_comes_back_as_a_whole(yolofs: Program, named: str) -> None:
    """It is made anew, but no part of it comes back alone: nothing would bring back the others."""
    project = yolofs.project
    (project / "gone/inner").mkdir(parents=True)
    for name in ("gone/file", "gone/inner/file"):
        (project / name).write_text("x\n")
    (project / "gone/link").hardlink_to(project / "a.txt")
    before = looks(project)
    with yolofs.mounted() as view:
        shutil.rmtree(view / "gone")
        (view / "new").write_text("new\n")
    yolofs("commit", "--yes")
    done = yolofs("undo", "1", "--yes", named, code=0 if named == "gone" else 16)
    assert (named == "gone") is (project / "gone").exists()
    assert named == "gone" or f"it goes together with {project}/gone; yolofs undo 1 " in done.err
    yolofs("undo", "1", "--yes")
    assert looks(project).keys() == before.keys()
    assert (project / "gone/link").samefile(project / "a.txt")
