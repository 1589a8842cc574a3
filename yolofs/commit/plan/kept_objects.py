"""What earlier commits keep of base, with numbers like store inodes, so that a tree can show it and
a plan can bring it back.

Each is ``commits/N/replaced/SLOT`` of the session, or something in a directory there.  Its number
is larger than any that a store gives out, and tells which thing it is.  A directory counts as one
thing, with all that is in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from yolofs.paths import ROOT, RelPath, StoreIno
from yolofs.store import copying
from yolofs.store.interfaces import StoreFiles

_BITS = 40
_MASK = (1 << _BITS) - 1
_FIRST = 1 << 2 * _BITS


class KeptObject(NamedTuple):
    """A thing that an earlier commit keeps."""

    commit: int
    slot: int
    inside: RelPath = ROOT
    """Its path in the directory that the slot holds; empty for what the slot holds itself."""

    @property
    def ino(self) -> StoreIno:
        """The number by which it is known."""
        inside = int.from_bytes(b"\1" + self.inside)
        return StoreIno(inside << 2 * _BITS | self.commit << _BITS | self.slot)

    def path(self, commits: bytes) -> bytes:
        """Return where it lies; ``commits`` is the directory of all commits."""
        top = os.path.join(commits, b"%d/replaced/%d" % (self.commit, self.slot))
        return os.path.join(top, self.inside) if self.inside else top

    def below(self, path: bytes) -> KeptObject:
        """Return which thing lies at a path in it."""
        return self._replace(inside=RelPath(os.path.join(self.inside, path)))


def kept_of(ino: int) -> KeptObject | None:
    """Return the kept thing that a number stands for; None if it stands for a store inode."""
    if ino < _FIRST:
        return None
    inside = ino >> 2 * _BITS
    text = inside.to_bytes((inside.bit_length() + 7) // 8)[1:]
    return KeptObject(ino >> _BITS & _MASK, ino & _MASK, RelPath(text))


class KeptAndStore:
    """A store together with what commits keep."""

    def __init__(self, store: StoreFiles, commits: bytes) -> None:
        """``commits``: the directory of all commits, absolute."""
        self._store = store
        self.commits = commits

    def path(self, ino: int) -> bytes:
        """Return the absolute path of a store inode, or of what is kept."""
        kept = kept_of(ino)
        return self._store.path(ino) if kept is None else kept.path(self.commits)

    def lstat(self, ino: int) -> os.stat_result:
        """Return the attributes of a store inode, or of what is kept.

        Raises:
            OSError: there is none.
        """
        return self._store.lstat(ino) if kept_of(ino) is None else os.lstat(self.path(ino))

    def metadata(self, ino: int) -> copying.Metadata:
        """Return what a store inode, or what is kept, has besides its data.

        Raises:
            OSError: it cannot be read.
        """
        return self._store.metadata(ino) if kept_of(ino) is None else copying.read_metadata(self.path(ino))

    def shown_owner(self, ino: int) -> tuple[int, int] | None:
        """Return the user and group that a store inode shows, None if they are its own."""
        return self._store.shown_owner(ino)

    def own_path(self, ino: int) -> bytes:
        """Return the absolute path of a store inode in the store."""
        return self._store.own_path(ino)

    def remove_links(self, inos: Iterable[int]) -> None:
        """Remove names in the store, as :meth:`yolofs.store.store.Store.remove_links`."""
        self._store.remove_links(inos)

    def open(self, ino: int, flags: int) -> int:
        """Open a store inode, or what is kept, and return the descriptor.

        Raises:
            OSError: as open(2).
        """
        if kept_of(ino) is None:
            return self._store.open(ino, flags)
        return os.open(self.path(ino), flags | os.O_NOFOLLOW | os.O_CLOEXEC)
