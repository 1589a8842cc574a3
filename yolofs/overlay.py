"""The view: base, overridden by the tree, its data in the store.  Every filesystem operation, synchronous.

The overlay works on :class:`~yolofs.inodes.Inode` objects and plain values and raises :class:`OSError`; it knows
nothing of FUSE.  It is not thread-safe: one thread (the device loop, when mounted) owns it.

Every change goes the same way: the store inode first, then the record into the journal, then the record into the
tree.  So what is in memory is always what a replay would give, and a crash in between leaves at most a store
inode that nothing refers to.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from yolofs import copying
from yolofs.base import Base
from yolofs.inodes import ROOT_NUMBER, Attr, Inode, InodeTable
from yolofs.journal import Journal
from yolofs.paths import RelPath, StoreIno, join
from yolofs.records import Change, Delete, Rename, Stage
from yolofs.store import Store
from yolofs.tree import Entry, Staged, Tree

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
_CLOCK_REALTIME_COARSE = 5  # linux/time.h; the time module has no name for it


def coarse_clock_ns() -> int:
    """Return the time by the clock that the kernel's own filesystems stamp files with."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


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


class Owner(NamedTuple):
    """Whom a new file belongs to."""

    uid: int
    gid: int


class Invalidation(NamedTuple):
    """What the kernel must forget after the state was exchanged."""

    inodes: list[int]
    """Numbers of inodes whose attributes and pages changed."""
    entries: list[tuple[int, bytes]]
    """Names (directory number, name) that lead elsewhere now."""


class Overlay:
    """The view of ``tree`` over ``base``.

    ``fresh_from``: store inodes from this number on were created after the last marker and may be written in place.
    ``max_fds`` bounds the descriptors kept open between operations.
    """

    def __init__(
        self,
        base: Base,
        store: Store,
        journal: Journal,
        tree: Tree,
        *,
        fresh_from: StoreIno,
        clock_ns: Callable[[], int] = coarse_clock_ns,
        max_fds: int = 512,
    ) -> None:
        self.base = base
        self.store = store
        self.journal = journal
        self.tree = tree
        self.fresh_from = fresh_from
        self.clock_ns = clock_ns
        self._max_fds = max_fds
        self._with_fd: dict[Inode, None] = {}
        self.inodes = InodeTable(self._on_drop)
        self.root = Inode(ROOT_NUMBER, stat.S_IFDIR, None, b"")
        self.root.lookups = 1
        self._place_root()
        self.inodes.add(self.root)

    def close(self) -> None:
        """Close every descriptor; the overlay must not be used afterwards."""
        for inode in list(self._with_fd):
            self._close_fd(inode)

    # ---- names

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

    def is_stable_name(self, parent: Inode, name: bytes) -> bool:
        """Tell whether only the view can change what ``name`` in ``parent`` leads to (or that it leads nowhere)."""
        entry = parent.entry
        if entry is not None and entry.children:
            below = entry.children.get(name)
            if below is not None:
                return below.base is None
        return parent.source is None

    def forget(self, number: int, count: int) -> None:
        """Take back ``count`` look-ups of an inode; unknown numbers are ignored."""
        inode = self.inodes.by_number.get(number)
        if inode is None or inode is self.root:
            return
        inode.lookups = max(0, inode.lookups - count)
        self.inodes.drop_if_unused(inode)

    def path(self, inode: Inode) -> RelPath:
        """Return the path of an inode in the view (one of them, if it has several).

        Raises:
            FileNotFoundError: no name leads to it any more.
        """
        parts = []
        current = inode
        while current is not self.root:
            if current.is_orphan or current.parent is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            parts.append(current.name)
            current = current.parent
        parts.reverse()
        return RelPath(b"/".join(parts))

    def names(self, directory: Inode) -> list[bytes]:
        """Return the names that a directory shows, without ``.`` and ``..``, in a stable order.

        Raises:
            OSError: as opendir(3).
        """
        if directory.kind != stat.S_IFDIR:
            raise _error(errno.ENOTDIR)
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

    # ---- attributes

    def getattr(self, inode: Inode) -> Attr:
        """Return the attributes of an inode.

        Raises:
            OSError: the base file behind it is gone.
        """
        return self._attr(inode, self._stat(inode))

    def setattr(
        self,
        inode: Inode,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        size: int | None = None,
        atime_ns: int | None = None,
        mtime_ns: int | None = None,
    ) -> Attr:
        """Change what is given (permission bits, owners, bytes, nanoseconds) and return the attributes after it."""
        if size is not None:
            self._truncate(inode, size)
        if mode is not None or uid is not None or gid is not None or atime_ns is not None or mtime_ns is not None:
            path = self._own_metadata(inode)
            if uid is not None or gid is not None:
                os.chown(path, -1 if uid is None else uid, -1 if gid is None else gid, follow_symlinks=False)
            if mode is not None:
                os.chmod(path, stat.S_IMODE(mode))
            if atime_ns is not None or mtime_ns is not None:
                st = os.lstat(path)
                times = (
                    st.st_atime_ns if atime_ns is None else atime_ns,
                    st.st_mtime_ns if mtime_ns is None else mtime_ns,
                )
                os.utime(path, ns=times, follow_symlinks=False)
        return self.getattr(inode)

    def readlink(self, inode: Inode) -> bytes:
        """Return the target of a symbolic link."""
        return os.readlink(self._physical(inode))

    def statvfs(self) -> os.statvfs_result:
        """Return the figures of the disk that the store is on: what is written goes there."""
        return os.statvfs(self.store.directory)

    def getxattr(self, inode: Inode, name: bytes) -> bytes:
        """Return an extended attribute."""
        return os.getxattr(self._physical(inode), name, follow_symlinks=False)

    def listxattr(self, inode: Inode) -> list[bytes]:
        """Return the names of all extended attributes."""
        return [os.fsencode(name) for name in os.listxattr(self._physical(inode), follow_symlinks=False)]

    def setxattr(self, inode: Inode, name: bytes, value: bytes) -> None:
        """Set an extended attribute."""
        os.setxattr(self._own_metadata(inode), name, value, follow_symlinks=False)

    def removexattr(self, inode: Inode, name: bytes) -> None:
        """Remove an extended attribute."""
        os.getxattr(self._physical(inode), name, follow_symlinks=False)
        os.removexattr(self._own_metadata(inode), name, follow_symlinks=False)

    # ---- making and removing names

    def create(self, parent: Inode, name: bytes, mode: int, owner: Owner) -> tuple[Inode, Attr]:
        """Create and open (for writing) a regular file.  The caller owes a forget and a release.

        Raises:
            FileExistsError: the view shows something at this name.
        """
        self._check_new(parent, name)
        ino, fd = self.store.create_file(stat.S_IMODE(mode))
        try:
            inode, attr = self._new(parent, name, ino, owner, mode)
        except BaseException:
            os.close(fd)
            raise
        self._keep_fd(inode, fd, writes=True)
        inode.opens += 1
        inode.writers += 1
        return inode, attr

    def mknod(self, parent: Inode, name: bytes, mode: int, rdev: int, owner: Owner) -> tuple[Inode, Attr]:
        """Create a regular file, fifo, socket or device; ``mode`` tells which.  The caller owes a forget."""
        self._check_new(parent, name)
        if stat.S_ISREG(mode):
            ino, fd = self.store.create_file(stat.S_IMODE(mode))
            os.close(fd)
        else:
            ino = self.store.create_special(mode, rdev)
        return self._new(parent, name, ino, owner, mode)

    def mkdir(self, parent: Inode, name: bytes, mode: int, owner: Owner) -> tuple[Inode, Attr]:
        """Create a directory.  The caller owes a forget."""
        self._check_new(parent, name)
        inode, attr = self._new(parent, name, self.store.create_dir(stat.S_IMODE(mode)), owner, mode | stat.S_IFDIR)
        self._count_subdir(parent, 1)
        return inode, attr

    def symlink(self, parent: Inode, name: bytes, target: bytes, owner: Owner) -> tuple[Inode, Attr]:
        """Create a symbolic link.  The caller owes a forget."""
        self._check_new(parent, name)
        return self._new(parent, name, self.store.create_symlink(target), owner, stat.S_IFLNK | 0o777)

    def link(self, inode: Inode, parent: Inode, name: bytes) -> tuple[Inode, Attr]:
        """Give a file one more name.  The caller owes a forget."""
        self._check_new(parent, name)
        if inode.is_directory:
            raise _error(errno.EPERM)
        if inode.is_orphan:
            raise _error(errno.ENOENT)
        if inode.staged is None:
            self._copy_up(inode, data=inode.kind != stat.S_IFREG)
        staged = inode.staged
        assert staged is not None
        path = join(self.path(parent), name)
        self._record(parent, Stage(self.clock_ns(), path, staged.ino, origin=staged.origin))
        inode.lookups += 1
        self.inodes.move(inode, parent, name)
        return inode, self.getattr(inode)

    def unlink(self, parent: Inode, name: bytes) -> None:
        """Remove a name that is no directory."""
        found = self._find(parent, name)
        if found is None:
            raise _error(errno.ENOENT)
        if found.is_directory:
            raise _error(errno.EISDIR)
        self._remove(parent, name, found)

    def rmdir(self, parent: Inode, name: bytes) -> None:
        """Remove an empty directory."""
        found = self._find(parent, name)
        if found is None:
            raise _error(errno.ENOENT)
        if not found.is_directory:
            raise _error(errno.ENOTDIR)
        self._check_replaceable(parent, name, found)
        self._remove(parent, name, found)
        self._count_subdir(parent, -1)

    def rename(self, parent: Inode, name: bytes, new_parent: Inode, new_name: bytes, flags: int = 0) -> None:
        """Rename, as renameat2(2) does; ``flags`` are RENAME_NOREPLACE and RENAME_EXCHANGE.

        One record, whatever lies below a directory that is renamed.
        """
        source = self._find(parent, name)
        target = self._find(new_parent, new_name)
        if source is None or (target is None and flags & RENAME_EXCHANGE):
            raise _error(errno.ENOENT)
        if target is not None and flags & RENAME_NOREPLACE:
            raise _error(errno.EEXIST)
        if parent is new_parent and name == new_name:
            return
        if target is not None and _is_same_file(source, target):
            return
        old_path, new_path = join(self.path(parent), name), join(self.path(new_parent), new_name)
        exchange = bool(flags & RENAME_EXCHANGE)
        if new_path.startswith(old_path + b"/"):
            raise _error(errno.EINVAL)
        if old_path.startswith(new_path + b"/"):
            raise _error(errno.EINVAL if exchange else errno.ENOTEMPTY)
        if target is None:
            self._check_place(new_parent, new_name)
        self._check_rename(source, target, new_parent, new_name, exchange=exchange)
        absent = not exchange and not self._base_has(parent, name)
        record = Rename(self.clock_ns(), old_path, new_path, exchange=exchange, absent=absent)
        entry = self._record(new_parent, record)
        self._adopt(parent, self.tree.find(self.path(parent)))
        self._after_rename(parent, name, new_parent, new_name, source, target, entry, exchange=exchange)

    # ---- data

    def open(self, inode: Inode, flags: int) -> bool:
        """Open a regular file with the flags of open(2) and tell whether the pages that are cached of it still hold.

        The caller owes a :meth:`release`, with ``writer`` as :func:`may_write` says of the flags.

        Raises:
            OSError: ESTALE when the host put another file in the place of this base file.
        """
        holds = True
        source = inode.source
        if source is not None and not inode.is_orphan:
            holds = self._check_base(inode, source)
        if flags & os.O_TRUNC:
            self._truncate(inode, 0)
        elif inode.fd < 0 and inode.kind == stat.S_IFREG:
            self._fd(inode, write=False)
        inode.opens += 1
        if may_write(flags):
            inode.writers += 1
        return holds

    def release(self, inode: Inode, *, writer: bool) -> None:
        """Take back one :meth:`open`."""
        inode.opens -= 1
        if writer:
            inode.writers -= 1
        if not inode.opens:
            self.inodes.drop_if_unused(inode)

    def read(self, inode: Inode, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end of the file."""
        fd = inode.fd
        return os.pread(fd if fd >= 0 else self._fd(inode, write=False), size, offset)

    def write(self, inode: Inode, offset: int, data: bytes) -> int:
        """Write ``data`` at ``offset`` and return how many bytes were written.

        A file that so far came from base, or from before the last marker, is copied up first.
        """
        staged = inode.staged
        if staged is None or staged.ino < self.fresh_from or staged.origin is not None:
            self._own_data(inode)
        return os.pwrite(inode.fd if inode.fd_writes else self._fd(inode, write=True), data, offset)

    def sync_fd(self, inode: Inode) -> int | None:
        """Return a descriptor whose fsync makes the file durable, None where there is nothing to make durable.

        The caller syncs the journal afterwards.
        """
        staged = inode.staged
        if staged is None or inode.kind != stat.S_IFREG:
            return None
        return self._fd(inode, write=False)

    # ---- exchanging the state

    def mark(self, fresh_from: StoreIno) -> None:
        """A marker was written: what is in the store by now must not be written in place any more."""
        self.fresh_from = fresh_from

    def writers(self) -> list[Inode]:
        """Return the inodes that are open for writing."""
        return [inode for inode in self.inodes.by_number.values() if inode.writers]

    def reload(self, journal: Journal, tree: Tree, *, fresh_from: StoreIno, committed: bool = False) -> Invalidation:
        """Show another state, and tell what the kernel must forget.

        Files that are still the same keep their inodes.  One that is open and has other content now is left behind
        as an orphan: its handles keep what they were opened with, and the path gets another inode.  With
        ``committed`` base has become what the view was: every path keeps its inode, also where it is open.
        """
        self.journal = journal
        self.tree = tree
        self.fresh_from = fresh_from
        stale = Invalidation([], [])
        before = {inode: _keys(inode) for inode in self.inodes.by_number.values() if inode.is_directory}
        sources = {inode: inode.source for inode in before}
        self._place_root()
        kept: set[tuple[Inode, bytes]] = set()
        for inode in self._by_depth():
            self._revisit(inode, stale, committed=committed)
            if not inode.is_orphan and inode.parent is not None:
                kept.add((inode.parent, inode.name))
        for inode, old in before.items():
            inode.subdirs = None
            if not inode.is_orphan:
                changed = _changed_names(old, sources[inode], _keys(inode), inode.source)
                if changed:
                    stale.inodes.append(inode.number)
                    stale.entries.extend((inode.number, name) for name in changed if (inode, name) not in kept)
        return stale

    def _place_root(self) -> None:
        self.root.entry = self.tree.root
        self.root.staged = self.tree.root.staged
        self.root.base = self.tree.root.base

    def _by_depth(self) -> list[Inode]:
        """Return all inodes but the root, parents before children."""
        depths: dict[Inode, int] = {self.root: 0}
        for start in self.inodes.by_number.values():
            chain = []
            current: Inode | None = start
            while current is not None and current not in depths:
                chain.append(current)
                current = current.parent
            depth = depths[current] if current is not None else 0
            for inode in reversed(chain):
                depth += 1
                depths[inode] = depth
        del depths[self.root]
        return sorted(depths, key=depths.__getitem__)

    def _revisit(self, inode: Inode, stale: Invalidation, *, committed: bool) -> None:
        """Let one inode show what its path shows in the new state, or leave it behind as an orphan."""
        parent = inode.parent
        if inode.is_orphan or parent is None:
            return
        entry, staged, base = _shown(parent, inode.name)
        is_same = False
        if not parent.is_orphan and (staged is not None or base is not None):
            key = staged.key if staged is not None else base
            is_same = inode.key == key
            if not is_same and committed and base is not None:
                is_same = self._take_over(inode, base)
        is_moved = inode.source != (staged.origin if staged is not None else base) or (
            (inode.staged.ino if inode.staged is not None else None) != (staged.ino if staged is not None else None)
        )
        if is_same and is_moved and inode.opens and not committed:
            is_same = False
        if not is_same:
            inode.is_orphan = True
            inode.entry = None
            stale.entries.append((parent.number, inode.name))
            if not inode.opens:
                stale.inodes.append(inode.number)
            return
        inode.entry, inode.staged, inode.base = entry, staged, base
        if is_moved:
            self._close_fd(inode)
            stale.inodes.append(inode.number)

    def _take_over(self, inode: Inode, base: RelPath) -> bool:
        """After a commit: let the base file at ``base`` be known by the inode that was staged there."""
        try:
            st = self.base.lstat(base)
        except OSError:
            return False
        if stat.S_IFMT(st.st_mode) != inode.kind:
            return False
        self.inodes.rename_number(self.base.number(st), inode.number)
        inode.seen = (st.st_mtime_ns, st.st_size)
        return True

    # ---- finding

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

    def _stat(self, inode: Inode) -> os.stat_result:
        staged = inode.staged
        if staged is not None:
            return os.lstat(self.store.path(staged.ino))
        if inode.fd >= 0:
            return os.fstat(inode.fd)
        assert inode.base is not None
        return self.base.lstat(inode.base)

    def _attr(self, inode: Inode, st: os.stat_result) -> Attr:
        """Return an inode's attributes, given those of its store inode or base file."""
        staged = inode.staged
        size, blocks, mtime_ns, ctime_ns = st.st_size, st.st_blocks, st.st_mtime_ns, st.st_ctime_ns
        nlink = st.st_nlink
        if inode.kind == stat.S_IFDIR:
            nlink = self._nlink(inode, st)
            touched_ns = inode.entry.touched_ns if inode.entry is not None else 0
            if touched_ns:
                mtime_ns = ctime_ns = touched_ns
        elif staged is not None:
            nlink = len(staged.names)
            if staged.origin is not None and inode.kind == stat.S_IFREG:
                data = self.base.lstat(staged.origin)
                size, blocks = data.st_size, data.st_blocks
        elif inode.is_orphan:
            nlink = 0
        else:
            inode.seen = (mtime_ns, size)
        return Attr(
            inode.number,
            st.st_mode,
            nlink,
            st.st_uid,
            st.st_gid,
            st.st_rdev,
            size,
            blocks,
            st.st_atime_ns,
            mtime_ns,
            ctime_ns,
            staged is not None and staged.origin is None,
        )

    def _nlink(self, directory: Inode, st: os.stat_result) -> int:
        """Return a directory's link count: two, and one for each subdirectory."""
        if directory.is_orphan:
            return 0
        entry = directory.entry
        if entry is None or not entry.children:
            return self._source_nlink(directory, st)
        if directory.subdirs is None:
            directory.subdirs = sum(map(self._subdir_delta, entry.children.values()))
        nlink = self._source_nlink(directory, st)
        return 1 if nlink == 1 else nlink + directory.subdirs

    def _source_nlink(self, directory: Inode, st: os.stat_result) -> int:
        source = directory.source
        if source is None:
            return 2
        if directory.staged is not None:
            try:
                st = self.base.lstat(source)
            except OSError:
                return 2
        return st.st_nlink - self.base.hidden_in(source)

    def _subdir_delta(self, entry: Entry) -> int:
        """Return how many more subdirectories this name is in the view than in base: -1, 0 or 1."""
        assert entry.parent is not None
        source = entry.parent.source
        natural = join(source, entry.name) if source is not None else None
        if entry.base is not None and entry.base == natural:
            return 0
        now = False
        if entry.staged is not None:
            now = stat.S_ISDIR(os.lstat(self.store.path(entry.staged.ino)).st_mode)
        elif entry.base is not None:
            now = self._is_base_directory(entry.base)
        return int(now) - int(natural is not None and self._is_base_directory(natural))

    def _is_base_directory(self, rel: RelPath) -> bool:
        try:
            return stat.S_ISDIR(self.base.lstat(rel).st_mode)
        except OSError:
            return False

    @staticmethod
    def _count_subdir(directory: Inode, change: int) -> None:
        if directory.subdirs is not None:
            directory.subdirs += change

    # ---- checks

    def _check_place(self, parent: Inode, name: bytes) -> None:
        """Raise unless a name may be made in ``parent``."""
        if parent.kind != stat.S_IFDIR:
            raise _error(errno.ENOTDIR)
        if parent.is_orphan:
            raise _error(errno.ENOENT)
        source = parent.source
        if source is not None:
            if source in self.base.pseudo:
                raise _error(errno.EROFS)
            if self.base.is_hidden_name(source, name):
                raise _error(errno.EACCES)

    def _check_new(self, parent: Inode, name: bytes) -> None:
        """Raise unless ``name`` can be created in ``parent``."""
        self._check_place(parent, name)
        if self._find(parent, name) is not None:
            raise _error(errno.EEXIST)

    def _check_replaceable(self, parent: Inode, name: bytes, found: Found) -> None:
        """Raise unless a directory that was found may be removed: it is empty and nothing is mounted there."""
        source = found.staged.origin if found.staged is not None else found.base
        if source is not None and self.base.is_pinned(source):
            raise _error(errno.EBUSY)
        directory = self._inode(parent, name, found)
        is_empty = not self.names(directory)
        self.inodes.drop_if_unused(directory)
        if not is_empty:
            raise _error(errno.ENOTEMPTY)

    def _check_rename(
        self, source: Found, target: Found | None, new_parent: Inode, new_name: bytes, *, exchange: bool
    ) -> None:
        for found in (source, target) if exchange else (source,):
            if found is not None and found.is_directory:
                base = found.staged.origin if found.staged is not None else found.base
                if base is not None and self.base.is_pinned(base):
                    raise _error(errno.EBUSY)
        if target is None or exchange:
            return
        if source.is_directory and not target.is_directory:
            raise _error(errno.ENOTDIR)
        if target.is_directory:
            if not source.is_directory:
                raise _error(errno.EISDIR)
            self._check_replaceable(new_parent, new_name, target)

    def _check_base(self, inode: Inode, source: RelPath) -> bool:
        """Tell whether the base file behind an inode is as the kernel was told; ESTALE if it is another file."""
        try:
            st = self.base.lstat(source)
        except FileNotFoundError:
            raise _error(errno.ESTALE) from None
        if inode.staged is None and self.inodes.number_of(self.base.number(st)) != inode.number:
            raise _error(errno.ESTALE)
        now = (st.st_mtime_ns, st.st_size)
        if now == inode.seen:
            return True
        inode.seen = now
        return False

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

    # ---- recording

    def _record(self, parent: Inode, *changes: Change) -> Entry | None:
        """Write records to the journal and apply them; ``parent`` is the directory of the last one's path.

        Raises:
            OSError: the journal could not be written; nothing has changed then.
        """
        self.journal.append(*changes)
        entry = None
        for change in changes:
            entry = self.tree.apply(change)
        if entry is not None:
            self._adopt(parent, entry.parent)
        elif parent.entry is None:
            self._adopt(parent, self.tree.find(self.path(parent)))
        return entry

    def _adopt(self, directory: Inode, entry: Entry | None) -> None:
        """Tell a directory's inode, and those above it, of the entries that applying a record made for them."""
        inode: Inode | None = directory
        while inode is not None and entry is not None and inode.entry is not entry:
            inode.entry = entry
            inode, entry = inode.parent, entry.parent

    def _new(self, parent: Inode, name: bytes, ino: StoreIno, owner: Owner, mode: int) -> tuple[Inode, Attr]:
        """Give a store inode that was just made its owner and its name."""
        path = self.store.path(ino)
        try:
            self._set_owner(parent, path, owner, mode)
            entry = self._record(parent, Stage(self.clock_ns(), join(self.path(parent), name), ino))
            st = os.lstat(path)
        except BaseException:
            self.store.remove(ino)
            raise
        assert entry is not None
        inode = self._inode(parent, name, Found(entry, entry.staged, None, st))
        inode.lookups += 1
        return inode, self._attr(inode, st)

    def _set_owner(self, parent: Inode, path: bytes, owner: Owner, mode: int) -> None:
        """Set a new file's owner, group (the directory's, if that is setgid) and permission bits."""
        uid, gid = owner
        bits = stat.S_IMODE(mode)
        parent_st = self._stat(parent)
        if parent_st.st_mode & stat.S_ISGID:
            gid = parent_st.st_gid
            if stat.S_ISDIR(mode):
                bits |= stat.S_ISGID
        st = os.lstat(path)
        if (st.st_uid, st.st_gid) != (uid, gid):
            os.chown(path, uid, gid, follow_symlinks=False)
        if not stat.S_ISLNK(mode) and (stat.S_IMODE(st.st_mode) != bits or bits & (stat.S_ISUID | stat.S_ISGID)):
            os.chmod(path, bits)

    def _remove(self, parent: Inode, name: bytes, found: Found) -> None:
        """Record that a name is gone, and orphan its inode if that was its last."""
        source = parent.source
        absent = not self._base_has(parent, name)
        base = None
        if not absent and found.base is not None and source is not None and found.base == join(source, name):
            base = self.base.fingerprint(found.st)
        path = join(self.path(parent), name)
        self._record(parent, Delete(self.clock_ns(), path, absent=absent, base=base))
        self._lost_name(found)

    def _lost_name(self, found: Found) -> None:
        """A name of a file is gone: orphan the file's inode unless it has others, free what nobody can see."""
        if found.staged is not None:
            inode = self.inodes.by_number.get(self.inodes.number_of_staged(found.staged))
            if inode is not None and inode.staged is not found.staged:
                inode = None
            if found.staged.names:
                if inode is not None:
                    entry = found.staged.names[0]
                    inode.name, inode.entry = entry.name, entry
                return
        else:
            inode = self.inodes.by_number.get(self.inodes.number_of(self.base.number(found.st)))
            if inode is not None and (inode.staged is not None or inode.base != found.base):
                inode = None
        if inode is not None:
            inode.is_orphan = True
            inode.entry = None
            self.inodes.drop_if_unused(inode)
        elif found.staged is not None:
            self._free(found.staged)

    def _after_rename(
        self,
        parent: Inode,
        name: bytes,
        new_parent: Inode,
        new_name: bytes,
        source: Found,
        target: Found | None,
        entry: Entry | None,
        *,
        exchange: bool,
    ) -> None:
        """Bring the inodes in line with a rename that has been recorded."""
        if target is not None and not exchange:
            self._lost_name(target)
        moved = self._known(source)
        swapped = self._known(target) if exchange and target is not None else None
        if moved is not None:
            moved.entry = entry
            self.inodes.move(moved, new_parent, new_name)
        if swapped is not None:
            swapped.entry = self.tree.find(join(self.path(parent), name))
            self.inodes.move(swapped, parent, name)
        if source.is_directory:
            self._count_subdir(parent, -1)
            self._count_subdir(new_parent, 1)
        if target is not None and target.is_directory:
            self._count_subdir(new_parent, -1)
            if exchange:
                self._count_subdir(parent, 1)

    def _known(self, found: Found) -> Inode | None:
        """Return the inode of what was found if there is one."""
        if found.staged is not None:
            return self.inodes.by_number.get(self.inodes.number_of_staged(found.staged))
        inode = self.inodes.by_number.get(self.inodes.number_of(self.base.number(found.st)))
        return inode if inode is not None and not inode.is_orphan and inode.staged is None else None

    # ---- copy-up

    def _own_metadata(self, inode: Inode) -> bytes:
        """Make sure that an inode's metadata is its own in the present; return the path of its store inode."""
        staged = inode.staged
        if staged is None or staged.ino < self.fresh_from:
            self._copy_up(inode, data=inode.kind != stat.S_IFREG)
        elif inode.entry is not None and inode.entry.touched_ns:
            self._settle_times(inode, staged)
        assert inode.staged is not None
        return self.store.path(inode.staged.ino)

    def _settle_times(self, directory: Inode, staged: Staged) -> None:
        """Give a directory's store inode the mtime that its names gave it so far, and record that it has it."""
        entry = directory.entry
        assert entry is not None
        path = self.store.path(staged.ino)
        os.utime(path, ns=(os.lstat(path).st_atime_ns, entry.touched_ns))
        record = Stage(self.clock_ns(), self.path(directory), staged.ino, origin=staged.origin)
        self._record(directory.parent or directory, record)

    def _own_data(self, inode: Inode, *, keep: int | None = None) -> None:
        """Make sure that an inode's data is its own in the present: its first ``keep`` bytes, or all of it."""
        staged = inode.staged
        if staged is None or staged.ino < self.fresh_from:
            self._copy_up(inode, data=True, keep=keep)
        elif staged.origin is not None:
            self._fill(inode, staged, keep)

    def _fill(self, inode: Inode, staged: Staged, keep: int | None) -> None:
        """Copy the data of a metadata-only store inode from base."""
        assert staged.origin is not None
        path = self.store.path(staged.ino)
        st = os.lstat(path)
        self._copy_data(staged.origin, staged.ino, keep)
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        self._show(inode, staged.ino, None)

    def _copy_data(self, origin: RelPath, ino: StoreIno, keep: int | None) -> None:
        target = self.store.open(ino, os.O_WRONLY)
        try:
            if keep == 0:
                os.ftruncate(target, 0)
                return
            source = self.base.open(origin)
            try:
                size = os.fstat(source).st_size
                copying.copy_data(source, target, size if keep is None else min(size, keep))
            finally:
                os.close(source)
        finally:
            os.close(target)

    def _copy_up(self, inode: Inode, *, data: bool, keep: int | None = None) -> None:
        """Make a new store inode for what so far came from base or from before the last marker."""
        staged = inode.staged
        origin: RelPath | None = None
        fingerprint = None
        if staged is not None:
            source = self.store.path(staged.ino)
            origin = staged.origin
        else:
            assert inode.base is not None
            if inode.base in self.base.pseudo:
                raise _error(errno.EROFS)
            source = self.base.path(inode.base)
            origin = inode.base if inode.kind in (stat.S_IFREG, stat.S_IFDIR) else None
            fingerprint = self.base.fingerprint(self.base.lstat(inode.base))
        is_file = inode.kind == stat.S_IFREG
        copies = not is_file or (data and keep != 0)
        if is_file and staged is not None and not data and origin is None:
            copies = True
        from_origin = is_file and origin is not None
        ino = self.store.copy_up(source, data=copies and not (from_origin and staged is not None))
        try:
            if is_file and data:
                if from_origin and staged is not None:
                    assert origin is not None
                    self._copy_data(origin, ino, keep)
                elif keep is not None:
                    os.truncate(self.store.path(ino), keep)
                origin = None
            self._keep_times(inode, ino)
            self._show(inode, ino, origin, fingerprint)
        except BaseException:
            if inode.staged is None or inode.staged.ino != ino:
                self.store.remove(ino)
            raise

    def _keep_times(self, inode: Inode, ino: StoreIno) -> None:
        """Give a copied-up directory the mtime that the view shows for it."""
        entry = inode.entry
        if inode.is_directory and entry is not None and entry.touched_ns:
            path = self.store.path(ino)
            os.utime(path, ns=(os.lstat(path).st_atime_ns, entry.touched_ns))

    def _show(self, inode: Inode, ino: StoreIno, origin: RelPath | None, fingerprint: object = None) -> None:
        """Record, for every name of an inode, that it shows store inode ``ino``."""
        staged = inode.staged
        now = self.clock_ns()
        base = fingerprint  # a Fingerprint or None
        if inode.is_orphan:
            if staged is not None and staged.ino == ino:
                staged.origin = origin
            else:
                inode.staged = Staged(ino, origin, inode.key if inode.key is not None else ino, None)
                if staged is not None:
                    self._free(staged)
        else:
            names = [entry.path() for entry in staged.names] if staged is not None else [self.path(inode)]
            changes = [Stage(now, path, ino, base=base, origin=origin) for path in names]  # type: ignore[arg-type]
            entry = self._record(inode.parent or inode, *changes)
            assert entry is not None
            if inode.entry is None or staged is None:
                inode.entry = entry
            inode.staged = entry.staged
            inode.base = None
        self._close_fd(inode)

    def _truncate(self, inode: Inode, size: int) -> None:
        """Set a file's size, copying no more than stays."""
        if inode.kind == stat.S_IFDIR:
            raise _error(errno.EISDIR)
        if inode.kind != stat.S_IFREG:
            raise _error(errno.EINVAL)
        self._own_data(inode, keep=size)
        os.ftruncate(self._fd(inode, write=True), size)

    # ---- descriptors and store inodes held

    def _physical(self, inode: Inode) -> bytes:
        if inode.staged is not None:
            return self.store.path(inode.staged.ino)
        assert inode.base is not None
        return self.base.path(inode.base)

    def _fd(self, inode: Inode, *, write: bool) -> int:
        """Return a descriptor of a regular file's data; one that writes only if its store inode may be written."""
        if inode.fd >= 0 and (inode.fd_writes or not write):
            return inode.fd
        self._close_fd(inode)
        staged = inode.staged
        if staged is None or staged.origin is not None:
            source = inode.source
            assert source is not None
            self._keep_fd(inode, self.base.open(source), writes=False)
        else:
            writes = write or staged.ino >= self.fresh_from
            fd = self.store.open(staged.ino, os.O_RDWR if writes else os.O_RDONLY)
            self._keep_fd(inode, fd, writes=writes)
        return inode.fd

    def _keep_fd(self, inode: Inode, fd: int, *, writes: bool) -> None:
        while len(self._with_fd) >= self._max_fds:
            self._close_fd(next(iter(self._with_fd)))
        inode.fd, inode.fd_writes = fd, writes
        self._with_fd[inode] = None

    def _close_fd(self, inode: Inode) -> None:
        if inode.fd >= 0:
            os.close(inode.fd)
            inode.fd, inode.fd_writes = -1, False
            del self._with_fd[inode]

    def _on_drop(self, inode: Inode) -> None:
        self._close_fd(inode)
        if inode.is_orphan and inode.staged is not None:
            self._free(inode.staged)

    def _free(self, staged: Staged) -> None:
        """Remove a store inode that no name, no generation and no handle can show any more."""
        if not staged.names and staged.ino >= self.fresh_from:
            self.store.remove(staged.ino)


def may_write(flags: int) -> bool:
    """Tell whether flags of open(2) ask for writing."""
    return flags & os.O_ACCMODE != os.O_RDONLY


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _is_same_file(one: Found, other: Found) -> bool:
    """Tell whether two names are hard links of the same file."""
    if one.staged is not None or other.staged is not None:
        return one.staged is other.staged
    return one.st.st_ino == other.st.st_ino and one.st.st_dev == other.st.st_dev


def _shown(parent: Inode, name: bytes) -> tuple[Entry | None, Staged | None, RelPath | None]:
    """Return what the tree shows under a name of a directory, without looking at base."""
    entry = parent.entry.children.get(name) if parent.entry is not None and parent.entry.children else None
    if entry is not None:
        return entry, entry.staged, entry.base
    source = parent.source
    return None, None, join(source, name) if source is not None else None


def _keys(directory: Inode) -> dict[bytes, bytes | int | None]:
    """Return which file each entry of a directory shows, None for a tombstone."""
    entry = directory.entry
    if entry is None or not entry.children:
        return {}
    return {
        name: below.staged.key if below.staged is not None else below.base for name, below in entry.children.items()
    }


def _changed_names(
    old: dict[bytes, bytes | int | None],
    old_source: RelPath | None,
    new: dict[bytes, bytes | int | None],
    new_source: RelPath | None,
) -> list[bytes]:
    """Return the names that show another file now (a name in neither comes from the source, as before)."""

    def key(keys: dict[bytes, bytes | int | None], source: RelPath | None, name: bytes) -> bytes | int | None:
        return keys[name] if name in keys else join(source, name) if source is not None else None

    return [name for name in old.keys() | new.keys() if key(old, old_source, name) != key(new, new_source, name)]
