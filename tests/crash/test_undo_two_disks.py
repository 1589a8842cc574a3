"""An undo of a commit on two disks whose files have the same inode numbers, as those of two new
disks have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.property.core_driver import CoreDriver
from tests.property.plain_directory import walk_tree
from tests.support.second_disk import mounted_disk
from yolofs.errors import ConflictError
from yolofs.session.commit import commit
from yolofs.session.session import Access, Session
from yolofs.session.undo import choose, undo

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


def made(project: Path, disk: str) -> set[int]:
    """Return the inode numbers of what a commit has made on a disk."""
    return {(project / disk / name).stat().st_ino for name in (*NAMES[:3], "new", "newer")}


def test_what_has_its_number_on_the_other_disk_is_no_change_by_the_host(project: Path) -> None:
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
    with Session.open(bytes(project), Access.WRITE) as session:
        commit(session)
    assert made(project, "one") & made(project, "two")
    with Session.open(bytes(project), Access.WRITE) as session:
        undo(session, choose(session, None))
    assert tree_of(project) == before


@pytest.mark.parametrize("disk", DISKS)
def test_what_the_host_has_changed_on_either_disk_is_told(project: Path, disk: str) -> None:
    view = CoreDriver(bytes(project))
    for one in DISKS:
        view.create(f"{one}/new".encode(), b"new", 0o644)
    view.close()
    with Session.open(bytes(project), Access.WRITE) as session:
        commit(session)
    (project / disk / "new").write_text("by the host")
    with Session.open(bytes(project), Access.WRITE) as session:
        with pytest.raises(ConflictError) as raised:
            undo(session, choose(session, None))
        assert raised.value.paths == (f"{disk}/new".encode(),)
