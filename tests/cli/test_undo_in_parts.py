"""A commit is undone in parts, beside others: the rest is undone later, or an undo names the
commits to undo first, and in the end base is as before.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program


@pytest.fixture
def project(yolofs: Program) -> Path:
    """A project with a directory that has files in it, and files with two names."""
    for path in ("old/q", "old/r", "old/first", "one", "gone/other"):
        (yolofs.project / path).parent.mkdir(exist_ok=True)
        (yolofs.project / path).write_text(f"{path}\n")
    (yolofs.project / "second").hardlink_to(yolofs.project / "old/first")
    (yolofs.project / "gone/two").hardlink_to(yolofs.project / "one")
    return yolofs.project


def commit(yolofs: Program, *acts: tuple[str, *tuple[bytes | int, ...]]) -> None:
    view = CoreDriver(bytes(yolofs.project))
    for name, *arguments in acts:
        getattr(view, name)(*arguments)
    view.close()
    yolofs("commit", "--yes")


def undo_with_what_comes_first(yolofs: Program, number: int) -> None:
    """Undo a commit as its user would, who does what each refusal says."""
    for _ in range(4):
        done = yolofs("undo", str(number), "--yes", code=None)
        assert done.code in (0, 1, 16), done.err
        firsts = sorted(map(int, re.findall(r"stays:.*: yolofs undo (\d+)", done.err)), reverse=True)
        if not firsts:
            assert "stays:" not in done.err
            return
        for first in firsts:
            undo_with_what_comes_first(yolofs, first)
    raise AssertionError(f"commit {number} is not undone though all was done that has to come first")


def test_what_left_a_directory_comes_back_to_it_after_the_directory(yolofs: Program, project: Path) -> None:
    before = looks(project)
    commit(yolofs, ("rename", b"old", b"new"), ("rename", b"new/r", b"r2"), ("append", b"new/q", b"more\n"))
    yolofs("undo", "1", "old", "new", "--yes", code=16)
    assert (project / "old/q").read_text() == "old/q\n"
    assert (project / "r2").exists()
    yolofs("undo", "1", "--yes")
    assert looks(project) == before


def test_a_file_that_an_undo_has_brought_back_and_another_has_removed_is_no_reason_to_undo_that_first(
    yolofs: Program, project: Path
) -> None:
    before = looks(project)
    commit(yolofs, ("create", b"made", b"made\n", 0o644))
    commit(yolofs, ("append", b"made", b"more\n"), ("append", b"old/q", b"more\n"))
    commit(yolofs, ("append", b"old/q", b"and more\n"))
    assert "first: yolofs undo 3" in yolofs("undo", "2", "--yes", code=16).err
    yolofs("undo", "1", "--yes")
    yolofs("undo", "3", "--yes")
    yolofs("undo", "2", "--yes")
    assert looks(project) == before


def test_a_commit_of_which_a_part_was_undone_is_kept_for_the_rest_of_it(yolofs: Program, project: Path) -> None:
    (project / ".yolofs.toml").write_text("[keep_commits]\ncount = 2\n")
    yolofs.trust()
    names = ("old/q", "old/r", "a.txt")
    before = {name: looks(project)[name] for name in names}
    commit(yolofs, ("create", b"other", b"other\n", 0o644))
    commit(yolofs, *(("append", name.encode(), b"more\n") for name in names))
    commit(yolofs, ("create", b"last", b"last\n", 0o644))
    for path in names[:2]:
        yolofs("undo", "2", path, "--yes")
    assert [one["commit"] for one in yolofs("commits", "--json").json["commits"]] == [2, 3, 4, 5]
    yolofs("undo", "2", "--yes")
    assert {name: looks(project)[name] for name in names} == before


def test_what_a_later_commit_changed_in_a_directory_that_is_moved_back_is_undone_after_that(
    yolofs: Program, project: Path
) -> None:
    before = looks(project)
    commit(yolofs, ("rename", b"old", b"new"), ("rename", b"new/r", b"new/s"))
    commit(yolofs, ("rename", b"new/s", b"new/t"), ("append", b"new/q", b"more\n"))
    yolofs("undo", "1", "--yes", code=16)
    for number in (2, 1):
        undo_with_what_comes_first(yolofs, number)
    assert looks(project) == before


def test_a_name_of_a_file_that_an_earlier_undo_wrote_to_is_moved_back_and_nobody_else_is_blamed(
    yolofs: Program, project: Path
) -> None:
    before = looks(project)
    commit(yolofs, ("append", b"second", b"more\n"))
    commit(yolofs, ("rename", b"old", b"new"), ("rename", b"new/first", b"moved"))
    yolofs("undo", "1", "--yes")
    said = [yolofs("undo", "2", "old", "new", "--yes", code=16).err, yolofs("undo", "2", "--yes").err]
    assert not any("somebody" in one for one in said)
    assert looks(project) == before
    assert (project / "second").samefile(project / "old/first")


def test_a_file_that_was_written_in_place_is_so_again_though_its_other_name_is_not_there(
    yolofs: Program, project: Path
) -> None:
    """Else an earlier commit took what has another inode number for the host's."""
    before = looks(project)
    commit(yolofs, ("append", b"a.txt", b"1\n"), ("link", b"a.txt", b"x"))
    commit(yolofs, ("append", b"a.txt", b"2\n"), ("unlink", b"x"))
    commit(yolofs, ("append", b"a.txt", b"3\n"))
    yolofs("undo", "2", "x", "--force", "--yes", code=None)
    for number in (3, 2, 1):
        undo_with_what_comes_first(yolofs, number)
    assert looks(project) == before


def test_a_hard_link_goes_though_an_undo_has_set_its_file_back_under_the_other_name(
    yolofs: Program, project: Path
) -> None:
    before = looks(project)
    view = CoreDriver(bytes(project))
    view.link(b"a.txt", b"x")
    view.utimes(b"x", 10**18)
    view.close()
    yolofs("commit", "--yes")
    commit(yolofs, ("rename", b"x", b"y"))
    assert "commit 2 has changed it since" in yolofs("undo", "1", "--yes", code=16).err
    for number in ("2", "1"):
        yolofs("undo", number, "--yes")
    assert looks(project) == before


def test_a_hard_link_waits_for_a_file_that_a_later_commit_has_replaced(yolofs: Program, project: Path) -> None:
    before = looks(project)
    commit(yolofs, ("unlink", b"second"), ("append", b"one", b"more\n"))
    commit(yolofs, ("append", b"old/first", b"more\n"))
    foretold = yolofs("undo", "1", "--dry-run", code=16)
    assert "1 path stays as it is; all else of commit 1 would be undone\n" in foretold.err
    done = yolofs("undo", "1", "--yes", code=16)
    assert "second: commit 2 has changed a file since of which it has a hard link; first: yolofs undo 2\n" in done.err
    assert not (project / "second").exists()
    yolofs("undo", "2", "--yes")
    yolofs("undo", "1", "--yes")
    assert looks(project) == before
    assert (project / "second").samefile(project / "old/first")


def test_by_force_a_hard_link_comes_back_as_a_file_of_its_own(yolofs: Program, project: Path) -> None:
    commit(yolofs, ("unlink", b"second"))
    commit(yolofs, ("append", b"old/first", b"more\n"))
    assert "comes back as a file of its own" in yolofs("undo", "1", "--force", "--yes").err
    assert (project / "second").read_text() == "old/first\n"


def test_a_directory_of_which_an_undo_took_a_part_is_not_brought_back_without_that(
    yolofs: Program, project: Path
) -> None:
    """That undo makes it anew, as it has a hard link in it; it leaves another path, and is
    undone.
    """
    before = looks(project)
    commit(
        yolofs,
        ("unlink", b"gone/two"),
        ("unlink", b"gone/other"),
        ("rmdir", b"gone"),
        ("append", b"one", b"1\n"),
        ("append", b"a.txt", b"1\n"),
    )
    commit(yolofs, ("append", b"a.txt", b"2\n"))
    yolofs("undo", "1", "--yes", code=16)
    assert (project / "gone/other").read_text() == "gone/other\n"
    yolofs("undo", "3", "--yes")
    assert not (project / "gone").exists()
    yolofs("undo", "2", "--yes")
    assert "gone: it was taken back and applied again: yolofs undo 4\n" in yolofs("undo", "1", "--yes", code=16).err
    assert not (project / "gone").exists()
    for number in ("4", "1"):
        yolofs("undo", number, "--yes", code=None)
    assert looks(project) == before


def test_what_was_renamed_is_named_by_its_old_path_too_though_it_stays(yolofs: Program, project: Path) -> None:
    commit(yolofs, ("rename", b"old", b"new"), ("rename", b"one", b"two"), ("append", b"two", b"more\n"))
    commit(yolofs, ("rename", b"new", b"newer"), ("rename", b"two", b"three"))
    for path, now in (("old", "new"), ("old/q", "new"), ("new", "new"), ("one", "two"), ("two", "two")):
        done = yolofs("undo", "1", path, "--yes", code=16)
        assert f"stays: {project}/{now}: commit 2 has changed it since; first: yolofs undo 2\n" in done.err, path
    assert "stays:" not in yolofs("undo", "1", "gone", "--yes").err


def test_what_was_renamed_and_has_drifted_is_named_by_its_old_path_too(yolofs: Program, project: Path) -> None:
    commit(yolofs, ("rename", b"one", b"two"), ("append", b"two", b"more\n"))
    (project / "two").write_text("the host's\n")
    done = yolofs("undo", "1", "one", "--yes", code=9)
    assert "base has changed at 1 path since commit 1, so nothing is undone" in done.err
    assert (project / "two").read_text() == "the host's\n"


def test_commits_that_build_on_each_other_are_undone_down_to_the_oldest_that_is_kept(
    yolofs: Program, project: Path
) -> None:
    (project / ".yolofs.toml").write_text("[keep_commits]\ncount = 4\n")
    yolofs.trust()
    befores = []
    for number in range(6):
        befores.append(looks(project))
        commit(yolofs, ("append", b"one", b"%d\n" % number))
    assert [one["commit"] for one in yolofs("commits", "--json").json["commits"]] == [3, 4, 5, 6]
    assert "first: yolofs undo 6" in yolofs("undo", "3", "--yes", code=16).err
    for number in (6, 5, 4, 3):
        yolofs("undo", str(number), "--yes")
        assert looks(project) == befores[number - 1]
    commit(yolofs, ("append", b"one", b"again\n"))
    assert len(yolofs("commits", "--json").json["commits"]) == 4


def test_a_move_that_an_undo_of_an_older_commit_has_taken_back_is_undone_already(
    yolofs: Program, project: Path
) -> None:
    before = looks(project)
    commit(yolofs, ("unlink", b"one"), ("rename", b"old", b"new"))
    commit(yolofs, ("chmod", b"gone", 0o700))
    yolofs("undo", "1", "old", "--yes")
    yolofs("commit", "--yes")
    yolofs("undo", "2", "--yes")
    yolofs("undo", "1", "--yes")
    assert looks(project) == before
    done = yolofs("undo", "4", "--yes", code=None)
    assert "stays:" not in done.err
    assert looks(project) == before
