"""Interfaces of a store: to look at its inodes, or to read them, too."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from yolofs.store import copying


class StorePaths(Protocol):
    """What is needed of a store to look at its inodes."""

    def lstat(self, ino: int) -> os.stat_result:
        """Return the attributes of a store inode, with the owner that it shows.

        Raises:
            OSError: there is none.
        """
        ...

    def metadata(self, ino: int) -> copying.Metadata:
        """Return all that a store inode has besides its data, with the owner that it shows.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def shown_owner(self, ino: int) -> tuple[int, int] | None:
        """Return the user and group that a store inode shows, None if they are its own."""
        ...

    def path(self, ino: int) -> bytes:
        """Return the absolute path of a store inode."""
        ...


class StoreFiles(StorePaths, Protocol):
    """What is needed of a store to read its inodes."""

    def own_path(self, ino: int) -> bytes:
        """Return the absolute path that a store inode has in the store, and nowhere else."""
        ...

    def open(self, ino: int, flags: int) -> int:
        """Open a store inode whatever its mode and return the descriptor."""
        ...

    def remove_links(self, inos: Iterable[int]) -> None:
        """Remove the names in the store of files that have another one elsewhere."""
        ...
