"""Removing store inodes that nothing can show any more."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Container, Iterator

from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import Inode
from yolofs.overlay.layers import Layers
from yolofs.paths import StoreIno
from yolofs.state.tree import Staged
from yolofs.store.readers import Readers

_MOST_LATE = 100_000
_MOST_LATE_BYTES = 1 << 30
"""A pager that nobody leaves must not fill the disk: what is more goes at once, and the reader may
miss it.
"""


class Removal:
    """Removes store inodes of a view."""

    def __init__(self, layers: Layers, descriptors: Descriptors) -> None:
        self._layers = layers
        self._store = layers.store
        self._descriptors = descriptors
        self.close_removed: Callable[[int], object] = os.close
        """Takes the last descriptor of a removed store inode, and closes it now or later, in any
        thread.  Closing it frees its blocks, and is as slow as the disk.
        """
        self._unnamed: frozenset[Staged] = frozenset()
        """Files of a journal that has ended and that are open still: no journal names them any
        more.
        """
        self._readers = Readers(self._store.directory)
        self._late: list[tuple[StoreIno, int, int]] = []
        """What is removed when nobody reads the store any more, each with its inode number on the
        disk and its ctime: after a commit or abort, another file may have got the number by then.
        """
        self._late_bytes = 0
        self.never_named: set[Staged] = set()
        """Files without a name that no journal names (:mod:`yolofs.overlay.unnamed_files`)."""

    def free_when_closed(self, named: Container[int]) -> None:
        """Have those store inodes go with their last handle that are open and that no journal has
        ``named``.
        """
        shown = (inode.staged for inode in self._layers.inodes.by_number.values() if inode.opens)
        self._unnamed = frozenset(staged for staged in shown if staged is not None and staged.ino not in named)

    def let_go(self, inode: Inode) -> None:
        """Close what is open of an inode that is forgotten, and remove its store inode if nothing
        else shows it.
        """
        staged = inode.staged
        if not (inode.is_orphan and staged is not None and self._is_unseen(staged)):
            self._descriptors.close(inode)
            return
        is_named = self._is_named(staged)
        self.never_named.discard(staged)
        fd = self._descriptors.give_up(inode) if inode.fd >= 0 and staged.origin is None else -1
        self._descriptors.close(inode)  # base's
        self.discard(staged.ino, fd, is_named=is_named)

    def free(self, staged: Staged) -> None:
        """Remove a store inode that no handle shows any more, if no name and no generation can show
        it either.
        """
        if self._is_unseen(staged):
            self.discard(staged.ino, is_named=self._is_named(staged))

    def discard(self, ino: StoreIno, fd: int = -1, *, is_named: bool = False) -> None:
        """Remove a store inode: on return it has no name, and no blocks either as soon as its
        descriptor is closed.

        One that the journal has named (``is_named``) goes later where somebody reads the store:
        with the next one, or at the end.  Nobody looks for others.  ``fd`` is a descriptor of it,
        if there is one; it goes in any case, by :attr:`close_removed`.

        Raises:
            OSError: it cannot be removed.
        """
        are_read = self._readers.are_there()
        if self._late and not are_read:
            self._remove_late()
        if are_read and is_named and self._may_be_late(ino):
            if fd >= 0:
                self.close_removed(fd)
            return
        if fd < 0:
            fd = self._store.hold(ino)
        try:
            self._store.remove(ino)
        finally:
            if fd >= 0:
                self.close_removed(fd)

    def close(self) -> None:
        """Remove what had to wait for readers.  The next mount removes what is still being read."""
        if self._late and not self._readers.are_there():
            self._remove_late()
        self._readers.close()

    def _may_be_late(self, ino: StoreIno) -> bool:
        """Have a store inode go later, unless too much is to go later as it is."""
        st = self._store.lstat(ino)
        count = st.st_blocks * 512
        if len(self._late) >= _MOST_LATE or self._late_bytes + count > _MOST_LATE_BYTES:
            return False
        self._late.append((ino, st.st_ino, st.st_ctime_ns))
        self._late_bytes += count
        return True

    def _remove_late(self) -> None:
        late, self._late, self._late_bytes = self._late, [], 0
        for ino, number, ctime_ns in late:
            with contextlib.suppress(OSError):  # a command that had the session has removed it
                st = self._store.lstat(ino)
                if (st.st_ino, st.st_ctime_ns) == (number, ctime_ns):
                    self._store.remove(ino)

    @contextlib.contextmanager
    def removed_on_error(self, ino: StoreIno) -> Iterator[None]:
        """Take a new store inode back if what is in here fails."""
        try:
            yield
        except BaseException:
            self._store.remove(ino)
            raise

    def _is_named(self, staged: Staged) -> bool:
        """Tell whether the journal has named a store inode."""
        return staged not in self._unnamed and staged not in self.never_named

    def _is_unseen(self, staged: Staged) -> bool:
        """Tell whether neither a name nor a generation can show a store inode."""
        if not self._is_named(staged):
            return staged.ino not in self._layers.tree.staged
        return staged.ino >= self._layers.fresh_from and not self._layers.tree.nlink(staged)
