"""The descriptors that a view keeps open between operations: a bounded cache, never one for each
file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from yolofs.overlay.inodes import Inode
from yolofs.overlay.layers import Layers, os_error
from yolofs.paths import RelPath

_NO_FILE = frozenset([errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV])
"""With these an open(2) fails where there is no regular file."""


class Descriptors:
    """Opens the data of files, and closes what has not been used for longest when there is too
    much.

    An inode knows its descriptor itself (:attr:`~yolofs.overlay.inodes.Inode.fd`): reading and
    writing look there first, which saves them a call.
    """

    def __init__(self, layers: Layers, *, most: int) -> None:
        """``most``: how many are kept open between operations."""
        self._layers = layers
        self._base = layers.base
        self._store = layers.store
        self._most = most
        self._of: dict[Inode, None] = {}
        """The inodes that have one, the oldest first."""

    def of(self, inode: Inode, *, write: bool) -> int:
        """Return a descriptor of a regular file's data; one that writes only if its store inode may
        be written.
        """
        if inode.fd >= 0 and (inode.fd_writes or not write):
            return inode.fd
        self.close(inode)
        staged = inode.staged
        if staged is None or staged.origin is not None:
            source = inode.source
            assert source is not None
            self.keep(inode, self.open_base(inode, source)[0], writes=False)
        else:
            writes = write or staged.ino >= self._layers.fresh_from
            fd = self._store.open(staged.ino, os.O_RDWR if writes else os.O_RDONLY)
            self.keep(inode, fd, writes=writes)
        return inode.fd

    def open_base(self, inode: Inode, source: RelPath) -> tuple[int, os.stat_result]:
        """Open the base file behind an inode; return the descriptor and the file's attributes.

        Raises:
            OSError: as open(2); ESTALE if the host has put another file there, or none.
        """
        try:
            fd = self._base.open(source)
        except OSError as error:
            raise os_error(errno.ESTALE) if error.errno in _NO_FILE else error from None
        st = os.fstat(fd)
        if not self._layers.is_source_of(inode, st):
            os.close(fd)
            raise os_error(errno.ESTALE)
        return fd, st

    @contextlib.contextmanager
    def hold(self, inode: Inode) -> Iterator[int]:
        """Give what :func:`yolofs.store.base_opening.hold` returns of the base file or directory
        that an unstaged inode stands for.

        Raises:
            OSError: it is gone; ESTALE if the host has put another there; EOPNOTSUPP for a pseudo
                directory.
        """
        assert inode.base is not None
        if inode.base in self._base.pseudo:
            raise os_error(errno.EOPNOTSUPP)
        fd = self._layers.held.hold(inode.base)
        try:
            st = os.fstat(fd)
            if stat.S_IFMT(st.st_mode) != inode.kind or not self._layers.is_file_of(inode, st):
                raise os_error(errno.ESTALE)
            yield fd
        finally:
            os.close(fd)

    @staticmethod
    def is_other_file(inode: Inode, st: os.stat_result) -> bool:
        """Tell whether the open base file that has a staged file's data is no longer the one that
        base has there.

        Whoever has it open keeps it; ``st`` are the attributes of what the host has put in its
        place.
        """
        return inode.staged is not None and inode.fd >= 0 and not os.path.samestat(os.fstat(inode.fd), st)

    def keep(self, inode: Inode, fd: int, *, writes: bool) -> None:
        """Keep a descriptor of an inode's data open; it belongs to the cache from now on."""
        while len(self._of) >= self._most:
            spare = next((known for known in self._of if known.is_placed or known.source is None), None)
            if spare is None:  # what has no path in the view, and its data in base, could not be opened again
                break
            self.close(spare)
        inode.fd, inode.fd_writes = fd, writes
        self._of[inode] = None

    def close(self, inode: Inode) -> None:
        """Close what is open of an inode, if anything is."""
        if inode.fd >= 0:
            os.close(self.give_up(inode))

    def give_up(self, inode: Inode) -> int:
        """Return the descriptor of an inode that has one; the caller closes it."""
        fd = inode.fd
        inode.fd, inode.fd_writes = -1, False
        del self._of[inode]
        return fd

    def close_unused(self) -> None:
        """Close all that nobody has open."""
        for inode in list(self._of):
            if not inode.opens:
                self.close(inode)
