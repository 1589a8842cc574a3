"""Undoing: changes taken for the commit's own, those left to the host or later commits, and the
report on them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commit_model import have_linked
from tests.support.old_base import OLD, at, put_directory_of_that_number, scribe, take_number
from tests.support.undo_model import Commits
from tests.unit.commit.undo.undo_scribe import commit, commits, execute_undo, inverse_of
from yolofs.commit import Plan, execute, plan_commit
from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.commit.plan.plan import Create, Link, Remove, Rewrite
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.commits_around import LaterCommit
from yolofs.commit.undo.inverse import invert
from yolofs.paths import RelPath

__all__ = ["commits", "scribe"]


# ---- what nobody has changed, and what somebody has


def lose_store(commits: Commits) -> None:
    """Do what ends with a journal: the store inodes that the commit was made from go."""
    for folder, _, names in os.walk(commits.scribe.store.directory):
        for name in names:
            os.unlink(os.path.join(folder, name))


def change_ctime(path: Path) -> None:
    """Do what changes nothing of a file but its ctime."""
    other = path.with_name("other name")
    other.hardlink_to(path)
    other.unlink()


@pytest.mark.parametrize("change", ["mode", "content of all names"])
def test_a_file_that_was_changed_in_place_is_known_when_the_store_has_lost_what_it_was_made_from(
    commits: Commits, change: str
) -> None:
    scribe = commits.scribe
    name = b"a" if change == "mode" else b"g1"
    if change == "mode":
        scribe.chmod(name, 0o600)
    else:
        scribe.write(name, b"staged")
    commits.commit(1)
    lose_store(commits)
    assert not inverse_of(commits).drifted
    change_ctime(at(scribe, name))
    assert inverse_of(commits).drifted == {name: None}
    st = at(scribe, name).stat()
    known = {(st.st_ino, st.st_ctime_ns)}
    applied = Applied.read(1, commits.parking(1))
    assert not invert(applied, scribe.base, scribe.store, restored=known).drifted


@pytest.mark.parametrize("is_linked", [False, True], ids=["a copy", "a store inode"])
@pytest.mark.parametrize("change", ["size", "time", "mode", "nothing"])
def test_of_a_new_file_size_time_and_mode_tell_whether_the_host_has_changed_it(
    commits: Commits, monkeypatch: pytest.MonkeyPatch, change: str, *, is_linked: bool
) -> None:
    scribe = commits.scribe
    scribe.write(b"n", b"staged")
    with monkeypatch.context() as patch:
        if is_linked:
            have_linked(patch)
        execute(scribe.plan(), scribe.store, parking=commits.parking(1), durable=False)
    new = at(scribe, b"n")
    st = new.stat()
    match change:
        case "size":
            new.write_text("longer than staged")
            os.utime(new, ns=(st.st_atime_ns, st.st_mtime_ns))
        case "time":
            os.utime(new, ns=(st.st_atime_ns, st.st_mtime_ns + 1))
        case "mode":
            new.chmod(0o640)
        case _:
            change_ctime(new)
    assert inverse_of(commits).drifted == ({} if change == "nothing" else {b"n": None})


def test_a_file_written_in_place_that_has_another_size_was_changed_by_the_host(commits: Commits) -> None:
    commits.scribe.write(b"g1", b"staged")
    commits.commit(1)
    file = at(commits.scribe, b"g1")
    st = file.stat()
    file.write_text("longer than staged")
    os.utime(file, ns=(st.st_atime_ns, st.st_mtime_ns))
    assert inverse_of(commits).drifted == {b"g1": None}


def test_another_name_of_a_file_of_base_that_the_host_has_changed_has_drifted(commits: Commits, tmp_path: Path) -> None:
    scribe = commits.scribe
    file = at(scribe, b"a").stat()
    (tmp_path / "commits/1/new").mkdir(parents=True)
    plan = Plan(scribe.base.root, (Link(RelPath(b"z"), RelPath(b"a"), 1),))
    execute(plan, scribe.store, parking=commits.parking(1), durable=False)
    assert at(scribe, b"z").stat().st_ino == file.st_ino
    change_ctime(at(scribe, b"z"))
    assert not inverse_of(commits).drifted
    at(scribe, b"z").write_text("the host's\n")
    assert inverse_of(commits).drifted == {b"z": None}


def test_a_new_file_that_the_host_has_removed_is_as_it_is_to_be(commits: Commits) -> None:
    commits.scribe.write(b"n", b"staged")
    commits.commit(1)
    at(commits.scribe, b"n").unlink()
    assert not inverse_of(commits).drifted


def test_a_file_in_the_place_of_another_that_the_host_has_removed_has_drifted(commits: Commits) -> None:
    commits.scribe.write(b"a", b"staged")
    commits.commit(1)
    at(commits.scribe, b"a").unlink()
    assert inverse_of(commits).drifted == {b"a": None}


def test_a_time_that_the_host_has_given_a_directory_stays(commits: Commits) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    scribe.write(b"d/n", b"staged")
    commits.commit(1)
    entry = inverse_of(commits).tree().find(b"d")
    assert entry is not None
    assert entry.touched_ns
    os.utime(at(scribe, b"d"), ns=(0, 1_300_000_000_000_000_000))
    entry = inverse_of(commits).tree().find(b"d")
    assert entry is not None
    assert not entry.touched_ns


def test_directories_that_come_back_name_by_name_have_their_times_again(commits: Commits) -> None:
    scribe = commits.scribe
    at(scribe, b"d/sub").mkdir(parents=True)
    at(scribe, b"d/sub/x").write_text("x\n")
    for name in (b"d/sub", b"d"):
        os.utime(at(scribe, name), ns=(OLD, OLD))
    scribe.rename(b"d/sub/x", b"z")
    scribe.remove(b"d")
    commits.commit(1)
    commits.undo(1, by=2)
    assert at(scribe, b"d/sub/x").read_text() == "x\n"
    assert [at(scribe, name).stat().st_mtime_ns for name in (b"d/sub", b"d")] == [OLD, OLD]


def test_a_directory_whose_time_was_0_has_that_again(commits: Commits) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    os.utime(at(scribe, b"d"), ns=(0, 0))
    scribe.write(b"d/n", b"staged")
    commits.commit(1)
    assert at(scribe, b"d").stat().st_mtime_ns
    commits.undo(1, by=2)
    assert at(scribe, b"d").stat().st_mtime_ns == 0


# ---- what is in the way


@pytest.mark.parametrize("what", ["a file", "a directory"])
def test_a_directory_that_was_made_stays_for_what_the_host_has_put_into_it(commits: Commits, what: str) -> None:
    scribe = commits.scribe
    scribe.mkdir(b"new", 0o755)
    scribe.write(b"new/n", b"staged")
    commits.commit(1)
    if what == "a file":
        at(scribe, b"new/the host's").write_text("the host's\n")
    else:
        at(scribe, b"new/the host's").mkdir()
    inverse = inverse_of(commits)
    assert inverse.drifted == {b"new/the host's": None}
    later = [LaterCommit(2, {RelPath(b"new/the host's")})]
    inverse = invert(Applied.read(1, commits.parking(1)), scribe.base, scribe.store, later=later, force=True)
    assert inverse.stays == {
        b"new/the host's": "commit 2 has changed it since; first: yolofs undo 2",
        b"new": "something in it stays",
    }
    assert [record.path for record in inverse.records if record.path] == [b"new/n"]


def test_names_that_all_went_at_different_times_come_back_as_one_file(commits: Commits) -> None:
    """Two by the commit, which keeps copies for the sake of the third, and that by the host."""
    scribe = commits.scribe
    at(scribe, b"g3").hardlink_to(at(scribe, b"g2"))
    scribe.remove(b"g1")
    scribe.remove(b"g2")
    commits.commit(1)
    at(scribe, b"g3").unlink()
    assert not inverse_of(commits).copies
    commits.undo(1, by=2)
    assert at(scribe, b"g1").samefile(at(scribe, b"g2"))
    assert at(scribe, b"g1").read_text() == "base g1\n"


def test_what_was_moved_does_not_come_back_where_the_host_has_put_something(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.rename(b"a", b"z")
    commits.commit(1)
    at(scribe, b"a").write_text("the host's\n")
    inverse = inverse_of(commits)
    assert inverse.drifted == {b"a": None}
    assert inverse.tree().find(b"z") is None
    assert inverse_of(commits, force=True).tree().find(b"z") is not None


def test_what_was_moved_does_not_come_back_where_a_later_commit_has_changed_what_took_its_place(
    commits: Commits,
) -> None:
    scribe = commits.scribe
    scribe.rename(b"a", b"z")
    scribe.write(b"a", b"staged")
    commits.commit(1)
    at(scribe, b"a").write_text("by a later commit\n")
    later = [LaterCommit(2, {RelPath(b"a")})]
    inverse = invert(Applied.read(1, commits.parking(1)), scribe.base, scribe.store, later=later, force=True)
    assert inverse.stays == {
        b"a": "commit 2 has changed it since; first: yolofs undo 2",
        b"z": "its old place is taken or gone",
    }
    assert not inverse.drifted
    assert inverse.tree().find(b"z") is None
    assert inverse.tree().find(b"a") is None


def test_a_part_that_another_undo_has_taken_back_is_not_told_as_what_stays(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.write(b"n", b"staged")
    commits.commit(1)
    at(scribe, b"n").write_text("base again\n")
    later = [LaterCommit(2, {RelPath(b"n")}, takes_back=True)]
    inverse = invert(Applied.read(1, commits.parking(1)), scribe.base, scribe.store, later=later)
    assert not inverse.stays
    assert not inverse.drifted
    assert inverse.tree().find(b"n") is None


def test_a_new_file_that_a_later_commit_has_removed_is_told_as_what_stays(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.write(b"n", b"staged")
    commits.commit(1)
    at(scribe, b"n").unlink()
    later = [LaterCommit(2, {RelPath(b"n")})]
    inverse = invert(Applied.read(1, commits.parking(1)), scribe.base, scribe.store, later=later)
    assert inverse.stays == {b"n": "commit 2 has changed it since; first: yolofs undo 2"}


@pytest.mark.parametrize("instead", ["nothing", "a file"])
def test_what_was_moved_does_not_come_back_to_a_directory_that_is_gone(commits: Commits, instead: str) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    at(scribe, b"d/x").write_text("x\n")
    scribe.rename(b"d/x", b"z")
    commits.commit(1)
    at(scribe, b"d").rmdir()
    if instead == "a file":
        at(scribe, b"d").write_text("the host's\n")
    inverse = inverse_of(commits)
    assert inverse.stays == {
        b"d": "the host has moved or removed it since; put it back, then: yolofs undo 1",
        b"z": "its old place is taken or gone",
    }
    assert inverse.tree().find(b"z") is None


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("leaves_link", [False, True])
def test_files_in_a_directory_that_the_host_has_moved_stay_where_they_are(
    commits: Commits, leaves_link: bool, force: bool
) -> None:
    scribe = commits.scribe
    at(scribe, b"d/sub").mkdir(parents=True)
    for name in (b"d/sub/edited", b"d/sub/gone", b"in"):
        at(scribe, name).write_bytes(name)
    at(scribe, b"d/sub/closed").write_bytes(b"closed")
    scribe.write(b"d/sub/edited", b"new")
    scribe.chmod(b"d/sub/closed", 0o600)
    scribe.chmod(b"d/sub", 0o700)
    scribe.remove(b"d/sub/gone")
    scribe.rename(b"in", b"d/in")
    scribe.write(b"top", b"new")
    commits.commit(1)
    at(scribe, b"d").rename(at(scribe, b"e"))
    if leaves_link:
        at(scribe, b"d").symlink_to("e")
    inverse = inverse_of(commits, force=force)
    directory = os.fsdecode(scribe.base.path(RelPath(b"d")))
    why = f"the host has moved or removed its directory {directory} since; put that back, then: yolofs undo 1"
    assert inverse.stays == {
        b"d": "the host has moved or removed it since; put it back, then: yolofs undo 1",
        b"d/in": why,
        b"d/sub": why,
        b"d/sub/closed": why,
        b"d/sub/edited": why,
    }
    assert not inverse.drifted
    tree = inverse.tree()
    plan_commit(tree, scribe.base, KeptAndStore(scribe.store, commits.directory))
    assert [path for path, _ in tree.walk()] == [b"top"]


def test_what_was_moved_out_of_a_removed_directory_that_is_not_kept_any_more_stays(commits: Commits) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    at(scribe, b"d/x").write_text("x\n")
    scribe.rename(b"d/x", b"z")
    scribe.remove(b"d")
    plan = commits.commit(1)
    (number,) = (step.number for step in plan.steps if isinstance(step, Remove))
    (Path(os.fsdecode(commits.parking(1))) / f"replaced/{number}").rmdir()
    inverse = inverse_of(commits)
    assert inverse.stays == {b"d": "commit 1 does not keep what was there any more"}
    assert inverse.tree().find(b"z") is None


@pytest.mark.parametrize("name", [b"a", b"g1"], ids=["replaced", "written in place"])
def test_a_change_whose_old_file_is_not_kept_any_more_is_told_and_stays(commits: Commits, name: bytes) -> None:
    commits.scribe.write(name, b"staged")
    plan = commits.commit(1)
    (number,) = (step.number for step in plan.steps if isinstance(step, Create | Rewrite))
    (Path(os.fsdecode(commits.parking(1))) / f"replaced/{number}").unlink()
    inverse = inverse_of(commits)
    assert inverse.stays == {name: "commit 1 does not keep what was there any more"}
    assert inverse.tree().find(name) is None


# ---- later commits


def test_a_later_commit_is_about_all_that_lies_in_a_directory_that_it_has_changed(commits: Commits) -> None:
    later = LaterCommit(2, {RelPath(b"d")})
    assert later.touches(RelPath(b"d/sub/x"))
    assert later.touches(RelPath(b"d"))
    assert not later.touches(RelPath(b"dd"))


def test_a_later_commit_is_not_about_what_lies_beside_what_it_has_made(commits: Commits) -> None:
    scribe = commits.scribe
    at(scribe, b"d").mkdir()
    at(scribe, b"d/x").write_text("x\n")
    scribe.write(b"d/n", b"staged")
    commits.commit(1)
    later = LaterCommit.read(1, commits.parking(1))
    assert later.touches(RelPath(b"d/n"))
    assert not later.touches(RelPath(b"d/x"))


# ---- hard links


def test_a_name_that_was_removed_becomes_a_link_again_of_the_name_that_stays(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.remove(b"g1")
    commits.commit(1)
    assert not inverse_of(commits).copies
    commits.undo(1, by=2)
    assert at(scribe, b"g1").samefile(at(scribe, b"g2"))


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_name_that_was_removed_is_no_link_of_what_the_host_has_made_since(commits: Commits, kind: str) -> None:
    """That has the number of the file, which is gone."""
    scribe = commits.scribe
    scribe.remove(b"g1")
    commit(commits)
    other = at(scribe, b"g2")
    number = other.stat().st_ino
    other.unlink()
    if kind == "file":
        take_number(other, number)
        other.write_text("the host's\n")
    else:
        put_directory_of_that_number(other, number)
    inverse = inverse_of(commits)
    assert inverse.copies == [b"g1"]
    execute_undo(commits)
    assert at(scribe, b"g1").read_text() == "base g1\n"
    assert other.is_dir() if kind == "directory" else other.read_text() == "the host's\n"


def test_names_that_all_went_come_back_as_one_file(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.remove(b"g1")
    scribe.remove(b"g2")
    commits.commit(1)
    assert not inverse_of(commits).copies
    commits.undo(1, by=2)
    assert at(scribe, b"g1").samefile(at(scribe, b"g2"))


def test_a_removed_name_is_not_made_a_link_of_one_that_the_undo_removes(commits: Commits) -> None:
    """The file has got another name in a directory that the commit has made."""
    scribe = commits.scribe
    scribe.mkdir(b"new", 0o755)
    scribe.link_metadata(b"g1", b"new/g3")
    scribe.remove(b"g1")
    scribe.remove(b"g2")
    commits.commit(1)
    commits.undo(1, by=2)
    assert not at(scribe, b"new").exists()
    assert at(scribe, b"g1").samefile(at(scribe, b"g2"))
    assert at(scribe, b"g1").read_text() == "base g1\n"
