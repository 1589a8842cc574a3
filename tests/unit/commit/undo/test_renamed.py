"""A file that was renamed and edited, committed, and undone: it is staged as a rename again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, paths_of_unit, scan
from tests.support.old_base import at, scribe
from tests.support.undo_model import Commits
from tests.unit.commit.undo.undo_scribe import commits
from yolofs.changes.changes import Change, ChangeKind, compare
from yolofs.commit.merge.conflicts import find_conflicts
from yolofs.commit.select.units import Units
from yolofs.state.tree import Tree

__all__ = ["commits", "scribe"]


def rename(scribe: CommitScribe) -> None:
    scribe.rename(b"a", b"new")
    scribe.write(b"new", b"edited\n")


def rename_over_another(scribe: CommitScribe) -> None:
    at(scribe, b"new").write_text("what base has there\n")
    rename(scribe)


def rename_and_make_anew(scribe: CommitScribe) -> None:
    rename(scribe)
    scribe.write(b"a", b"another\n")


def rename_out_of_a_directory_that_goes(scribe: CommitScribe) -> None:
    at(scribe, b"d").mkdir()
    os.rename(at(scribe, b"a"), at(scribe, b"d/a"))
    scribe.rename(b"d/a", b"new")
    scribe.write(b"new", b"edited\n")
    scribe.remove(b"d")


def rename_with_another_name(scribe: CommitScribe) -> None:
    rename(scribe)
    scribe.link(b"new", b"as well")


def rename_with_a_name_before_it(scribe: CommitScribe) -> None:
    scribe.link(b"a", b"as well")
    rename(scribe)


def nothing(_: CommitScribe) -> None:
    pass


def edit(scribe: CommitScribe) -> None:
    scribe.write(b"new", b"edited once more\n")


def make_the_old_name_anew(scribe: CommitScribe) -> None:
    scribe.write(b"a", b"later\n")


@pytest.mark.parametrize("later", [nothing, edit, make_the_old_name_anew])
@pytest.mark.parametrize(
    ("does", "old"),
    [
        (rename, b"a"),
        (rename_over_another, b"a"),
        (rename_and_make_anew, b"a"),
        (rename_out_of_a_directory_that_goes, b"d/a"),
        (rename_with_another_name, b"a"),
        (rename_with_a_name_before_it, b"a"),
    ],
)
def test_both_names_are_committed_together_again(
    commits: Commits, does: Callable[[CommitScribe], None], old: bytes, later: Callable[[CommitScribe], None]
) -> None:
    scribe = commits.scribe
    does(scribe)
    before = scan(scribe.base.root)
    commits.commit(1)
    later(scribe)
    view = scribe.expected()
    commits.undo(1, by=2)
    assert scan(scribe.base.root) == before
    assert scribe.expected() == view
    assert {b"new", old} <= paths_of_unit(scribe, b"new")
    changes = compare(Tree(), scribe.tree, scribe.base, scribe.store)
    assert [change.old_path for change in changes if change.kind is ChangeKind.RENAMED] == [old]
    top = Path(os.fsdecode(scribe.base.root))
    by_undo = {(path.lstat().st_ino, path.lstat().st_ctime_ns) for path in (top, *top.rglob("*"))}
    assert find_conflicts(scribe.tree, scribe.base, scribe.store, restored=by_undo) == []
    commits.commit(3)
    assert scan(scribe.base.root) == view
    commits.undo(3, by=4)
    assert scan(scribe.base.root) == before
    assert scribe.expected() == view


def test_an_undo_takes_both_names_and_the_undo_of_it_too(commits: Commits) -> None:
    rename(commits.scribe)
    commits.commit(1)
    for number in (1, 2):
        inverse = Tree(commits.prepare(number).inverse)
        units = Units(inverse, commits.scribe.base, commits.scribe.store)
        assert [set(unit.paths) for unit in units.all] == [{b"a", b"new"}]
        commits.undo(number, by=number + 1)
    assert not commits.scribe.records


def test_a_file_that_the_view_shows_by_both_names_is_two(commits: Commits) -> None:
    """It was made anew since, just as it was before: nothing is staged there when it comes back."""
    scribe = commits.scribe
    was = at(scribe, b"a").lstat()
    content = at(scribe, b"a").read_bytes()
    rename(scribe)
    commits.commit(1)
    scribe.write(b"a", content, mode=was.st_mode & 0o7777)
    scribe.utime(b"a", was.st_mtime_ns)
    view = scribe.expected()
    left = commits.undo(1, by=2).left
    assert scribe.expected() == view
    assert [(record.path, record.home) for record in left if record.path == b"new"] == [(b"new", None)]


def remove_one_name_and_rename_the_other(scribe: CommitScribe) -> None:
    scribe.remove(b"other")
    rename(scribe)


def rename_one_name_and_remove_the_other(scribe: CommitScribe) -> None:
    rename(scribe)
    scribe.remove(b"other")


def rename_both_names(scribe: CommitScribe) -> None:
    scribe.rename(b"other", b"other new")
    rename(scribe)


def edit_one_name_and_remove_the_other(scribe: CommitScribe) -> None:
    scribe.write(b"a", b"edited\n")
    scribe.remove(b"other")


def remove_one_name_and_rename_the_other_and_change_its_mode(scribe: CommitScribe) -> None:
    scribe.remove(b"other")
    scribe.rename(b"a", b"new")
    scribe.chmod(b"new", 0o600)


def remove_one_name_and_only_rename_the_other(scribe: CommitScribe) -> None:
    scribe.remove(b"other")
    scribe.rename(b"a", b"new")


@pytest.mark.parametrize(
    "does",
    [
        remove_one_name_and_rename_the_other,
        rename_one_name_and_remove_the_other,
        rename_both_names,
        edit_one_name_and_remove_the_other,
        remove_one_name_and_rename_the_other_and_change_its_mode,
        remove_one_name_and_only_rename_the_other,
    ],
)
def test_a_file_with_hard_links_is_staged_again_as_it_was(
    commits: Commits, does: Callable[[CommitScribe], None]
) -> None:
    scribe = commits.scribe
    os.link(at(scribe, b"a"), at(scribe, b"other"))
    before, inode = scan(scribe.base.root), at(scribe, b"a").lstat().st_ino
    does(scribe)

    def staged() -> list[tuple[ChangeKind, bytes, bytes | None, int]]:
        changes = compare(Tree(), scribe.tree, scribe.base, scribe.store)
        return [(one.kind, one.path, one.old_path, one.unseen_names) for one in changes]

    was_staged = staged()
    commits.commit(1)
    view = scan(scribe.base.root)
    commits.undo(1, by=2)
    assert scan(scribe.base.root) == before
    assert at(scribe, b"a").lstat().st_ino == at(scribe, b"other").lstat().st_ino == inode
    assert scribe.expected() == view
    assert staged() == was_staged
    commits.commit(3)
    assert scan(scribe.base.root) == view
    for number in (3, 4):
        assert not any(change.unseen_names for change in _of_inverse(commits, number))
        commits.undo(number, by=number + 1)
        assert scan(scribe.base.root) == (before if number == 3 else view)
        assert scribe.expected() == view
    assert not scribe.records


def _of_inverse(commits: Commits, number: int) -> list[Change]:
    undo = commits.prepare(number)
    return compare(Tree(), Tree(undo.inverse), commits.scribe.base, undo.store)


def test_metadata_that_was_staged_since_stays_when_the_content_goes_from_base(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.write(b"new", b"new\n")
    commits.commit(1)
    scribe.chmod(b"new", 0o600)
    scribe.utime(b"new", 1_300_000_000_000_000_000)
    view = scribe.expected()
    commits.undo(1, by=2)
    assert scribe.expected() == view
