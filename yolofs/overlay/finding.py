"""Finds the thing at a name in a directory of the view, and its inode."""

from __future__ import annotations

import errno
import os
import stat
from time import monotonic_ns

import msgspec

from yolofs.overlay.attributes import Attributes
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import Attr, Inode, natural_number, version_of
from yolofs.overlay.layers import Layers, os_error
from yolofs.overlay.recent_looks import RecentLooks
from yolofs.paths import NAME_MAX, RelPath, join
from yolofs.state.hard_links import key_for, staged_for
from yolofs.state.tree import Entry, Staged


class Found(msgspec.Struct, gc=False):
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


class Finding:
    """Looks names up."""

    def __init__(self, layers: Layers, descriptors: Descriptors, looks: RecentLooks, attributes: Attributes) -> None:
        self._layers = layers
        self._base = layers.base
        self._store = layers.store
        self._inodes = layers.inodes
        self._held = layers.held
        self._descriptors = descriptors
        self._looks = looks
        self._attributes = attributes

    def lookup(self, parent: Inode, name: bytes) -> tuple[Inode, Attr] | None:
        """Return the inode and attributes of ``name`` in ``parent``, None if the view shows nothing
        there.

        The caller owes a :meth:`forget` for it.
        """
        found = self.find(parent, name)
        if found is None:
            return None
        inode = self.inode_of(parent, name, found)
        inode.lookups += 1
        return inode, self._attributes.attr_of(inode, found.st)

    def lookup_inode(self, parent: Inode, name: bytes) -> Inode | None:
        """Do what :meth:`lookup` does, without the attributes: those of a directory take long where
        many of its names are staged.
        """
        found = self.find(parent, name)
        if found is None:
            return None
        inode = self.inode_of(parent, name, found)
        inode.lookups += 1
        return inode

    def forget(self, number: int, count: int) -> None:
        """Take back ``count`` look-ups of an inode; unknown numbers are ignored."""
        inode = self._inodes.by_number.get(number)
        if inode is None or inode is self._layers.root:
            return
        inode.lookups = max(0, inode.lookups - count)
        self._inodes.drop_if_unused(inode)

    def is_stable_name(self, parent: Inode, name: bytes) -> bool:
        """Tell whether only the view can change what ``name`` in ``parent`` leads to (or that it
        leads nowhere).
        """
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
        names = self._base_names(directory, source) if source is not None else []
        if not children:
            return names
        shown = [name for name in names if name not in children]
        shown.extend(name for name, below in children.items() if self._is_shown(below))
        return shown

    def stat_name(self, parent: Inode, name: bytes) -> os.stat_result | None:
        """Return the attributes of what a name shows, as the store or base has them, without making
        an inode.
        """
        found = self.find(parent, name)
        return found.st if found is not None else None

    def still_leads(self, parent: Inode, name: bytes, inode: Inode) -> bool:
        """Tell whether a name under which a file was seen is still one of its names, as far as can
        be told.
        """
        try:
            found = self.find(parent, name)
        except OSError:  # base does not let us look
            return True
        return found is not None and self.known(found) is inode

    def known_at(self, path: RelPath) -> Inode | None:
        """Return the inode of a path if it, and each directory above it, is known already and can
        be looked at.
        """
        inode: Inode | None = self._layers.root
        for name in path.split(b"/") if path else ():
            try:
                found = self.find(inode, name) if inode is not None else None
            except OSError:
                return None
            inode = self.known(found) if found is not None else None
        return inode

    # ---- inside

    def find(self, parent: Inode, name: bytes, *, lately: bool = False) -> Found | None:
        """Return what ``parent`` shows under ``name``; with ``lately`` base may have shown nothing
        there a moment ago.

        Raises:
            OSError: ENAMETOOLONG; or base cannot be looked at.
        """
        entry = None
        parent_entry = parent.entry
        if parent_entry is not None and parent_entry.children:
            entry = parent_entry.children.get(name)
        if entry is not None:
            staged = entry.staged
            if staged is not None:
                st = os.lstat(self._store.path(staged.ino))
                return Found(entry, staged, None, st) if self._has_data(staged, st) else None
            rel = entry.base
            if rel is None:
                return None
        else:
            if len(name) > NAME_MAX:  # the kernel lets names through that no disk takes
                raise os_error(errno.ENAMETOOLONG)
            source = parent.source
            if source is None or parent.is_orphan or self._base.is_hidden_name(source, name):
                return None
            if source in self._base.pseudo:
                return None
            rel = join(source, name)
        if lately and self._looks.missed[0] == rel and monotonic_ns() - self._looks.missed[1] < self._looks.lately_ns:
            return None
        try:
            directory = self._held.fd(parent.source) if entry is None and parent.source is not None else None
            if directory is not None:
                st = self._base.lstat_in(directory, name, rel)
            else:
                st = self._base.lstat(rel)
        except (FileNotFoundError, NotADirectoryError):
            if self._looks.lately_ns:
                self._looks.missed = rel, monotonic_ns()
            return None
        if entry is None and parent.source is not None and not self._base.listed.has(parent.source, name, st.st_dev):
            return None
        staged = staged_for(self._layers.tree, self._base, st)
        if staged is None:
            return Found(entry, None, rel, st)
        staged_st = os.lstat(self._store.path(staged.ino))
        if not self._has_data(staged, staged_st):  # the host took the name that it comes from: this one is base's own
            return Found(entry, None, rel, st)
        return Found(entry, staged, None, staged_st)

    def inode_of(self, parent: Inode, name: bytes, found: Found) -> Inode:
        """Return the inode of what was found, a known one if it is the same file."""
        staged = found.staged
        table = self._inodes
        kind = stat.S_IFMT(found.st.st_mode)
        natural, key = self._natural_number(found), staged.key if staged is not None else None
        number = table.number_of(natural, key)
        inode = table.by_number.get(number)
        if inode is None:
            inode = table.add(Inode(number, kind, parent, name))
        elif not self.is_known_as(inode, kind, staged):
            inode = table.add(Inode(table.alternate(natural, key, inode), kind, parent, name))
        elif inode.parent is not parent or inode.name != name or inode.is_nameless:
            self.note_name_seen(inode, parent, name)
        if staged is None and inode.base != found.base:
            self._descriptors.close(inode)
            if kind != stat.S_IFLNK:  # of a link the kernel may have another one's target
                inode.seen = version_of(found.st)
        inode.entry, inode.staged, inode.base = found.entry, staged, found.base
        if staged is None:
            inode.link_key = key_for(self._layers.tree, self._base, found.st)
        return inode

    def note_name_seen(self, inode: Inode, parent: Inode, name: bytes) -> None:
        """Note under which name an inode was last seen, and the one before, which it may still
        have.
        """
        before = inode.parent
        if before is not None and not inode.is_nameless:  # the host may have renamed it, or made it a second name
            place = (before, inode.name)
            inode.also = [other for other in self._inodes.other_names(inode) if other != place]
            inode.also.append(place)
        self._inodes.move(inode, parent, name)

    def inode_at(self, path: bytes) -> Inode:
        """Return the inode of a path of the view; it is not counted as looked up.

        Raises:
            FileNotFoundError: the view shows nothing there.
        """
        inode = self._layers.root
        for name in path.split(b"/") if path else ():
            found = self.find(inode, name)
            if found is None:
                raise os_error(errno.ENOENT)
            inode = self.inode_of(inode, name, found)
        return inode

    def _natural_number(self, found: Found) -> int:
        """Return the number of what was found, as it is before another file may have taken it."""
        if found.staged is not None:
            return natural_number(found.staged)
        assert found.base is not None
        natural = self._base.number(found.st)
        if found.is_directory and self._is_elsewhere_too(self._inodes.number_of(natural), found.base, found.st):
            return self._base.number_of_path(found.base)
        return natural

    def _is_elsewhere_too(self, number: int, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether a base directory is known at another path where it still is: by a bind
        mount.

        The kernel wants one place for a directory, so each of these needs a number of its own.
        """
        known = self._inodes.by_number.get(number)
        if known is None or known.staged is not None or known.base is None or known.base == path:
            return False
        try:
            other = self._base.lstat(known.base)
        except OSError:
            return False
        return (other.st_dev, other.st_ino) == (st.st_dev, st.st_ino)

    @staticmethod
    def is_known_as(inode: Inode, kind: int, staged: Staged | None) -> bool:
        """Tell whether a known inode of the right number is the file that was found."""
        if inode.is_orphan or inode.kind != kind:
            return False
        if staged is None:
            return inode.staged is None
        return inode.staged is staged or inode.key == staged.key

    def known(self, found: Found) -> Inode | None:
        """Return the inode of what was found if there is one."""
        key = found.staged.key if found.staged is not None else None
        inode = self._inodes.by_number.get(self._inodes.number_of(self._natural_number(found), key))
        if inode is None or not self.is_known_as(inode, stat.S_IFMT(found.st.st_mode), found.staged):
            return None
        return inode

    def _is_shown(self, entry: Entry) -> bool:
        """Tell whether an entry shows anything: what comes from a base path that the host removed
        does not.
        """
        staged = entry.staged
        if staged is not None:
            try:
                return staged.origin is None or self._has_data(staged, os.lstat(self._store.path(staged.ino)))
            except FileNotFoundError:  # the store has lost it: looking at it tells
                return True
        return entry.base is not None and self._is_in_base(entry.base)

    def _has_data(self, staged: Staged, st: os.stat_result) -> bool:
        """Tell whether the data of a staged file with these attributes is still there, should it be
        in base.

        A directory of which the host removed the base half shows the staged half.
        """
        return staged.origin is None or not stat.S_ISREG(st.st_mode) or self._is_file_in_base(staged.origin)

    def _base_names(self, directory: Inode, source: RelPath) -> list[bytes]:
        try:
            return self._base.names(source)
        except (FileNotFoundError, NotADirectoryError):
            if directory.staged is None:
                raise
            return []

    def _is_in_base(self, rel: RelPath) -> bool:
        try:
            self._held.lstat(rel)
        except OSError:
            return False
        return True

    def _is_file_in_base(self, rel: RelPath) -> bool:
        try:
            return stat.S_ISREG(self._held.lstat(rel).st_mode)
        except OSError:
            return False

    def base_has(self, parent: Inode, name: bytes) -> bool:
        """Tell whether base itself has something where ``parent`` would show ``name`` from."""
        source = parent.source
        return source is not None and self._is_in_base(join(source, name))
