"""A disk in user space that finds files by their names, as most do that are made with libfuse's
path interface (sshfs, mergerfs, exfat-fuse): it shows a directory, but numbers things in its own
way.

Run as ``python -m tests.support.disk_by_names SOURCE MOUNTPOINT NUMBERS``; ``NUMBERS`` is a value
of :class:`Numbers`.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyfuse3
import trio

T = TypeVar("T")


class Numbers(enum.Enum):
    """Which inode numbers things have."""

    OF_NAMES = "of-names"
    """Each name has one of its own, which goes with it when it is renamed: hard links differ."""
    OF_PATHS = "of-paths"
    """A directory has that of its path: after a rename another one."""


class DiskByNames(pyfuse3.Operations):
    """Shows a directory."""

    enable_writeback_cache = False

    def __init__(self, source: bytes, numbers: Numbers) -> None:
        super().__init__()
        self._numbers = numbers
        self._paths: dict[int, bytes] = {pyfuse3.ROOT_INODE: source}
        self._nodes: dict[bytes, int] = {source: int(pyfuse3.ROOT_INODE)}
        self._last = int(pyfuse3.ROOT_INODE)

    def _node(self, path: bytes) -> int:
        if path not in self._nodes:
            self._last += 1
            self._nodes[path] = self._last
            self._paths[self._last] = path
        return self._nodes[path]

    def _path(self, node: int) -> bytes:
        try:
            return self._paths[node]
        except KeyError:
            raise pyfuse3.FUSEError(errno.ESTALE) from None

    def _forget(self, path: bytes) -> None:
        node = self._nodes.pop(path, None)
        if node is not None:
            del self._paths[node]

    def _below(self, node: int, name: bytes) -> bytes:
        return os.path.join(self._path(node), name)

    def _attributes(self, node: int) -> pyfuse3.EntryAttributes:
        path = self._path(node)
        st = _do(lambda: os.lstat(path))
        entry: Any = pyfuse3.EntryAttributes()
        for name in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_rdev", "st_size", "st_blksize", "st_blocks"):
            setattr(entry, name, getattr(st, name))
        for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns"):
            setattr(entry, name, getattr(st, name))
        if self._numbers is Numbers.OF_NAMES:
            entry.st_ino = node
        else:
            entry.st_ino = zlib.crc32(path) + (1 << 33) if stat.S_ISDIR(st.st_mode) else st.st_ino
        entry.generation = 0
        entry.attr_timeout = entry.entry_timeout = 0
        found: pyfuse3.EntryAttributes = entry
        return found

    def _shown(self, path: bytes) -> pyfuse3.EntryAttributes:
        """Return the attributes by which the kernel gets to know a name."""
        node = self._node(path)
        found: Any = self._attributes(node)
        if found.st_ino != node:  # the kernel takes one number for both
            self._paths[found.st_ino] = path
        shown: pyfuse3.EntryAttributes = found
        return shown

    async def getattr(self, inode: int, ctx: object = None) -> pyfuse3.EntryAttributes:
        return self._attributes(inode)

    async def lookup(self, parent_inode: int, name: bytes, ctx: object = None) -> pyfuse3.EntryAttributes:
        path = self._below(parent_inode, name)
        _do(lambda: os.lstat(path))
        return self._shown(path)

    async def setattr(self, inode: int, attr: Any, fields: Any, fh: int | None, ctx: object) -> Any:
        path = self._path(inode)
        with _told():
            if fields.update_size:
                os.truncate(path, attr.st_size)
            if fields.update_uid or fields.update_gid:
                uid, gid = attr.st_uid if fields.update_uid else -1, attr.st_gid if fields.update_gid else -1
                os.chown(path, uid, gid, follow_symlinks=False)
            if fields.update_mode:
                os.chmod(path, stat.S_IMODE(attr.st_mode))
            if fields.update_atime or fields.update_mtime:
                st = os.lstat(path)
                atime_ns = attr.st_atime_ns if fields.update_atime else st.st_atime_ns
                mtime_ns = attr.st_mtime_ns if fields.update_mtime else st.st_mtime_ns
                os.utime(path, ns=(atime_ns, mtime_ns), follow_symlinks=False)
        return self._attributes(inode)

    async def readlink(self, inode: int, ctx: object) -> bytes:
        return _do(lambda: os.readlink(self._path(inode)))

    async def opendir(self, inode: int, ctx: object) -> int:
        return inode

    async def readdir(self, fh: int, start_id: int, token: Any) -> None:
        path = self._path(fh)
        names = sorted(_do(lambda: os.listdir(path)))
        for index, name in enumerate(names[start_id:], start_id + 1):
            with contextlib.suppress(pyfuse3.FUSEError):
                if not pyfuse3.readdir_reply(token, name, self._shown(os.path.join(path, name)), index):
                    return

    async def open(self, inode: int, flags: int, ctx: object) -> Any:
        fd = _do(lambda: os.open(self._path(inode), flags & ~os.O_CREAT | os.O_NOFOLLOW))
        return pyfuse3.FileInfo(fh=fd, keep_cache=False)

    async def create(self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: Any) -> Any:
        path = self._below(parent_inode, name)
        fd = _do(lambda: os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, mode & ~ctx.umask))
        return pyfuse3.FileInfo(fh=fd, keep_cache=False), self._shown(path)

    async def read(self, fh: int, off: int, size: int) -> bytes:
        return _do(lambda: os.pread(fh, size, off))

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        return _do(lambda: os.pwrite(fh, buf, off))

    async def release(self, fh: int) -> None:
        os.close(fh)

    async def fsync(self, fh: int, datasync: bool) -> None:
        _do(lambda: os.fsync(fh))

    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        return None

    async def mkdir(self, parent_inode: int, name: bytes, mode: int, ctx: Any) -> Any:
        path = self._below(parent_inode, name)
        _do(lambda: os.mkdir(path, mode & ~ctx.umask))
        return self._shown(path)

    async def mknod(self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: Any) -> Any:
        path = self._below(parent_inode, name)
        _do(lambda: os.mknod(path, mode & ~ctx.umask, rdev))
        return self._shown(path)

    async def symlink(self, parent_inode: int, name: bytes, target: bytes, ctx: object) -> Any:
        path = self._below(parent_inode, name)
        _do(lambda: os.symlink(target, path))
        return self._shown(path)

    async def link(self, inode: int, new_parent_inode: int, new_name: bytes, ctx: object) -> Any:
        path = self._below(new_parent_inode, new_name)
        _do(lambda: os.link(self._path(inode), path, follow_symlinks=False))
        return self._shown(path)

    async def unlink(self, parent_inode: int, name: bytes, ctx: object) -> None:
        path = self._below(parent_inode, name)
        _do(lambda: os.unlink(path))
        self._forget(path)

    async def rmdir(self, parent_inode: int, name: bytes, ctx: object) -> None:
        path = self._below(parent_inode, name)
        _do(lambda: os.rmdir(path))
        self._forget(path)

    async def rename(
        self, parent_inode_old: int, name_old: bytes, parent_inode_new: int, name_new: bytes, flags: int, ctx: object
    ) -> None:
        if flags:
            raise pyfuse3.FUSEError(errno.EINVAL)
        old, new = self._below(parent_inode_old, name_old), self._below(parent_inode_new, name_new)
        _do(lambda: os.rename(old, new))
        self._forget(new)
        self._moved(old, new)

    def _moved(self, old: bytes, new: bytes) -> None:
        for path in [path for path in self._nodes if path == old or path.startswith(old + b"/")]:
            node = self._nodes.pop(path)
            self._nodes[new + path[len(old) :]] = node
        for node, path in list(self._paths.items()):
            if path == old or path.startswith(old + b"/"):
                self._paths[node] = new + path[len(old) :]

    async def statfs(self, ctx: object) -> Any:
        found: Any = pyfuse3.StatvfsData()
        told = os.statvfs(self._path(int(pyfuse3.ROOT_INODE)))
        for name in ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail"):
            setattr(found, name, getattr(told, name))
        return found

    async def getxattr(self, inode: int, name: bytes, ctx: object) -> bytes:
        return _do(lambda: os.getxattr(self._path(inode), name, follow_symlinks=False))

    async def listxattr(self, inode: int, ctx: object) -> list[bytes]:
        names = _do(lambda: os.listxattr(self._path(inode), follow_symlinks=False))
        return [os.fsencode(name) for name in names]

    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: object) -> None:
        _do(lambda: os.setxattr(self._path(inode), name, value, follow_symlinks=False))

    async def removexattr(self, inode: int, name: bytes, ctx: object) -> None:
        _do(lambda: os.removexattr(self._path(inode), name, follow_symlinks=False))


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Tell the kernel which error the system gave."""
    try:
        yield
    except OSError as error:
        raise pyfuse3.FUSEError(error.errno or errno.EIO) from None


def _do(act: Callable[[], T]) -> T:
    with _told():
        return act()


def serve_disk(disk: DiskByNames, mountpoint: str) -> None:
    """Mount a disk, and serve it until it is unmounted."""
    pyfuse3.init(disk, mountpoint, {"fsname=by-names", "default_permissions", "allow_other"})
    try:
        trio.run(pyfuse3.main)
    finally:
        pyfuse3.close()


def main() -> None:
    source, mountpoint, numbers = sys.argv[1:]
    serve_disk(DiskByNames(os.fsencode(source), Numbers(numbers)), mountpoint)


if __name__ == "__main__":
    main()
