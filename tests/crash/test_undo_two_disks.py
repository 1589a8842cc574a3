"""A commit that is undone, or taken back, on two disks whose files have the same inode numbers, as
those of two new disks have.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.at_a_line import dies_at, has_way_back, killed_at
from tests.support.clocks import let_clocks_pass
from tests.support.core_driver import CoreDriver
from tests.support.plain_directory import walk_tree
from tests.support.second_disk import mounted_disk
from yolofs.errors import ConflictError
from yolofs.session.commit import abort, commit, look_at_base, split_staged
from yolofs.session.ending_interrupted import roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device")
DISKS = ("one", "two")
NAMES = [f"f{number}" for number in range(6)]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project with two disks, and as many files on both."""
    directory = tmp_path / "project"
    for disk in DISKS:
        (directory / disk).mkdir(parents=True)
    with mounted_disk(directory / "one"), mounted_disk(directory / "two"):
        for name in NAMES:
            for disk in DISKS:
                (directory / disk / name).write_text(f"{disk} {name}")
        yield directory


def tree_of(project: Path) -> dict[bytes, tuple[Any, ...]]:
    """Return all that there is, without inode numbers: a copy on another disk has its own."""
    return {path: what if what[0] == "dir" else what[:-1] for path, what in walk_tree(bytes(project))}


def numbers(project: Path, disk: str) -> set[int]:
    return {(project / disk / name).stat().st_ino for name in NAMES}


def made(project: Path, disk: str) -> set[int]:
    """Return the inode numbers of what a commit has made on a disk."""
    return {(project / disk / name).stat().st_ino for name in (*NAMES[:3], "new", "newer")}


def test_a_file_with_the_same_number_on_the_other_disk_is_no_change_by_the_host(project: Path) -> None:
    before = tree_of(project)
    view = CoreDriver(bytes(project))
    for name in NAMES[:3]:
        view.overwrite(f"one/{name}".encode(), b"written")
        view.overwrite(f"two/{name}".encode(), b"written, and longer")
    view.chmod(b"two/f4", 0o600)
    for name in ("new", "newer"):
        view.create(f"one/{name}".encode(), b"new", 0o644)
        view.create(f"two/{name}".encode(), b"made, and longer", 0o640)
    view.rename(b"two/f5", b"two/moved")
    view.close()
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        commit(session)
    assert made(project, "one") & made(project, "two")
    after = tree_of(project)
    for _ in range(2):
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, None))
        assert tree_of(project) == before
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            commit(session)
        assert tree_of(project) == after


@pytest.mark.parametrize("disk", DISKS)
def test_an_undo_names_a_file_that_the_host_changed_on_either_disk(project: Path, disk: str) -> None:
    view = CoreDriver(bytes(project))
    for one in DISKS:
        view.create(f"{one}/new".encode(), b"new", 0o644)
    view.close()
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        commit(session)
    (project / disk / "new").write_text("by the host")
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        with pytest.raises(ConflictError) as raised:
            undo(session, choose_commit(session, None))
        assert raised.value.paths == (f"{disk}/new".encode(),)


def test_files_of_a_commit_that_was_taken_back_are_no_conflict_for_the_next_one(project: Path) -> None:
    """Each disk has files that go, and files that stay as they are, with the same numbers."""
    root = bytes(project)

    def prepare() -> None:
        view = CoreDriver(root)
        for name in NAMES[:3]:
            for disk in DISKS:
                view.overwrite(f"{disk}/{name}".encode(), f"written on {disk}".encode())
        view.rename(b"one/f3", b"one/moved")
        view.unlink(b"two/f3")
        view.close()

    before = tree_of(project)
    assert numbers(project, "one") & numbers(project, "two")
    prepare()
    seen = set[bool]()
    total = killed_at(0, root)
    with Session.open(root, SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, None))
    for line in range(total // 10, total, total // 30):
        killed_at(line, root)
        if not has_way_back(root):  # it had not begun, or is done by now
            if tree_of(project) != before:
                break
            continue
        seen.add(tree_of(project) != before)
        with Session.open(root, SessionAccess.WRITE) as session:
            roll_back_interrupted(session)
        assert tree_of(project) == before
        with Session.open(root, SessionAccess.READ) as session:
            assert look_at_base(session, split_staged(session, None)).conflicts == []
    assert True in seen


def test_what_a_later_commit_has_changed_on_the_other_disk_is_no_reason_to_leave_what_the_host_has_changed(
    project: Path,
) -> None:
    number = (project / "one/f4").stat().st_ino
    assert number == (project / "two/f4").stat().st_ino
    for disk in DISKS:
        view = CoreDriver(bytes(project))
        view.chmod(f"{disk}/f4".encode(), 0o600)
        view.close()
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            commit(session)
    (project / "one/f4").write_text("by the host")
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        with pytest.raises(ConflictError) as raised:
            undo(session, choose_commit(session, 1))
        assert raised.value.paths == (b"one/f4",)


def test_what_a_forced_commit_would_replace_on_one_disk_is_a_conflict_there_alone(project: Path) -> None:
    """When it was taken back."""
    root = bytes(project)
    assert (project / "one/f3").stat().st_ino == (project / "two/f3").stat().st_ino
    view = CoreDriver(root)
    for disk in DISKS:
        view.unlink(f"{disk}/f3".encode())
    view.close()
    host_commits_later(project / "one/f3")

    def conflicts() -> list[bytes]:
        with Session.open(root, SessionAccess.READ) as session:
            return list(look_at_base(session, split_staged(session, None)).conflicts)

    assert conflicts() == [b"one/f3"]
    before = tree_of(project)
    total = dies_at(0, root, lambda session: commit(session, force=True))
    with Session.open(root, SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, None))
    assert tree_of(project) == before
    with Session.open(root, SessionAccess.WRITE) as session:
        abort(session)
    view = CoreDriver(root)
    for disk in DISKS:
        view.unlink(f"{disk}/f3".encode())
    view.close()
    host_commits_later(project / "one/f3")
    assert conflicts() == [b"one/f3"]
    for line in range(total // 4, total, total // 40):
        dies_at(line, root, lambda session: commit(session, force=True))
        if has_way_back(root):
            was_touched = not (project / "two/f3").exists()
            with Session.open(root, SessionAccess.WRITE) as session:
                roll_back_interrupted(session)
            assert conflicts() == [b"one/f3"], f"killed at line {line} of {total}"
            if was_touched:
                return
    pytest.fail("it was never killed half way")


def host_commits_later(file: Path) -> None:
    """Change a file when the clock of files has gone on."""
    let_clocks_pass()
    file.write_text(f"by the host {time.time_ns()}")
