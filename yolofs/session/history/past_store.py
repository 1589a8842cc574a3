"""The store as states before kept commits need it: some of its store inodes are in base by now."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from yolofs.commit.plan.plan import Create
from yolofs.commit.undo.applied import Applied
from yolofs.paths import RelPath
from yolofs.store import copying
from yolofs.store.base_opening import open_noatime
from yolofs.store.base_stand_in import KnownBase
from yolofs.store.interfaces import StoreFiles
from yolofs.system.plain_files import is_there

_GONE = os.stat_result(
    (stat.S_IFREG | 0o600, 0, 0, 1, 0, 0, 0, 0, 0, 0),
    {"st_atime_ns": 0, "st_mtime_ns": 0, "st_ctime_ns": 0},
)
"""Stands for a staged file that base has had since, and has not any more."""


class PastStore:
    """A store together with the store inodes that commits have put into base as they were."""

    def __init__(self, store: StoreFiles) -> None:
        self._store = store
        self._placed: dict[int, tuple[KnownBase, Create]] = {}

    def add_commit(self, applied: Applied, after: KnownBase) -> None:
        """Take in what a commit put into base; ``after`` is base after it."""
        linked = {number for number, made in applied.ready.made.items() if made.is_link}
        for step in applied.plan.steps:
            if isinstance(step, Create) and step.number in linked:
                self._placed[step.ino] = after, step

    def path(self, ino: int) -> bytes:
        """Return the absolute path of a store inode, or of its file in base; if the host has
        changed that since, a path at which nothing is.
        """
        if not self._is_placed(ino):
            return self._store.path(ino)
        base, step = self._placed[ino]
        return base.path(step.path) if _is_as_placed(_look(base, step.path), step) else self._store.own_path(ino)

    def shown_owner(self, ino: int) -> tuple[int, int] | None:
        """Return the user and group that a store inode shows, None if they are its own."""
        return self._store.shown_owner(ino)

    def own_path(self, ino: int) -> bytes:
        """Return the absolute path of a store inode in the store."""
        return self._store.own_path(ino)

    def lstat(self, ino: int) -> os.stat_result:
        """Return the attributes of a store inode, with the size and time that it had; of one that
        base has lost since, those of a file without its content.

        Raises:
            OSError: it is not there, and no commit has put it into base.
        """
        if not self._is_placed(ino):
            return self._store.lstat(ino)
        base, step = self._placed[ino]
        st = _look(base, step.path)
        if st is not None and _is_as_placed(st, step):
            return st
        return _sized(st if st is not None and stat.S_ISREG(st.st_mode) else _GONE, step)

    def metadata(self, ino: int) -> copying.Metadata:
        """Return what a store inode has besides its data, or what base has of it.

        Raises:
            OSError: it cannot be read.
        """
        return copying.read_metadata(self.path(ino), st=self.lstat(ino))

    def open(self, ino: int, flags: int) -> int:
        """Open a store inode, or what base has of it, and return the descriptor.

        Raises:
            OSError: as open(2); ESTALE if the host has changed it since.
        """
        if not self._is_placed(ino):
            return self._store.open(ino, flags)
        base, step = self._placed[ino]
        path = base.path(step.path)
        fd = open_noatime(path, flags | os.O_NONBLOCK)
        if not _is_as_placed(os.fstat(fd), step):
            os.close(fd)
            raise OSError(errno.ESTALE, "base has changed it since", path)
        return fd

    def _is_placed(self, ino: int) -> bool:
        """Tell whether base has a store inode, and the store has it not any more."""
        return ino in self._placed and not is_there(self._store.own_path(ino))

    def remove_links(self, inos: Iterable[int]) -> None:
        """Remove nothing.

        Raises:
            OSError: always.
        """
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), next(iter(inos), None))


def _look(base: KnownBase, path: RelPath) -> os.stat_result | None:
    """Return the attributes of what a base has at a path; None if it has nothing."""
    try:
        return base.lstat(path)
    except OSError:
        return None


def _is_as_placed(st: os.stat_result | None, step: Create) -> bool:
    return st is not None and (st.st_size, st.st_mtime_ns) == (step.size, step.mtime_ns)


def _sized(st: os.stat_result, step: Create) -> os.stat_result:
    """Return attributes with the size and time of what a commit has put into base."""
    fields = list(st)
    fields[stat.ST_SIZE], fields[stat.ST_MTIME] = step.size, step.mtime_ns // 10**9
    times = {"st_atime_ns": st.st_atime_ns, "st_mtime_ns": step.mtime_ns, "st_ctime_ns": st.st_ctime_ns}
    return os.stat_result(fields, times)
