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


class Removal:
    """Removes store inodes of a view."""

    def __init__(self, layers: Layers, descriptors: Descriptors) -> None:
        self._layers = layers
        self._store = layers.store
        self._descriptors = descriptors
        self.close_removed: Callable[[int], object] = os.close
        """Takes the last descriptor of a store inode that was removed, to close it now or later, in
        any thread: this is what frees its blocks, and takes as long as the disk does."""
        self._unnamed: frozenset[Staged] = frozenset()
        """Files of a journal that has ended and that are open still: no journal names them any
        more.
        """
        self.never_named: set[Staged] = set()
        """Files without a name that no journal names (:mod:`yolofs.overlay.unnamed`)."""

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
        self.never_named.discard(staged)
        fd = self._descriptors.give_up(inode) if inode.fd >= 0 and staged.origin is None else -1
        self._descriptors.close(inode)  # base's
        self.discard(staged.ino, fd)

    def free(self, staged: Staged) -> None:
        """Remove a store inode that no handle shows any more, if no name and no generation can show
        it either.
        """
        if self._is_unseen(staged):
            self.discard(staged.ino)

    def discard(self, ino: StoreIno, fd: int = -1) -> None:
        """Remove a store inode: on return it has no name, and no blocks either as soon as its
        descriptor is closed.

        ``fd`` is a descriptor of it, if there is one; it goes in any case, by
        :attr:`close_removed`.

        Raises:
            OSError: it cannot be removed.
        """
        if fd < 0:
            fd = self._store.hold(ino)
        try:
            self._store.remove(ino)
        finally:
            if fd >= 0:
                self.close_removed(fd)

    @contextlib.contextmanager
    def removed_on_error(self, ino: StoreIno) -> Iterator[None]:
        """Take a new store inode back if what is in here fails."""
        try:
            yield
        except BaseException:
            self._store.remove(ino)
            raise

    def _is_unseen(self, staged: Staged) -> bool:
        """Tell whether neither a name nor a generation can show a store inode."""
        if staged in self._unnamed or staged in self.never_named:
            return staged.ino not in self._layers.tree.staged
        return staged.ino >= self._layers.fresh_from and not self._layers.tree.nlink(staged)
