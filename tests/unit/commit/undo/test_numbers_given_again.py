"""A file of the host's is not taken for one of a commit because it has its inode number."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.old_base import at, put_directory_of_that_number, scribe, take_number
from tests.support.undo_model import Commits
from tests.unit.commit.undo.undo_scribe import commit, commits, inverse_of
from yolofs.system import syscalls

pytestmark = pytest.mark.disk

__all__ = ["commits", "scribe"]


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_has_the_number_of_a_directory_that_was_made_is_not_taken_for_it(commits: Commits, kind: str) -> None:
    commits.scribe.mkdir(b"new", 0o755)
    commit(commits)
    new = at(commits.scribe, b"new")
    number = new.stat().st_ino
    new.rmdir()
    if kind == "file":
        take_number(new, number)
        new.write_text("the host's\n")
    else:
        put_directory_of_that_number(new, number)
    assert inverse_of(commits).drifted == {b"new": None}


def test_a_directory_that_has_the_number_of_a_file_that_was_made_is_not_taken_for_it(commits: Commits) -> None:
    commits.scribe.write(b"new", b"staged")
    commits.commit(1)
    new = at(commits.scribe, b"new")
    number = new.stat().st_ino
    new.unlink()
    put_directory_of_that_number(new, number)
    assert inverse_of(commits).drifted == {b"new": None}


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_has_the_number_of_something_that_was_moved_is_not_taken_for_it(commits: Commits, kind: str) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    name = {"file": b"a", "directory": b"d"}[kind]
    scribe.rename(name, b"moved")
    commit(commits)
    moved = at(scribe, b"moved")
    number = moved.stat().st_ino
    if kind == "file":
        moved.unlink()
        take_number(moved, number)
        moved.write_text("the host's\n")
    else:
        moved.rmdir()
        put_directory_of_that_number(moved, number)
    for force in (False, True):
        inverse = inverse_of(commits, force=force)
        assert inverse.stays == {b"moved": "it is not there any more"}
        assert inverse.tree().find(b"moved") is inverse.tree().find(name) is None


def put_link_of_that_number(path: Path, target: Path) -> None:
    """Put a symbolic link in the place of a file, with its number where the filesystem gives that
    again.
    """
    number = path.stat().st_ino
    path.unlink()
    links = [path.with_name(f"{path.name} link {count}") for count in range(100)]
    for link in links:
        link.symlink_to(target)
    next((link for link in links if link.lstat().st_ino == number), links[0]).rename(path)


def test_a_mode_is_not_given_back_through_a_symbolic_link_that_has_the_number(commits: Commits, tmp_path: Path) -> None:
    scribe = commits.scribe
    at(scribe, b"a").chmod(0o666)
    scribe.chmod(b"a", 0o600)
    commit(commits)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not in base\n")
    elsewhere.chmod(0o600)
    put_link_of_that_number(at(scribe, b"a"), elsewhere)
    inverse = inverse_of(commits, force=True)
    assert inverse.stays == {b"a": "it is not there any more"}
    assert inverse.tree().find(b"a") is None
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o600


@pytest.mark.parametrize("change", ["moved", "mode"])
@pytest.mark.parametrize("loses_log", [False, True])
def test_another_file_of_base_that_the_host_has_put_there_is_not_taken_for_it(
    commits: Commits, change: str, *, loses_log: bool
) -> None:
    """It is older than the commit, and has a number of its own."""
    scribe = commits.scribe
    if change == "moved":
        scribe.rename(b"a", b"it")
    else:
        at(scribe, b"a").rename(at(scribe, b"it"))
        scribe.chmod(b"it", 0o600)
    commits.commit(1)
    if loses_log:
        os.truncate(os.path.join(commits.parking(1), b"progress"), 0)
    at(scribe, b"zz").rename(at(scribe, b"it"))
    inverse = inverse_of(commits)
    if loses_log and change == "mode":  # its looks tell
        assert inverse.drifted == {b"it": None}
    else:
        assert inverse.stays == {b"it": "it is not there any more"}
    assert inverse.tree().find(b"it") is None


def test_where_no_birth_is_told_the_kind_tells_that_it_is_another_thing(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syscalls, "birth_ns", lambda _: None)
    scribe = commits.scribe
    scribe.chmod(b"a", 0o600)
    scribe.remove(b"g1")
    commits.commit(1)
    for name in (b"a", b"g2"):
        put_link_of_that_number(at(scribe, name), at(scribe, b"zz"))
    inverse = inverse_of(commits, force=True)
    assert inverse.stays == {b"a": "it is not there any more"}
    assert inverse.copies == [b"g1"]


def test_a_time_is_not_given_back_to_a_directory_that_has_the_number(commits: Commits) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    scribe.chmod(b"d", 0o700)
    commit(commits)
    directory = at(scribe, b"d")
    number = directory.stat().st_ino
    directory.rmdir()
    put_directory_of_that_number(directory, number)
    assert inverse_of(commits, force=True).tree().find(b"d") is None
