"""What a view consists of: base, the store, the journal and the tree made of it; and the inodes
that somebody holds.

All parts of the overlay share one :class:`Layers`, and take from it what a travel or a commit
exchanges.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from yolofs.journal.journal import Journal
from yolofs.overlay.held_directories import HeldDirectories
from yolofs.overlay.inodes import ROOT_NUMBER, Inode, InodeTable, Version, version_of
from yolofs.paths import RelPath, StoreIno
from yolofs.state.kept_bases import KeptBases
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.clock import StampClock


class Layers:
    """The layers of a view, and the inodes of its files.

    ``base``, ``store``, ``inodes`` and ``clock_ns`` stay what they are; ``journal``, ``tree`` and
    ``fresh_from`` are others after a travel, commit or abort.
    """

    def __init__(
        self,
        base: Base,
        store: Store,
        journal: Journal,
        tree: Tree,
        *,
        fresh_from: StoreIno,
        clock_ns: Callable[[], int],
        on_drop: Callable[[Inode], None],
    ) -> None:
        """``on_drop`` is called with each inode that is forgotten, to let go of what it holds."""
        self.base = base
        self.store = store
        self.journal = journal
        self.tree = tree
        self.fresh_from = fresh_from
        """Store inodes from this number on were created after the last marker and may be written in
        place.
        """
        self.clock_ns = clock_ns
        self.stamp_clock = StampClock()
        """Tells the times of records, which are shown as those of the directories they change."""
        self.kept_bases = KeptBases(store)
        """Takes what base files are when the view takes them over."""
        self.held = HeldDirectories(base)
        self.outdated: dict[int, Version] = {}
        """The numbers of files of which the kernel has cached pages that are out of date, as the
        host changed base, each with the value of :attr:`~yolofs.overlay.inodes.Inode.paged` after
        the kernel has dropped them.
        """
        self.upheavals = 0
        """Counts what may have changed more of the view than
        :attr:`~yolofs.overlay.inodes.Inode.changes` tell.
        """
        self.inodes = InodeTable(on_drop)
        self.root = Inode(ROOT_NUMBER, stat.S_IFDIR, None, b"")
        self.root.lookups = 1
        self.place_root()
        self.inodes.add(self.root)

    def place_root(self) -> None:
        """Let the root's inode show what the tree has there."""
        self.root.entry = self.tree.root
        self.root.staged = self.tree.root.staged
        self.root.base = self.tree.root.base

    def path(self, inode: Inode) -> RelPath:
        """Return the path of an inode in the view (one of them, if it has several).

        Raises:
            FileNotFoundError: no name leads to it any more.
        """
        names = []
        current = inode
        while current is not self.root:
            if not current.is_placed or current.parent is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            names.append(current.name)
            current = current.parent
        names.reverse()
        return RelPath(b"/".join(names))

    def physical(self, inode: Inode) -> bytes:
        """Return the path of the store inode or base file behind an inode."""
        if inode.staged is not None:
            return self.store.path(inode.staged.ino)
        assert inode.base is not None
        return self.base.place(inode.base)

    def stat_by_plain_look(self, inode: Inode, rel: RelPath) -> os.stat_result | None:
        """Return the attributes of the base file of an unstaged inode, if a plain look at its path
        finds the same file.  None if a careful look is needed, which takes three times as long.

        A plain look follows symbolic links above the file.  Whoever puts one there can lead it to
        the same file alone, or it does not count.
        """
        if inode.is_directory or inode.staged is not None:
            return None
        try:
            st = os.lstat(self.base.place(rel))
        except OSError:
            return None
        is_same = stat.S_IFMT(st.st_mode) == inode.kind and version_of(st) == inode.seen and self.is_file_of(inode, st)
        return st if is_same else None

    def is_source_of(self, inode: Inode, st: os.stat_result) -> bool:
        """Tell whether a regular file's data comes from what base has, with these attributes, at
        its path.
        """
        return stat.S_ISREG(st.st_mode) and (inode.staged is not None or self.is_file_of(inode, st))

    def is_file_of(self, inode: Inode, st: os.stat_result) -> bool:
        """Tell whether a base file with these attributes is the one that an unstaged inode stands
        for.

        A directory may be known by a number of its path, so of two directories this cannot tell
        them apart.
        """
        return inode.is_directory or self.inodes.number_of(self.base.number(st)) == inode.number


def os_error(number: int) -> OSError:
    """Return the exception for an errno."""
    return OSError(number, os.strerror(number))
