"""What an undo takes for the commit's own, what it leaves to the host or to later commits, and what
it says of that.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.undo_model import Commits
from tests.unit.commit.apply.test_identity import at, put_directory_of_that_number, scribe, take_number
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.inverse import Inverse, invert

__all__ = ["scribe"]


@pytest.fixture
def commits(scribe: CommitScribe, tmp_path: Path) -> Commits:
    """The commits of the scribe."""
    (tmp_path / "commits").mkdir()
    return Commits(scribe, os.fsencode(tmp_path / "commits"))


def inverse_of(commits: Commits, *, force: bool = False) -> Inverse:
    applied = Applied.read(1, commits.parking(1))
    return invert(applied, commits.scribe.base, commits.scribe.store, force=force)


def commit(commits: Commits) -> None:
    commits.commit(1)
    commits.wait_for_clock(1)


# ---- numbers that were given again


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


def test_a_mode_is_not_given_back_through_a_symbolic_link_that_has_the_number(commits: Commits, tmp_path: Path) -> None:
    scribe = commits.scribe
    at(scribe, b"a").chmod(0o666)
    scribe.chmod(b"a", 0o600)
    commit(commits)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not in base\n")
    elsewhere.chmod(0o600)
    number = at(scribe, b"a").stat().st_ino
    at(scribe, b"a").unlink()
    for count in range(100):
        link = tmp_path / f"base/link {count}"
        link.symlink_to(elsewhere)
        if link.lstat().st_ino == number:
            link.rename(at(scribe, b"a"))
            break
    else:
        at(scribe, b"a").symlink_to(elsewhere)
    inverse = inverse_of(commits, force=True)
    assert inverse.stays == {b"a": "it is not there any more"}
    assert inverse.tree().find(b"a") is None
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o600


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
