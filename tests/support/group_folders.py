"""Hidden folders that a commit makes in a directory, to give files the group of that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.memory_disk import memory_directory
from tests.support.user_identity import NOBODY
from yolofs.commit.apply import other_devices
from yolofs.commit.apply.other_devices import FarFolders
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Park, Place, Plan
from yolofs.paths import RelPath
from yolofs.system.rename_domains import rename_domain

GROUP = 5000


HIDDEN = b".yolofs-0123-new"


@contextmanager
def directory_with_a_group() -> Iterator[Path]:
    """Give a base and a commit's directory of an ordinary user's; they are not in the group of
    ``shared``.
    """
    with memory_directory() as directory:
        directory.chmod(0o711)
        for name in ("base/shared/sub", "base/own", "commit"):
            (directory / name).mkdir(parents=True)
        for path in directory.rglob("*"):
            os.chown(path, NOBODY, NOBODY)
        for path in (directory / "base/shared", directory / "base/shared/sub"):
            os.chown(path, NOBODY, GROUP)
            path.chmod(0o2755)
        yield directory


def folders(place: Path, *, is_moved: bool = False) -> FarFolders:
    steps = (Park(RelPath(b"shared"), 1, 0), Place(RelPath(b"moved"), 1)) if is_moved else ()
    root = bytes(place / "base")
    return FarFolders(root, bytes(place / "commit"), HIDDEN, Moves(Plan(root, steps)))


def folder_of(found: FarFolders, place: Path, directory: bytes) -> other_devices.Folder | None:
    return found.of_group(GROUP, rename_domain(bytes(place / "base")), RelPath(directory))
