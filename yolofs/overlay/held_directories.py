"""Base directories that are held for a moment, while their names are looked up.

A careful look at a path takes three system calls, and the list of access another four.  By a held
directory they take one each.  Names are looked up in bursts: a listing tells each of a directory's
names, and a walk stays in a directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic_ns
from typing import TypeAlias

from yolofs.paths import RelPath
from yolofs.store.base import Base
from yolofs.store.base_opening import hold

CallLater: TypeAlias = Callable[[float, Callable[[], object]], object]
"""Calls a function after a number of seconds, on the thread that owns the overlay."""

_MOST = 8
"""A compiler looks for a header in one directory after another."""
_TO_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class HeldDirectories:
    """Descriptors of base directories, each a moment old at most.

    What the host has put in such a directory's place since it was opened is not seen through them.
    None stays open when the view is idle: it would keep a disk from being unmounted.
    """

    def __init__(self, base: Base) -> None:
        self._base = base
        self._fds: dict[RelPath, int] = {}
        self._until_ns = 0
        self._lasts_ns = 0
        self._later: CallLater | None = None

    def hold_for(self, lasts_ns: int, later: CallLater) -> None:
        """Hold directories from now on, each for so long; ``later`` has them closed then.

        Until then, and for 0 ns, none is held.
        """
        self._lasts_ns = lasts_ns
        self._later = later if lasts_ns else None

    def fd(self, source: RelPath) -> int | None:
        """Return a descriptor of a base directory; None where its names are to be looked at by
        their paths.

        The caller does not keep it.

        Raises:
            OSError: as lstat(2) of a name in there; ENOTDIR where a symbolic link is on the way.
        """
        if self._fds:
            if monotonic_ns() < self._until_ns:
                fd = self._fds.get(source)
                if fd is not None:
                    return fd
                if len(self._fds) >= _MOST:
                    self.let_go()
            else:
                self.let_go()
        if self._later is None or self._base.elsewhere is not None or source in self._base.pseudo:
            return None
        fd = hold(self._base.path(source))
        if not self._fds:
            self._until_ns = monotonic_ns() + self._lasts_ns
            self._later(self._lasts_ns / 1e9, self._let_go_of_old)
        self._fds[source] = fd
        return fd

    def known_fd(self, source: RelPath) -> int | None:
        """Return a descriptor of a base directory if it is held already.

        The caller does not keep it.
        """
        if not self._fds or self._base.elsewhere is not None or monotonic_ns() >= self._until_ns:
            return None
        return self._fds.get(source)

    def place_of_name(self, path: RelPath) -> tuple[int, bytes] | None:
        """Return a descriptor of the directory of a base path, and the name in it; None if its
        directory is not held, or it is base itself.

        The caller does not keep it.
        """
        above, _, name = path.rpartition(b"/")
        fd = self.known_fd(RelPath(above)) if name else None
        return (fd, name) if fd is not None else None

    def lstat(self, path: RelPath) -> os.stat_result:
        """Return the attributes of a base path, as :meth:`yolofs.store.base.Base.lstat`; its
        directory is held then.
        """
        above, _, name = path.rpartition(b"/")
        fd = self.fd(RelPath(above)) if name else None
        return self._base.lstat(path) if fd is None else self._base.lstat_in(fd, name, path)

    def hold(self, path: RelPath) -> int:
        """Return what :func:`yolofs.store.base_opening.hold` does of what base has at a path."""
        place = self.place_of_name(path)
        if place is None:
            return hold(self._base.place(path))
        directory, name = place
        return os.open(name, _TO_LOOK, dir_fd=directory)

    def let_go(self) -> None:
        """Hold nothing any more."""
        fds, self._fds = self._fds, {}
        for fd in fds.values():
            os.close(fd)

    def _let_go_of_old(self) -> None:
        if self._fds and monotonic_ns() >= self._until_ns:
            self.let_go()
