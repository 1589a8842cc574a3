"""What stat(2) tells of a file in the view."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from time import monotonic_ns

from yolofs.overlay import absent_xattrs, acl
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import NO_PAGES, Attr, Inode, is_as_told, settled_version, version_of
from yolofs.overlay.layers import Layers, os_error
from yolofs.overlay.recent_looks import RecentLooks
from yolofs.paths import RelPath, join
from yolofs.state.hard_links import nlink_of
from yolofs.state.tree import Entry, Staged
from yolofs.store.base_opening import path_of
from yolofs.system.syscalls import look

_DEFAULT_ACL = os.fsencode(acl.DEFAULT_XATTR)
_SETTLED_NS = 1_000_000_000
"""Nothing changes without another ctime that has a ctime so old: the system's clock has long gone
on.
"""


class Attributes:
    """Attributes of inodes, from the store inode or base file behind each."""

    def __init__(self, layers: Layers, descriptors: Descriptors, looks: RecentLooks) -> None:
        self._layers = layers
        self._base = layers.base
        self._store = layers.store
        self._clock_ns = layers.clock_ns
        self._descriptors = descriptors
        self._looks = looks
        self._acls = acl.AclReader()
        self._owners = layers.store.owners.of
        self.is_shared = False
        """Whether other users may enter the view, whom the kernel then judges by mode bits."""

    def getattr(self, inode: Inode) -> Attr:
        """Return the attributes of an inode.

        Raises:
            OSError: the base file behind it is gone; ESTALE if another has taken its place.
        """
        is_directory = inode.kind == stat.S_IFDIR
        return self.attr_of(inode, self._stat_of_directory(inode) if is_directory else self.stat(inode))

    def readlink(self, inode: Inode) -> bytes:
        """Return the target of a symbolic link, which the kernel then keeps."""
        if inode.staged is not None:
            return os.readlink(self._layers.physical(inode))
        with self._descriptors.hold(inode) as fd:
            st = os.fstat(fd)
            inode.paged = version_of(st)
            if settled_version(st, self._clock_ns()) != inode.paged:  # another one could look the same: not to be kept
                self._layers.outdated[inode.number] = inode.paged
            return os.readlink(b"", dir_fd=fd)

    def birth_ns(self, inode: Inode) -> int | None:
        """Return the time of birth of an inode's base file or staged one, in ns since 1970; None if
        the disk does not tell.
        """
        if inode.staged is not None:
            return look(self._layers.physical(inode)).birth_ns
        if inode.fd >= 0:
            return look(inode.fd).birth_ns
        if inode.base in self._base.pseudo:
            return None
        with self._descriptors.hold(inode) as fd:
            return look(fd).birth_ns

    def statvfs(self) -> os.statvfs_result:
        """Return the figures of the disk that the store is on: what is written goes there."""
        return os.statvfs(self._store.directory)

    def getxattr(self, inode: Inode, name: bytes) -> bytes:
        """Return an extended attribute.

        What has no lists as its disk knows none says ENODATA of them as well: by another errno the
        kernel would let nobody in.
        """
        bit = absent_xattrs.BITS.get(name, 0)
        version = self._settled_version(inode) if bit else None
        try:
            with self._with_xattrs(inode) as (target, follows):
                return os.getxattr(target, name, follow_symlinks=follows)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP and name in acl.NAMES:
                error = os_error(errno.ENODATA)
            if error.errno == errno.ENODATA and version is not None:
                absent_xattrs.note(inode, bit, version)
            raise error from None

    def lacks_xattr(self, inode: Inode, name: bytes) -> bool:
        """Tell whether a file is known not to have an extended attribute.

        Raises:
            OSError: as of :meth:`stat`.
        """
        bit = absent_xattrs.BITS.get(name, 0)
        if not inode.lacks & bit:
            return False
        staged = inode.staged
        return inode.lacks_at == (staged if staged is not None else self.stat(inode).st_ctime_ns)

    def _settled_version(self, inode: Inode) -> Staged | int | None:
        """Return what changes whenever a file's extended attributes do; None if a change could look
        the same.
        """
        if inode.staged is not None:
            return inode.staged
        ctime_ns = self.stat(inode).st_ctime_ns
        return ctime_ns if self._clock_ns() - ctime_ns > _SETTLED_NS else None

    def listxattr(self, inode: Inode) -> list[bytes]:
        """Return the names of all extended attributes."""
        if inode.staged is None and inode.base in self._base.pseudo:
            return []
        with self._with_xattrs(inode) as (target, follows):
            return [os.fsencode(name) for name in os.listxattr(target, follow_symlinks=follows)]

    def check_has_xattr(self, inode: Inode, name: bytes) -> None:
        """Raise unless a file has an extended attribute; it may be one that cannot be read, such as
        a file capability that is none.

        Raises:
            OSError: as getxattr(2); ENODATA where it has none.
        """
        try:
            self.getxattr(inode, name)
        except OSError:
            if name not in self.listxattr(inode):
                raise

    def default_acl(self, directory: Inode) -> bytes | None:
        """Return the list that a directory gives to what is made in it, None if it has none."""
        try:
            staged = directory.staged
            version = staged if staged is not None else self.stat_lately(directory).st_ctime_ns
            if absent_xattrs.lacks(directory, absent_xattrs.DEFAULT_ACL, version):
                return None
            return self.getxattr(directory, _DEFAULT_ACL)
        except OSError:
            return None

    @contextlib.contextmanager
    def _with_xattrs(self, inode: Inode) -> Iterator[tuple[int | bytes, bool]]:
        """Give what has an inode's extended attributes, a path or a descriptor, and whether its
        link is followed.
        """
        if inode.staged is not None:
            yield self._layers.physical(inode), False
        elif inode.fd >= 0:
            yield inode.fd, True
        else:
            with self._descriptors.hold(inode) as fd:
                yield path_of(fd), True

    def stat(self, inode: Inode) -> os.stat_result:
        """Return what the disk says of an inode: of its store inode, or of base.

        Raises:
            OSError: as lstat(2).
        """
        staged = inode.staged
        if staged is not None:
            return os.fstat(inode.fd) if fd_is_own(inode) else os.lstat(self._store.path(staged.ino))
        if inode.fd >= 0:
            return os.fstat(inode.fd)
        assert inode.base is not None
        if inode.kind == stat.S_IFDIR:
            fd = self._layers.held.known_fd(inode.base)
            if fd is not None and stat.S_ISDIR((st := os.fstat(fd)).st_mode) and st.st_nlink:
                return st
        again = self._layers.stat_by_plain_look(inode, inode.base)
        if again is not None:
            return again
        st = self._base.lstat(inode.base)
        if stat.S_IFMT(st.st_mode) != inode.kind or not self._layers.is_file_of(inode, st):
            raise os_error(errno.ESTALE)
        return st

    def _stat_of_directory(self, directory: Inode) -> os.stat_result:
        """Return the attributes of the store inode or base directory, and remember them for
        :meth:`stat_lately`.

        Those of a store inode stay: only the view changes it, and then what is remembered goes.
        """
        looked_at, staged = self._looks.looked_at, directory.staged
        if staged is not None and looked_at is not None and looked_at[1] is staged:
            return looked_at[2]
        st = self.stat(directory)
        if self._looks.lately_ns:
            self._looks.looked_at = directory, staged, st, monotonic_ns()
        return st

    def stat_lately(self, directory: Inode) -> os.stat_result:
        """Return the attributes of the store inode or base directory as they are, or were a moment
        ago.
        """
        looked_at = self._looks.looked_at
        if looked_at is None or looked_at[0] is not directory or monotonic_ns() - looked_at[3] >= self._looks.lately_ns:
            return self._stat_of_directory(directory)
        return looked_at[2]

    def attr_of(self, inode: Inode, st: os.stat_result, *, is_new: bool = False) -> Attr:
        """Return an inode's attributes, given those of its store inode (which may be a new one) or
        base file.
        """
        staged = inode.staged
        size, blocks, mtime_ns, ctime_ns = st.st_size, st.st_blocks, st.st_mtime_ns, st.st_ctime_ns
        nlink = st.st_nlink
        if inode.kind == stat.S_IFDIR:
            nlink = self._nlink(inode, st)
            touched_ns = inode.entry.touched_ns if inode.entry is not None else 0
            if touched_ns:
                mtime_ns = ctime_ns = touched_ns
        elif staged is not None:
            nlink = 0 if inode.is_orphan else self._layers.tree.nlink(staged)
            if staged.origin is not None and inode.kind == stat.S_IFREG:
                data = self._origin_stat(inode, staged.origin)
                size, blocks = data.st_size, data.st_blocks
                if inode.opens and not is_as_told(inode.paged, version_of(data)):
                    inode.changes += 1
                    self._layers.outdated[inode.number] = settled_version(data, self._clock_ns())
        elif inode.is_orphan:
            nlink = 0
        else:
            nlink = nlink_of(self._layers.tree, self._base, st)
            version = version_of(st)
            if version != inode.seen:
                inode.seen = version
                inode.changes += 1
                if inode.kind == stat.S_IFLNK and inode.paged not in (NO_PAGES, version):
                    self._layers.outdated[inode.number] = version
            if inode.opens and not is_as_told(inode.paged, inode.seen):
                self._layers.outdated[inode.number] = settled_version(st, self._clock_ns())
        uid, gid = self.owner_of(inode, st) if self._owners else (st.st_uid, st.st_gid)
        return Attr(
            inode.number,
            st.st_mode if is_new else self._mode(inode, st),
            nlink,
            uid,
            gid,
            st.st_rdev,
            size,
            blocks,
            st.st_atime_ns,
            mtime_ns,
            ctime_ns,
            staged is not None and staged.origin is None,
        )

    def owner_of(self, inode: Inode, st: os.stat_result) -> tuple[int, int]:
        """Return the user and group of an inode, given the attributes of its store inode or base
        file.
        """
        owner = self._owners.get(inode.staged.ino) if inode.staged is not None else None
        return owner if owner is not None else (st.st_uid, st.st_gid)

    def _origin_stat(self, inode: Inode, origin: RelPath) -> os.stat_result:
        """Return the attributes of the base file that has a staged file's data: of what is open, or
        else at its path.

        Raises:
            OSError: it is gone; ESTALE if there is no file any more.
        """
        if inode.fd >= 0 and (inode.opens or inode.is_orphan):
            return os.fstat(inode.fd)
        st = self._layers.held.lstat(origin)
        if not self._layers.is_source_of(inode, st):
            raise os_error(errno.ESTALE)
        if self._descriptors.is_other_file(inode, st):
            self._descriptors.close(inode)
        return st

    def _mode(self, inode: Inode, st: os.stat_result) -> int:
        """Return the mode by which the kernel is to judge; that of a shared view knows access
        control lists.
        """
        mode, ctime_ns = st.st_mode, st.st_ctime_ns
        staged = inode.staged
        version = staged if staged is not None else ctime_ns
        if not self.is_shared or inode.kind == stat.S_IFLNK or absent_xattrs.lacks(inode, absent_xattrs.ACL, version):
            return mode
        if staged is None and inode.base in self._base.pseudo:
            return mode
        if inode.fd >= 0 and (staged is None or fd_is_own(inode)):
            listed = acl.read(inode.fd)
        elif staged is not None:
            listed = acl.read(self._layers.physical(inode))
        elif inode.base is not None and (place := self._layers.held.place_of_name(inode.base)) is not None:
            listed = self._acls.read(*place)
        else:
            with self._descriptors.hold(inode) as fd:
                listed = acl.read(path_of(fd), follows=True)
        if listed is not None:
            return acl.narrowed(mode, listed)
        if staged is not None or self._clock_ns() - ctime_ns > _SETTLED_NS:
            absent_xattrs.note(inode, absent_xattrs.ACL, version)
        return mode

    # ---- link counts of directories

    def _nlink(self, directory: Inode, st: os.stat_result) -> int:
        """Return a directory's link count: two, and one for each subdirectory."""
        if directory.is_orphan:
            return 0
        nlink, ctime_ns = self._source_nlink(directory, st)
        entry = directory.entry
        if entry is None or not entry.children or nlink == 1:
            return nlink
        if directory.subdirs is None or directory.subdirs_at != ctime_ns:  # base may have gained or lost some, too
            directory.subdirs = sum(map(self._subdir_delta, entry.children.values()))
            directory.subdirs_at = ctime_ns
        return max(nlink + directory.subdirs, 1)  # 1: not known, as the host has changed it this moment

    def _source_nlink(self, directory: Inode, st: os.stat_result) -> tuple[int, int]:
        """Return the link count of what base has of a directory, and its ctime in ns."""
        source = directory.source
        if source is None:
            return 2, 0
        if directory.staged is not None:
            try:
                st = self._base.lstat(source)
            except OSError:
                return 2, 0
        return max(st.st_nlink - self._base.hidden_in(source), 1), st.st_ctime_ns

    def _subdir_delta(self, entry: Entry) -> int:
        """Return how many more subdirectories this name is in the view than in base: -1, 0 or 1."""
        assert entry.parent is not None
        source = entry.parent.source
        natural = join(source, entry.name) if source is not None else None
        if entry.base is not None and entry.base == natural:
            return 0
        now = False
        if entry.staged is not None:
            with contextlib.suppress(FileNotFoundError):  # the store has lost it: no reason to lose the directory, too
                now = stat.S_ISDIR(os.lstat(self._store.path(entry.staged.ino)).st_mode)
        elif entry.base is not None:
            now = self._is_base_directory(entry.base)
        return int(now) - int(natural is not None and self._is_base_directory(natural))

    def _is_base_directory(self, rel: RelPath) -> bool:
        try:
            return stat.S_ISDIR(self._base.lstat(rel).st_mode)
        except OSError:
            return False


def count_subdir(directory: Inode, change: int) -> None:
    """Note that a directory has some more subdirectories, or fewer."""
    if directory.subdirs is not None:
        directory.subdirs += change


def fd_is_own(inode: Inode) -> bool:
    """Tell whether a staged file's store inode is open, and not the base file that has its data."""
    return inode.fd >= 0 and inode.staged is not None and inode.staged.origin is None
