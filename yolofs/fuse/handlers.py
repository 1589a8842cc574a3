"""What answers the kernel: numbers, bytes and small tuples in and out, :class:`OSError` for errors.

Knows the overlay and the kernel's side of it (handles, how long an answer may be cached), but not pyfuse3: another
transport can stand beside :mod:`yolofs.fuse.adapter`.  All of it runs on the device loop and nothing here waits.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from yolofs.inodes import UNKNOWN_NUMBER, Attr, Inode
from yolofs.journal import Journal
from yolofs.overlay import Overlay, Owner, may_write


class Answer(NamedTuple):
    """A file and how long the kernel may trust what it was told, in seconds."""

    attr: Attr | None
    """None: no such name (a negative entry)."""
    name_timeout_s: float
    attr_timeout_s: float


class Opened(NamedTuple):
    """An open file."""

    handle: int
    keeps_pages: bool
    """Whether what the kernel has cached of the file still holds."""
    number: int


class DirHandle:
    """An open directory: its names as they were when reading began, so that offsets stay what they are."""

    __slots__ = ("inode", "names")

    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        self.names: list[bytes] = []


_UNKNOWN = Answer(Attr(UNKNOWN_NUMBER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, False), 0.0, 0.0)
"""A name in a listing that cannot be looked at: in a directory that one may read and not enter, for instance."""


class Handlers:
    """The requests of the kernel, carried out on ``overlay``.

    ``staged_timeout_s``: how long answers may be cached that only the view can make wrong; ``base_timeout_s``: those
    that the host can make wrong too.
    """

    def __init__(self, overlay: Overlay, *, staged_timeout_s: float, base_timeout_s: float) -> None:
        self.overlay = overlay
        self._staged_timeout_s = staged_timeout_s
        self._base_timeout_s = base_timeout_s
        self._inodes = overlay.inodes.by_number
        self._files: dict[int, Inode] = {}
        self._directories: dict[int, DirHandle] = {}
        self._last_handle = 0

    # ---- names

    def lookup(self, parent: int, name: bytes) -> Answer:
        """Look a name up; the kernel owes a forget if it exists."""
        directory = self._inode(parent)
        if name == b".":
            directory.lookups += 1
            return self._answer(directory, name, self.overlay.getattr(directory))
        if name == b"..":
            directory = directory.parent or directory
            directory.lookups += 1
            return self._answer(directory, name, self.overlay.getattr(directory))
        found = self.overlay.lookup(directory, name)
        return self._answer(directory, name, found[1] if found is not None else None)

    def forget(self, items: Sequence[tuple[int, int]]) -> None:
        """Take back look-ups: pairs of inode number and count."""
        for number, count in items:
            self.overlay.forget(number, count)

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, owner: Owner) -> Answer:
        """Create a file of any type that is not a directory or a link."""
        directory = self._inode(parent)
        return self._answer(directory, name, self.overlay.mknod(directory, name, mode, rdev, owner)[1])

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> Answer:
        """Create a directory."""
        directory = self._inode(parent)
        return self._answer(directory, name, self.overlay.mkdir(directory, name, mode, owner)[1])

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> Answer:
        """Create a symbolic link."""
        directory = self._inode(parent)
        return self._answer(directory, name, self.overlay.symlink(directory, name, target, owner)[1])

    def link(self, number: int, parent: int, name: bytes) -> Answer:
        """Create a hard link."""
        directory = self._inode(parent)
        return self._answer(directory, name, self.overlay.link(self._inode(number), directory, name)[1])

    def unlink(self, parent: int, name: bytes) -> None:
        """Remove a name that is no directory."""
        self.overlay.unlink(self._inode(parent), name)

    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory."""
        self.overlay.rmdir(self._inode(parent), name)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int) -> None:
        """Rename, as renameat2(2)."""
        self.overlay.rename(self._inode(parent), name, self._inode(new_parent), new_name, flags)

    # ---- attributes

    def getattr(self, number: int) -> Answer:
        """Return a file's attributes."""
        attr = self.overlay.getattr(self._inode(number))
        return Answer(attr, 0.0, self._staged_timeout_s if attr.is_stable else self._base_timeout_s)

    def setattr(
        self,
        number: int,
        mode: int | None,
        uid: int | None,
        gid: int | None,
        size: int | None,
        atime_ns: int | None,
        mtime_ns: int | None,
    ) -> Answer:
        """Change those attributes that are not None."""
        attr = self.overlay.setattr(
            self._inode(number), mode=mode, uid=uid, gid=gid, size=size, atime_ns=atime_ns, mtime_ns=mtime_ns
        )
        return Answer(attr, 0.0, self._staged_timeout_s if attr.is_stable else self._base_timeout_s)

    def readlink(self, number: int) -> bytes:
        """Return a symbolic link's target."""
        return self.overlay.readlink(self._inode(number))

    def statvfs(self) -> os.statvfs_result:
        """Return the figures of the disk that staged data goes to."""
        return self.overlay.statvfs()

    def getxattr(self, number: int, name: bytes) -> bytes:
        """Return an extended attribute."""
        return self.overlay.getxattr(self._inode(number), name)

    def listxattr(self, number: int) -> list[bytes]:
        """Return the names of a file's extended attributes."""
        return self.overlay.listxattr(self._inode(number))

    def setxattr(self, number: int, name: bytes, value: bytes) -> None:
        """Set an extended attribute."""
        self.overlay.setxattr(self._inode(number), name, value)

    def removexattr(self, number: int, name: bytes) -> None:
        """Remove an extended attribute."""
        self.overlay.removexattr(self._inode(number), name)

    # ---- files

    def open(self, number: int, flags: int, uid: int) -> Opened:
        """Open a file for a process of the user ``uid``; the kernel owes a release."""
        inode = self._inode(number)
        keeps_pages = self.overlay.open(inode, flags, may_keep_setuid=uid == 0)
        return Opened(self._file_handle(inode, flags), keeps_pages, number)

    def create(self, parent: int, name: bytes, mode: int, flags: int, owner: Owner) -> tuple[Opened, Answer]:
        """Create and open a file, or open the one that is there unless ``flags`` hold O_EXCL."""
        directory = self._inode(parent)
        try:
            inode, attr = self.overlay.create(directory, name, mode, owner)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            return self._open_existing(directory, name, flags, owner)
        opened = Opened(self._file_handle(inode, os.O_RDWR), True, inode.number)
        return opened, self._answer(directory, name, attr)

    def _open_existing(self, directory: Inode, name: bytes, flags: int, owner: Owner) -> tuple[Opened, Answer]:
        found = self.overlay.lookup(directory, name)
        if found is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        inode = found[0]
        try:
            if inode.kind != stat.S_IFREG:
                raise OSError(errno.EISDIR if inode.is_directory else errno.EEXIST, "not a regular file")
            opened = self.open(inode.number, flags, owner.uid)
            return opened, self._answer(directory, name, self.overlay.getattr(inode))
        except BaseException:
            self.overlay.forget(inode.number, 1)
            raise

    def release(self, handle: int) -> None:
        """Close a file."""
        self.overlay.release(self._files.pop(handle), writer=bool(handle & 1))

    def read(self, handle: int, offset: int, size: int) -> bytes:
        """Read from an open file."""
        return self.overlay.read(self._files[handle], offset, size)

    def write(self, handle: int, offset: int, data: bytes) -> int:
        """Write to an open file."""
        return self.overlay.write(self._files[handle], offset, data)

    def sync_fd(self, handle: int) -> int | None:
        """Return the descriptor to fsync for an open file, None if there is nothing to make durable."""
        return self.overlay.sync_fd(self._files[handle])

    def sync_job(self, fd: int | None) -> Callable[[], None]:
        """Return a call that makes a file and then the journal durable; it may run in another thread.

        The descriptor that it holds is a copy of ``fd``: the original may be closed meanwhile.
        """
        return partial(_sync, os.dup(fd) if fd is not None else None, self.overlay.journal)

    # ---- directories

    def opendir(self, number: int) -> int:
        """Open a directory; the kernel owes a releasedir."""
        inode = self._inode(number)
        inode.opens += 1
        self._last_handle += 2
        self._directories[self._last_handle] = DirHandle(inode)
        return self._last_handle

    def directory(self, handle: int, start: int) -> DirHandle:
        """Return an open directory for reading on from offset ``start``; at 0 its names are read anew."""
        opened = self._directories[handle]
        if start == 0:
            opened.names = [b".", b"..", *self.overlay.names(opened.inode)]
        return opened

    def dot(self, directory: DirHandle, name: bytes) -> Answer:
        """Return what ``.`` or ``..`` of an open directory is, without counting a look-up."""
        inode = directory.inode
        if name == b"..":
            inode = inode.parent or inode
        return Answer(self.overlay.getattr(inode), 0.0, 0.0)

    def listed(self, directory: DirHandle, name: bytes) -> Answer:
        """Look up a name of an open directory; one that cannot be looked at is named all the same, without a type.

        The kernel makes nothing of such an answer but the name; it takes back one look-up of a number nobody has.
        """
        try:
            return self.lookup(directory.inode.number, name)
        except OSError:
            return _UNKNOWN

    def releasedir(self, handle: int) -> None:
        """Close a directory."""
        self.overlay.release(self._directories.pop(handle).inode, writer=False)

    # ---- inside

    def _inode(self, number: int) -> Inode:
        inode = self._inodes.get(number)
        if inode is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return inode

    def _file_handle(self, inode: Inode, flags: int) -> int:
        self._last_handle += 2
        handle = self._last_handle | may_write(flags)
        self._files[handle] = inode
        return handle

    def _answer(self, directory: Inode, name: bytes, attr: Attr | None) -> Answer:
        is_stable = self.overlay.is_stable_name(directory, name)
        return Answer(
            attr,
            self._staged_timeout_s if is_stable else self._base_timeout_s,
            self._staged_timeout_s if attr is not None and attr.is_stable else self._base_timeout_s,
        )


def _sync(fd: int | None, journal: Journal) -> None:
    if fd is not None:
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    journal.sync()
