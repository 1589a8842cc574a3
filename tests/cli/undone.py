"""``yolofs undo`` and ``commits``: base is put back, and what a commit had applied is
staged again.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.property.core_driver import CoreDriver
from tests.security.planting import interrupt
from tests.support.looks import looks

pytestmark = pytest.mark.mount


@pytest.fixture
def committed(yolofs: Program) -> tuple[Program, dict[str, tuple[object, ...]]]:
    """A project after its first commit, which changed, made, moved and removed; with what it was
    before.
    """
    project = yolofs.project
    for name in ("gone/x", "gone/deep/y", "moved"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"{name}\n")
    os.link(project / "gone/deep/y", project / "other name of y")
    (project / "a.txt").chmod(0o640)
    before = looks(project)
    with yolofs.mounted() as view:
        with (view / "a.txt").open("a") as file:
            file.write("three\n")
        (view / "new").mkdir()
        (view / "new/file").write_text("new\n")
        (view / "moved").rename(view / "dir/moved")
        for name in ("gone/x", "gone/deep/y"):
            (view / name).unlink()
        for name in ("gone/deep", "gone"):
            (view / name).rmdir()
    yolofs("commit", "--yes")
    return yolofs, before


def view_of(yolofs: Program) -> dict[str, tuple[object, ...]]:
    with yolofs.mounted() as view:
        return looks(view)


def test_base_is_what_it_was_and_the_view_what_it_is(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
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
    }
    assert looks(yolofs.project) == before
    told = yolofs("commits", "--json").json["commits"]
    assert [(one["undoes"], one["undone_by"]) for one in told] == [(None, [2]), (1, []), (None, [4]), (3, [])]
    assert "there is no commit to undo" in yolofs.refused("undo", "--yes", code=1)
    assert "commit 3 is undone already, by commit 4" in yolofs.refused("undo", "3", "--yes", code=1)
    yolofs("undo", "4", "--yes")  # an undo is a commit
    assert looks(yolofs.project) == after


def test_programs_at_work_go_on(committed: tuple[Program, dict[str, tuple[object, ...]]]) -> None:
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


def test_an_undo_of_some_paths_leaves_the_others(committed: tuple[Program, dict[str, tuple[object, ...]]]) -> None:
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
    assert "goes together with" in half.err + yolofs("undo", "1", "other name of y", "--dry-run").err
    assert looks(yolofs.project) == now
    yolofs("undo", "1", "--yes")  # the rest
    assert {path: one[1] for path, one in looks(yolofs.project).items()} == {
        path: one[1] for path, one in before.items()
    }


def test_part_after_part_is_all_of_it(committed: tuple[Program, dict[str, tuple[object, ...]]]) -> None:
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


def test_what_the_host_has_changed_since_is_drift(committed: tuple[Program, dict[str, tuple[object, ...]]]) -> None:
    yolofs, before = committed
    time.sleep(0.05)  # a change by the host shows if it comes a tick of the clock later
    (yolofs.project / "a.txt").write_text("the host's\n")
    (yolofs.project / "new/by the host").write_text("the host's\n")
    now = looks(yolofs.project)
    told = yolofs.refused("undo", "--yes", code=9)
    assert "base has changed at 2 paths since commit 1" in told
    assert f"{yolofs.project}/a.txt" in told
    assert f"{yolofs.project}/new/by the host" in told
    assert looks(yolofs.project) == now
    yolofs("undo", "1", "dir", "moved", "--yes")  # other paths can be taken back
    assert (yolofs.project / "moved").exists()
    yolofs("undo", "1", "--yes", "--force")
    assert {path: one[1] for path, one in looks(yolofs.project).items()} == {
        path: one[1] for path, one in before.items()
    }
    shown = view_of(yolofs)
    assert shown["a.txt"][1] == b"the host's\n"  # nothing is lost: what it replaced is staged
    assert shown["new/by the host"][1] == b"the host's\n"


def test_of_an_older_commit_what_is_independent_goes_and_what_is_not_is_named(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
) -> None:
    yolofs, before = committed
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("again\n")
        (view / "new/later").write_text("later\n")
    yolofs("commit", "--yes")
    done = yolofs("undo", "1", "--yes", code=16)
    assert "yolofs: 3 paths stay as they are; all else of commit 1 is undone\n" in done.err
    assert "hint: what each needs is told above; then: yolofs undo 1\n" in done.err
    assert f"stays: {yolofs.project}/a.txt: commit 2 has changed it since" in done.err
    assert f"stays: {yolofs.project}/new/later: commit 2 has changed it since" in done.err
    assert f"stays: {yolofs.project}/new: something in it stays" in done.err
    assert "commit 1 is undone in part by commit 3" in done.err
    now = looks(yolofs.project)
    assert now["a.txt"][1] == b"again\n"
    assert sorted(path for path in now if path.startswith("new")) == ["new", "new/later"]
    for path in ("gone/deep/y", "other name of y", "moved"):
        assert now[path] == before[path]
    yolofs("undo", "2", "--yes")
    yolofs("undo", "1", "--yes")
    assert {path: one[1] for path, one in looks(yolofs.project).items()} == {
        path: one[1] for path, one in before.items()
    }


def test_an_undo_that_was_interrupted_goes_on_or_back(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
) -> None:
    yolofs, before = committed
    after = looks(yolofs.project)
    for way, expected in (("--roll-back", after), ("--continue", before)):
        for step in (0, 3, 7):
            interrupt(yolofs.project, step, "undo", "--yes")
            said = yolofs.refused("undo", "--yes", code=12)
            assert re.match(r"yolofs: the undo of commit \d+ was interrupted: ", said), said
            for words in (("undo", "--dry-run"), ("gc", "--dry-run"), ("commit", "--dry-run")):
                assert yolofs.refused(*words, code=12).count("was interrupted") == 1
            yolofs("commit", way)
            assert looks(yolofs.project) == expected
            if way == "--continue":
                assert view_of(yolofs) == after
                yolofs("commit", "--yes")
                assert looks(yolofs.project) == after


def test_an_undo_of_an_undo_says_that_the_commit_is_applied_again(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
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
def test_an_undo_of_an_undo_leaves_nothing_staged(
    committed: tuple[Program, dict[str, tuple[object, ...]]], is_mounted: bool
) -> None:
    yolofs, _ = committed
    after = looks(yolofs.project)
    with yolofs.mounted() if is_mounted else contextlib.nullcontext():
        yolofs("undo", "--yes")
        yolofs("undo", "2", "--yes")
        assert looks(yolofs.project) == after
        assert "no changes" in yolofs("status").out
        yolofs("commit", "--yes")
        assert "  4  " not in yolofs("commits", "--all").out


def test_what_was_staged_since_stays_when_an_undo_is_undone(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
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


def test_what_stays_is_told_of_the_paths_that_were_named_alone(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
) -> None:
    yolofs, _ = committed
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("again\n")
    yolofs("commit", "--yes")
    assert "stays:" in yolofs("undo", "1", "--dry-run").err
    assert "stays:" not in yolofs("undo", "1", "new", "--dry-run").err
    assert f"stays: {yolofs.project}/a.txt" in yolofs("undo", "1", "a.txt", "--dry-run").err


def test_what_goes_only_together_is_told_with_the_command_for_all_of_it(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
) -> None:
    yolofs, _ = committed
    project = yolofs.project
    command = f"; yolofs undo 1 {project}/gone/deep/y '{project}/other name of y'\n"
    assert command in yolofs("undo", "1", "other name of y", "--dry-run").err
    assert command in yolofs("undo", "1", "other name of y", "--yes", code=16).err


def test_commits_are_counted_in_the_words_of_status(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
) -> None:
    yolofs, _ = committed
    line = yolofs("commits").out
    assert " deleted, 1 renamed" in line
    assert "removed" not in line


def test_an_undo_of_no_commit_is_refused(committed: tuple[Program, dict[str, tuple[object, ...]]]) -> None:
    yolofs, _ = committed
    assert "there is no commit 7\n" in yolofs.refused("undo", "7", "--yes", code=1)
    assert "a.txt is not the number of a commit" in yolofs.refused("undo", "a.txt", "--yes", code=2)
    assert "no place for a question" in yolofs.refused("undo", "--json", code=2)
    asked = yolofs("undo", code=2)
    assert "yolofs undo --yes" in asked.err
    plan = yolofs.session / "commits/1/plan.json"
    plan.write_bytes(plan.read_bytes().replace(b"}", b"} ", 1))
    assert "commit 1 is not undone: its plan was changed" in yolofs.refused("undo", "--yes", code=15)


@pytest.mark.parametrize("written", ["a.txt", "other name"])
@pytest.mark.parametrize("removed", [None, "a.txt", "other name"])
def test_a_file_with_hard_links_that_was_changed_again_since(
    yolofs: Program, written: str, removed: str | None
) -> None:
    project = yolofs.project
    os.link(project / "a.txt", project / "other name")
    os.link(project / "a.txt", project / "dir/third")
    before = looks(project)
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("first\n")
        yolofs("commit", "--yes")
        (view / written).write_text("second\n")
        if removed is not None:
            (view / removed).unlink()
        shown = looks(view)
        yolofs("undo", "--yes")
        assert looks(project) == before
        assert looks(view) == shown
    assert view_of(yolofs) == shown
    yolofs("commit", "--yes")
    assert looks(project) == shown
    yolofs("undo", "3", "--yes")
    assert looks(project) == before
    assert view_of(yolofs) == shown


def test_a_path_that_is_nowhere_is_misspelt(committed: tuple[Program, dict[str, tuple[object, ...]]]) -> None:
    yolofs, _ = committed
    for options in ((), ("--yes",), ("--dry-run",)):
        said = yolofs.refused("undo", "1", *options, "nosuch", code=2)
        assert f"there is nothing at {yolofs.project}/nosuch, and commit 1 changed nothing there" in said
        assert "hint: yolofs undo 1 --dry-run" in said
    assert "nothing of commit 1 is to be undone" in yolofs("undo", "1", "--yes", "dir/b.txt").err
    yolofs("undo", "1", "--yes", "gone/deep/y")  # its other name stays what it is, so it need not be named
    assert (yolofs.project / "gone/deep/y").samefile(yolofs.project / "other name of y")


def test_a_path_that_stays_is_no_success(yolofs: Program) -> None:
    for text in ("1", "2"):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(text)
        yolofs("commit", "--yes")
    assert "nothing of commit 1 is undone at the named paths" in yolofs("undo", "1", "a.txt", "--yes", code=16).err
    told = yolofs("undo", "1", "--yes", code=16).err
    assert "nothing of commit 1 is undone, as 1 path stays\n" in told


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_is_in_a_directory_that_the_host_has_moved_is_told_with_what_to_do(
    committed: tuple[Program, dict[str, tuple[object, ...]]], force: tuple[str, ...]
) -> None:
    yolofs, _ = committed
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "dir/b.txt").write_text("new\n")
        (view / "a.txt").write_text("new\n")
    yolofs("commit", "--yes")
    (project / "dir").rename(project / "elsewhere")
    done = yolofs("undo", "2", "--yes", "--json", *force, code=16)
    assert [one["path"] for one in done.json["stays"]] == [f"{project}/dir/b.txt"]
    told = done.err
    assert "yolofs: 1 path stays as it is; all else of commit 2 is undone\n" in told
    why = f"the host has moved or removed its directory {project}/dir since; put that back, then: yolofs undo 2"
    assert f"stays: {project}/dir/b.txt: {why}\n" in told
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (project / "elsewhere/b.txt").read_text() == "new\n"
    (project / "elsewhere").rename(project / "dir")
    yolofs("undo", "2", "--yes")
    assert (project / "dir/b.txt").read_text() == "b\n"


def test_a_conflict_of_a_dry_run_is_named_by_its_whole_path(
    committed: tuple[Program, dict[str, tuple[object, ...]]],
) -> None:
    yolofs, _ = committed
    (yolofs.project / "a.txt").write_text("the host's\n")
    assert f"  {yolofs.project}/a.txt\n" in yolofs("undo", "--dry-run", code=9).err


def test_what_the_host_has_taken_away_may_still_be_undone_after_the_rest(yolofs: Program) -> None:
    for name in ("a", "b"):
        (yolofs.project / name).write_text("old\n")
    with yolofs.mounted() as view:
        for name in ("a", "b"):
            (view / name).write_text("new\n")
    yolofs("commit", "--yes")
    (yolofs.project / "a").unlink()
    assert "base has changed at 1 path" in yolofs("undo", "--yes", code=9).err
    assert "is undone in part by commit 2" in yolofs("undo", "1", "b", "--yes").err
    assert (yolofs.project / "b").read_text() == "old\n"
    assert [one["undone"] for one in yolofs("commits", "--json").json["commits"]] == [False, False]


@pytest.mark.parametrize("changed", ["nothing", "here", "in base"])
def test_a_directory_that_is_applied_again_is_no_drift(yolofs: Program, changed: str) -> None:
    """What came back in it was known then; what the host changes in it later is drift as ever."""
    new = "new/deep/file"
    with yolofs.mounted() as view:
        (view / new).parent.mkdir(parents=True)
        (view / new).write_text("new\n")
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    with yolofs.mounted() as view:  # else nothing of it would stay staged
        (view / "new/deep/early").write_text("early\n")
    yolofs("undo", "2", "--yes")
    assert yolofs("status", "--json").json["drift"] == []
    if changed == "nothing":
        return
    with yolofs.mounted() as view:
        (view / "new/deep/other").write_text("other\n")
    if changed == "here":
        yolofs("commit", "--yes")
        assert (yolofs.project / "new/deep/other").read_text() == "other\n"
        return
    (yolofs.project / new).write_text("by the host\n")
    assert [one["path"] for one in yolofs("status", "--json").json["drift"]] == [str(yolofs.project / "new")]
    yolofs("commit", "--yes", code=9)
    assert (yolofs.project / new).read_text() == "by the host\n"


@pytest.mark.parametrize("named", ["old", "new", "old directory", "new directory"])
def test_a_rename_is_undone_by_either_name(tmp_path: Path, named: str) -> None:
    yolofs = Program(tmp_path)
    (tmp_path / "old").write_text("file\n")
    (tmp_path / "old directory").mkdir()
    (tmp_path / "old directory/inside").write_text("inside\n")
    yolofs("init")
    with yolofs.mounted() as view:
        (view / "old").rename(view / "new")
        (view / "old directory").rename(view / "new directory")
    yolofs("commit", "--yes")
    yolofs("undo", "1", "--yes", named)
    back = "old directory" if "directory" in named else "old"
    there = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert there == ({"old directory", "new"} if "directory" in named else {"old", "new directory"})
    assert (tmp_path / back).exists()


def make_links_that_two_commits_write(yolofs: Program) -> Path:
    """Have two commits change a file with hard links, each with another file that the next one
    changes again; return the file.
    """
    links, other = yolofs.project / "links", yolofs.project / "other"
    links.write_text("base\n")
    os.link(links, yolofs.project / "second name")
    other.write_text("base\n")
    for number, text in enumerate(("one\n", "two\n", "three\n")):
        with yolofs.mounted() as view:
            if number < 2:
                (view / "second name").write_text(text)
            (view / "other").write_text(text)
        yolofs("commit", "--yes")
    return links


def test_what_was_written_in_place_is_taken_back_but_once(yolofs: Program) -> None:
    links = make_links_that_two_commits_write(yolofs)
    yolofs("undo", "2", "--yes", code=16)
    assert links.read_text() == "one\n"
    again = yolofs("undo", "2", "--yes", code=16)
    assert "nothing of commit 2 is to be undone" in again.err
    yolofs("undo", "1", "--yes", code=16)
    assert links.read_text() == "base\n"
    for number in ("2", "1"):
        assert f"nothing of commit {number} is to be undone" in yolofs("undo", number, "--yes", code=16).err
        assert links.read_text() == "base\n"
    assert [one["commit"] for one in yolofs("commits", "--json").json["commits"]] == [1, 2, 3, 4, 5]


def test_an_undo_without_a_number_comes_down_to_the_first_commit(yolofs: Program) -> None:
    links = make_links_that_two_commits_write(yolofs)
    yolofs("undo", "2", "--yes", code=16)
    for _ in range(3):
        yolofs("undo", "--yes")
    assert (links.read_text(), (yolofs.project / "other").read_text()) == ("base\n", "base\n")
    assert all(one["undone"] for one in yolofs("commits", "--json").json["commits"][:3])


def test_the_mode_of_a_directory_that_the_host_has_changed_since_is_drift(yolofs: Program) -> None:
    directory = yolofs.project / "directory"
    directory.mkdir(mode=0o755)
    with yolofs.mounted() as view:
        (view / "directory").chmod(0o750)
    yolofs("commit", "--yes")
    (directory / "by the host").write_text("no change of the directory itself\n")
    directory.chmod(0o700)
    assert str(directory) in yolofs.refused("undo", "--yes", code=9)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    yolofs("undo", "--yes", "--force")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["directory", "."])
def test_the_mode_of_a_directory_that_a_later_commit_has_changed_stays(yolofs: Program, name: str) -> None:
    directory = yolofs.project / name
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    for mode in (0o750, 0o700):
        with yolofs.mounted() as view:
            (view / name).chmod(mode)
        yolofs("commit", "--yes")
    assert "commit 2 has changed it since" in yolofs("undo", "1", "--yes", code=16).err
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for number in ("2", "1"):
        yolofs("undo", number, "--yes")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


@pytest.mark.parametrize("instead", ["file", "relative link", "absolute link", "other directory"])
def test_what_the_host_had_put_in_the_place_of_a_directory_comes_back(yolofs: Program, instead: str) -> None:
    directory, outside = yolofs.project / "directory", yolofs.project / "outside"
    for path in (directory, outside):
        path.mkdir()
        (path / "x").write_text(f"{path.name}\n")
    with yolofs.mounted() as view:
        (view / "directory/x").write_text("staged\n")
    (directory / "x").unlink()
    directory.rmdir()
    match instead:
        case "file":
            directory.write_text("by the host\n")
        case "other directory":
            directory.mkdir()
        case _:
            directory.symlink_to(outside if instead == "absolute link" else "outside")
    before = looks(yolofs.project)
    yolofs("commit", "--yes", "--ours")
    after = looks(yolofs.project)
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before
    assert view_of(yolofs) == after
    assert yolofs("status", "--json").json["drift"] == []
    yolofs("commit", "--yes")
    assert looks(yolofs.project) == after
    assert (outside / "x").read_text() == "outside\n"


@pytest.mark.parametrize("how", ["written", "chmod"])
def test_a_link_whose_file_a_later_commit_changed_under_another_name_stays_and_is_no_drift(
    tmp_path: Path, how: str
) -> None:
    """Nobody but commits has changed it; the later one is named."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "one").write_text("text\n")
    (project / "two").hardlink_to(project / "one")
    (project / "apart").write_text("apart\n")
    program = Program(project)
    program("init")
    for number in (1, 2):
        view = CoreDriver(os.fsencode(project))
        if number == 1:
            view.link(b"one", b"three")
            view.unlink(b"apart")
        elif how == "written":
            view.append(b"two", b"more\n")
        else:
            view.chmod(b"two", 0o600)
        view.close()
        program("commit", "--yes")
    done = program("undo", "1", "--yes", code=16)
    assert "commit 2 has changed it since" in done.err
    assert "three" in done.err
    assert (project / "apart").read_text() == "apart\n"
    assert (project / "three").samefile(project / "one")
