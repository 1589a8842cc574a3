"""Makes files in the view without a mount, by the operations that a mount calls."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from yolofs.changes.state_reader import FileIdentity
from yolofs.overlay import Overlay, Owner
from yolofs.overlay.inodes import Attr, Inode
from yolofs.paths import RelPath, split
from yolofs.session.state_files import StateFile, StateFiles
from yolofs.store import copying, file_data

_NOT_PERMITTED = frozenset([errno.EPERM, errno.EACCES, errno.EOPNOTSUPP])


class ViewWriter:
    """Looks at a view by paths, and makes in it what another state has."""

    def __init__(self, overlay: Overlay, files: StateFiles, *, made: Mapping[FileIdentity, RelPath] = {}) -> None:
        """``files`` are those of the other state; ``made`` is where the view has some already."""
        self.overlay = overlay
        self.files = files
        self._made: dict[FileIdentity, RelPath] = dict(made)
        """Where each file was made, of which the other state may have more names."""
        self.left_out: dict[RelPath, tuple[str, ...]] = {}
        """What of a path could not be set: ``owner``, ``xattr NAME``, ``mode``, ``times``."""

    def look(self, path: RelPath) -> Attr | None:
        """Return the attributes of what the view shows at a path, None if nothing."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self.looked_up(path) as (_, attr):
            return attr
        return None

    @contextlib.contextmanager
    def looked_up(self, path: RelPath) -> Iterator[tuple[Inode, Attr]]:
        """Do what :meth:`inode_at` does; give the attributes, too."""
        with self.inode_at(path) as inode:
            yield inode, self.overlay.getattr(inode)

    @contextlib.contextmanager
    def inode_at(self, path: RelPath) -> Iterator[Inode]:
        """Look each name of a path up, and hold what is there for the time of the block.

        Raises:
            OSError: there is nothing.
        """
        overlay = self.overlay
        inode = overlay.root
        numbers: list[int] = []
        try:
            for name in path.split(b"/") if path else ():
                found = overlay.lookup_inode(inode, name) if inode.is_directory else None
                if found is None:
                    number = errno.ENOENT if inode.is_directory else errno.ENOTDIR
                    raise OSError(number, os.strerror(number), path)
                inode = found
                numbers.append(inode.number)
            yield inode
        finally:
            for number in numbers:
                overlay.forget(number, 1)

    @contextlib.contextmanager
    def parent(self, path: RelPath) -> Iterator[tuple[Inode, bytes]]:
        """Hold the directory that a path lies in, and give the name in it."""
        directory, name = split(path)
        with self.inode_at(directory) as inode:
            yield inode, name

    def make_one(self, path: RelPath, there: StateFile) -> None:
        """Make what is at a path, with its content, but without its metadata."""
        overlay = self.overlay
        first = self._made.setdefault(there.identity, path) if not there.is_directory else path
        owner = Owner(os.geteuid(), os.getegid())
        with self.parent(path) as (parent, name):
            if first != path:
                with self.inode_at(first) as inode:
                    overlay.link(inode, parent, name)
                    overlay.forget(inode.number, 1)
                return
            match there.side.type:
                case stat.S_IFDIR:
                    inode, _ = overlay.mkdir(parent, name, 0o700, owner)
                case stat.S_IFLNK:
                    inode, _ = overlay.symlink(parent, name, there.side.target(), owner)
                case stat.S_IFREG:
                    inode, _ = overlay.create(parent, name, stat.S_IFREG | 0o600, owner)
                    try:
                        with self.files.open(there) as fd:
                            file_data.copy_data(fd, overlay.descriptors.of(inode, write=True), there.side.size)
                    finally:
                        overlay.release(inode, writer=True)
                case _:
                    inode, _ = overlay.mknod(parent, name, there.st.st_mode, there.side.rdev, owner)
            overlay.forget(inode.number, 1)

    def finish_one(self, path: RelPath, there: StateFile) -> None:
        """Give what is at a path its metadata and times."""
        with self.looked_up(path) as (inode, here):
            missed = list(MetadataWriter(self.overlay, inode, here).become(there))
        if missed:
            self.left_out[path] = tuple(missed)


class MetadataWriter:
    """What a file of the view is, beside its content."""

    def __init__(self, overlay: Overlay, inode: Inode, here: Attr) -> None:
        """``here`` are the attributes that it has."""
        self._overlay = overlay
        self._inode = inode
        self._here = here

    def become(self, there: StateFile) -> Iterator[str]:
        """Set all that differs; yield what the user may not set."""
        side = there.side
        yield from self.set_owner(side.uid, side.gid)
        yield from self.set_xattrs(side.metadata(st=there.st))
        if side.type != stat.S_IFLNK:
            yield from self.set_mode(side.mode)
        yield from self.set_times(there.st.st_atime_ns, there.mtime_ns)

    def set_owner(self, uid: int, gid: int) -> list[str]:
        """Set user and group, if they differ; return what the user may not set."""
        here = self._here
        if (here.uid, here.gid) == (uid, gid) or self._may(lambda: self._set(uid=uid, gid=gid)):
            return []
        self._may(lambda: self._set(gid=gid))
        return ["owner"]

    def set_xattrs(self, metadata: copying.Metadata) -> list[str]:
        """Set the extended attributes, and remove all others; return what the user may not set, or
        not read.
        """
        missed = list(metadata.unread)
        wanted = dict(metadata.xattrs)
        for name in map(os.fsdecode, self._overlay.listxattr(self._inode)):
            if name not in wanted:
                self._may(partial(self._overlay.removexattr, self._inode, os.fsencode(name)))
        for name, value in wanted.items():
            if not self._may(partial(self._set_xattr, os.fsencode(name), value)):
                missed.append(f"xattr {name}")
        return missed

    def set_mode(self, mode: int) -> list[str]:
        """Set the permission bits; return what the user may not set."""
        return [] if self._may(lambda: self._set(mode=mode)) else ["mode"]

    def set_times(self, atime_ns: int, mtime_ns: int) -> list[str]:
        """Set both times; return what the user may not set."""
        return [] if self._may(lambda: self._set(atime_ns=atime_ns, mtime_ns=mtime_ns)) else ["times"]

    def _set(self, **what: int) -> None:
        self._overlay.setattr(self._inode, **what)

    def _set_xattr(self, name: bytes, value: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._overlay.getxattr(self._inode, name) == value:
                return
        self._overlay.setxattr(self._inode, name, value)

    @staticmethod
    def _may(act: Callable[[], object]) -> bool:
        """Do something; return whether the user may."""
        try:
            act()
        except OSError as error:
            if error.errno not in _NOT_PERMITTED:
                raise
            return False
        return True
