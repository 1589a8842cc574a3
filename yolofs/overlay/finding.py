"""What a directory of the view shows under a name, and by which inode that is known."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from yolofs.inodes import Attr, Inode
from yolofs.overlay.copy_up import CopyUp
from yolofs.overlay.layers import os_error
from yolofs.paths import RelPath, join
from yolofs.tree import Entry, Staged


class Found(NamedTuple):
    """What a directory of the view shows under one name."""

    entry: Entry | None
    staged: Staged | None
    base: RelPath | None
    """The base path, if nothing is staged here."""
    st: os.stat_result
    """The attributes of the store inode or base file."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.st.st_mode)


class Finding(CopyUp):
    """Looks names up."""

    def lookup(self, parent: Inode, name: bytes) -> tuple[Inode, Attr] | None:
        """Return the inode and attributes of ``name`` in ``parent``, None if the view shows nothing there.

        The caller owes a :meth:`forget` for it.
        """
        found = self._find(parent, name)
        if found is None:
            return None
        inode = self._inode(parent, name, found)
        inode.lookups += 1
        return inode, self._attr(inode, found.st)

    def forget(self, number: int, count: int) -> None:
        """Take back ``count`` look-ups of an inode; unknown numbers are ignored."""
        inode = self.inodes.by_number.get(number)
        if inode is None or inode is self.root:
            return
        inode.lookups = max(0, inode.lookups - count)
        self.inodes.drop_if_unused(inode)

    def is_stable_name(self, parent: Inode, name: bytes) -> bool:
        """Tell whether only the view can change what ``name`` in ``parent`` leads to (or that it leads nowhere)."""
        entry = parent.entry
        if entry is not None and entry.children:
            below = entry.children.get(name)
            if below is not None:
                return below.base is None
        return parent.source is None

    def names(self, directory: Inode) -> list[bytes]:
        """Return the names that a directory shows, without ``.`` and ``..``, in a stable order.

        Raises:
            OSError: as opendir(3).
        """
        if directory.kind != stat.S_IFDIR:
            raise os_error(errno.ENOTDIR)
        if directory.is_orphan:
            return []
        entry = directory.entry
        children = entry.children if entry is not None else None
        source = directory.source
        names = self.base.names(source) if source is not None else []
        if not children:
            return names
        shown = [name for name in names if name not in children]
        shown.extend(name for name, below in children.items() if self._is_shown(below))
        return shown

    # ---- inside

    def _find(self, parent: Inode, name: bytes) -> Found | None:
        """Return what ``parent`` shows under ``name``."""
        entry = None
        parent_entry = parent.entry
        if parent_entry is not None and parent_entry.children:
            entry = parent_entry.children.get(name)
        if entry is not None:
            staged = entry.staged
            if staged is not None:
                return Found(entry, staged, None, os.lstat(self.store.path(staged.ino)))
            rel = entry.base
            if rel is None:
                return None
        else:
            source = parent.source
            if source is None or parent.is_orphan or self.base.is_hidden_name(source, name):
                return None
            if source in self.base.pseudo:
                return None
            rel = join(source, name)
        try:
            return Found(entry, None, rel, self.base.lstat(rel))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _inode(self, parent: Inode, name: bytes, found: Found) -> Inode:
        """Return the inode of what was found, a known one if it is the same file."""
        staged = found.staged
        table = self.inodes
        kind = stat.S_IFMT(found.st.st_mode)
        if staged is not None:
            natural = staged.base.ino if staged.base is not None else None
            number = table.number_of_staged(staged)
        else:
            natural = self.base.number(found.st)
            number = table.number_of(natural)
        inode = table.by_number.get(number)
        if inode is not None and not self._is_known_as(inode, kind, staged):
            number = table.alternate(natural if natural is not None else number)
            inode = None
        if inode is None:
            inode = table.add(Inode(number, kind, parent, name))
            if staged is None:
                inode.seen = (found.st.st_mtime_ns, found.st.st_size)
        elif inode.parent is not parent or inode.name != name:
            table.move(inode, parent, name)
        if staged is None and inode.base != found.base:
            self._close_fd(inode)
        inode.entry, inode.staged, inode.base = found.entry, staged, found.base
        return inode

    @staticmethod
    def _is_known_as(inode: Inode, kind: int, staged: Staged | None) -> bool:
        """Tell whether a known inode of the right number is the file that was found."""
        if inode.is_orphan or inode.kind != kind:
            return False
        if staged is None:
            return inode.staged is None
        return inode.staged is None or inode.staged is staged or inode.staged.key == staged.key

    def _known(self, found: Found) -> Inode | None:
        """Return the inode of what was found if there is one."""
        if found.staged is not None:
            return self.inodes.by_number.get(self.inodes.number_of_staged(found.staged))
        inode = self.inodes.by_number.get(self.inodes.number_of(self.base.number(found.st)))
        return inode if inode is not None and not inode.is_orphan and inode.staged is None else None

    def _is_shown(self, entry: Entry) -> bool:
        """Tell whether an entry shows anything: a redirect to a base path that the host removed does not."""
        if entry.staged is not None:
            return True
        if entry.base is None:
            return False
        try:
            self.base.lstat(entry.base)
        except OSError:
            return False
        return True

    def _base_has(self, parent: Inode, name: bytes) -> bool:
        """Tell whether base itself has something where ``parent`` would show ``name`` from."""
        source = parent.source
        if source is None:
            return False
        try:
            self.base.lstat(join(source, name))
        except OSError:
            return False
        return True
