"""A plain directory as the models of a view have it beside them: its operations, and what is
compared of its tree.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_off_t = ctypes.c_long
_MS_SYNC = 4

EXPLICIT_NS = 1_000_000_000_123_456_789
"""A time that only utimes sets (2001): compared exactly, any other only to be no such time."""


class PlainDirectory:
    """The same operations on a plain directory, by system calls."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.handles: dict[int, int] = {}

    def _at(self, path: bytes) -> bytes:
        return os.path.join(self.root, path)

    def create(self, path: bytes, data: bytes, mode: int) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def overwrite(self, path: bytes, data: bytes) -> None:
        self._write(path, os.O_TRUNC, data)

    def append(self, path: bytes, data: bytes) -> None:
        self._write(path, os.O_APPEND, data)

    def _write(self, path: bytes, flags: int, data: bytes) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def write_at(self, path: bytes, offset: int, data: bytes) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.pwrite(fd, data, offset)
        finally:
            os.close(fd)

    def write_without_name(self, path: bytes, data: bytes) -> None:
        """Open a file, remove that name of it, and write at the file's beginning."""
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.unlink(self._at(path))
            os.pwrite(fd, data, 0)
        finally:
            os.close(fd)

    def truncate(self, path: bytes, size: int) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def read(self, path: bytes) -> bytes:
        fd = os.open(self._at(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return os.read(fd, 1 << 20)
        finally:
            os.close(fd)

    def look(self, path: bytes) -> None:
        """Look at a name, which the view may know the file by from then on."""
        os.lstat(self._at(path))

    def mkdir(self, path: bytes, mode: int) -> None:
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: bytes) -> None:
        os.rmdir(self._at(path))

    def unlink(self, path: bytes) -> None:
        os.unlink(self._at(path))

    def rename(self, old: bytes, new: bytes, flags: int = 0) -> None:
        if _libc.renameat2(AT_FDCWD, self._at(old), AT_FDCWD, self._at(new), flags):
            raise OSError(ctypes.get_errno(), "renameat2")

    def link(self, old: bytes, new: bytes) -> None:
        os.link(self._at(old), self._at(new), follow_symlinks=False)

    def symlink(self, target: bytes, path: bytes) -> None:
        os.symlink(target, self._at(path))

    def mkfifo(self, path: bytes, mode: int) -> None:
        os.mkfifo(self._at(path), mode)

    def chmod(self, path: bytes, mode: int) -> None:
        fd = os.open(self._at(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.chmod(self._at(path), mode)
        finally:
            os.close(fd)

    def utimes(self, path: bytes, time_ns: int) -> None:
        os.utime(self._at(path), ns=(time_ns, time_ns), follow_symlinks=False)

    def chown(self, path: bytes, uid: int, gid: int) -> None:
        os.chown(self._at(path), uid, gid, follow_symlinks=False)

    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None:
        os.setxattr(self._at(path), name, value, follow_symlinks=False)

    def removexattr(self, path: bytes, name: bytes) -> None:
        os.removexattr(self._at(path), name, follow_symlinks=False)

    def write_mapping(self, path: bytes, offset: int, data: bytes) -> None:
        """Write through a shared mapping of the whole file what fits into it."""
        fd = os.open(self._at(path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            st = os.fstat(fd)
            if not stat.S_ISREG(st.st_mode) or not st.st_size:
                raise OSError(errno.ENODEV, "cannot be mapped")
            _write_through_mapping(fd, st.st_size, offset, data[: max(0, st.st_size - offset)])
        finally:
            os.close(fd)

    # ---- handles that stay open

    def open_handle(self, slot: int, path: bytes) -> None:
        fd = os.open(self._at(path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ENXIO, "no regular file")
        self.handles[slot] = fd

    def handle_write(self, slot: int, offset: int, data: bytes) -> None:
        os.pwrite(self.handles[slot], data, offset)

    def handle_truncate(self, slot: int, size: int) -> None:
        os.ftruncate(self.handles[slot], size)

    def handle_facts(self, slot: int) -> tuple[Any, ...]:
        fd = self.handles[slot]
        st = os.fstat(fd)
        return (st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size, os.pread(fd, 1 << 20, 0), xattrs_of(fd))

    def close_handle(self, slot: int) -> None:
        os.close(self.handles.pop(slot))

    def tree(self) -> dict[bytes, tuple[Any, ...]]:
        return by_first_name(dict(walk_tree(self.root)))


def _write_through_mapping(fd: int, size: int, offset: int, data: bytes) -> None:
    """Map a file, write, sync and unmap, all by calls that let go of the interpreter lock.

    If this very process serves the view, it could not answer the kernel's requests for that
    otherwise.
    """
    address = _libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, _off_t(0))
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    _libc.memcpy(ctypes.c_void_p(address + offset), data, ctypes.c_size_t(len(data)))
    _libc.msync(ctypes.c_void_p(address), ctypes.c_size_t(size), _MS_SYNC)
    _libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


def xattrs_of(path: bytes | int) -> tuple[tuple[str, bytes], ...]:
    """Return the extended attributes that users set."""
    follow = isinstance(path, int)
    names = sorted(name for name in os.listxattr(path, follow_symlinks=follow) if name.startswith("user."))
    return tuple((name, os.getxattr(path, name, follow_symlinks=follow)) for name in names)


def describe(
    st: os.stat_result,
    read: Callable[[], bytes],
    readlink: Callable[[], bytes],
    xattrs: Callable[[], tuple[tuple[str, bytes], ...]],
) -> tuple[Any, ...]:
    """Return what must be equal on both sides; of all but directories the last is their number."""
    mtime_ns = st.st_mtime_ns if st.st_mtime_ns < 2 * EXPLICIT_NS * 0.8 and st.st_mtime_ns > 10**17 else 0
    if stat.S_ISDIR(st.st_mode):
        return ("dir", st.st_mode, st.st_uid, st.st_gid, mtime_ns, st.st_nlink, xattrs())
    if stat.S_ISREG(st.st_mode):
        what: tuple[Any, ...] = ("file", st.st_size, read(), xattrs())
    elif stat.S_ISLNK(st.st_mode):
        what = ("link", readlink())
    else:
        what = ("other", st.st_rdev)
    return (*what, st.st_mode, st.st_uid, st.st_gid, mtime_ns, st.st_nlink, st.st_ino)


def by_first_name(tree: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    """Replace each file's number, which differs between both sides, by the first path that has
    it.
    """
    first: dict[int, bytes] = {}
    for path in sorted(tree):
        if tree[path][0] != "dir":
            first.setdefault(tree[path][-1], path)
    return {path: what if what[0] == "dir" else (*what[:-1], first[what[-1]]) for path, what in tree.items()}


def walk_tree(root: bytes) -> Iterator[tuple[bytes, tuple[Any, ...]]]:
    """Yield every path below ``root`` with its description."""
    stack = [b""]
    while stack:
        directory = stack.pop()
        for name in os.listdir(os.path.join(root, directory)):
            path = os.path.join(directory, name)
            if name == b".yolofs":
                continue
            full = os.path.join(root, path)
            st = os.lstat(full)
            yield path, describe(st, partial(_read, full), partial(os.readlink, full), partial(xattrs_of, full))
            if stat.S_ISDIR(st.st_mode):
                stack.append(path)


def _read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def copy_tree(source: bytes, target: bytes) -> None:
    """Copy a tree with times, and hard links as hard links."""
    os.makedirs(target)
    links: dict[int, bytes] = {}
    directories = [(source, target)]
    for old, new in directories:
        for name in os.listdir(old):
            if name == b".yolofs":
                continue
            one, other = os.path.join(old, name), os.path.join(new, name)
            st = os.lstat(one)
            if stat.S_ISDIR(st.st_mode):
                os.mkdir(other)
                directories.append((one, other))
            elif st.st_ino in links:
                os.link(links[st.st_ino], other, follow_symlinks=False)
            else:
                if stat.S_ISFIFO(st.st_mode):
                    os.mkfifo(other)
                else:
                    shutil.copyfile(one, other, follow_symlinks=False)
                _copy_metadata(one, other)
                links[st.st_ino] = other
    for old, new in reversed(directories):
        _copy_metadata(old, new)


def _copy_metadata(old: bytes, new: bytes) -> None:
    st = os.lstat(old)
    os.chown(new, st.st_uid, st.st_gid, follow_symlinks=False)
    shutil.copystat(old, new, follow_symlinks=False)
