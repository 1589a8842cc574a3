"""Opening what lies in base: through no link, and without moving its access time."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from yolofs.system.syscalls import open_by_no_link


def hold(path: bytes) -> int:
    """Return a descriptor of what is at a path in base, a link itself; by it attributes can be
    asked for, and no more.

    Raises:
        OSError: as lstat(2); ENOTDIR where a symbolic link is on the way.
    """
    try:
        return open_by_no_link(path, os.O_PATH)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None


@contextlib.contextmanager
def holding(path: bytes) -> Iterator[int]:
    """Give what :func:`hold` returns for the time of a block."""
    fd = hold(path)
    try:
        yield fd
    finally:
        os.close(fd)


def read_link(path: bytes) -> bytes:
    """Return the target of a symbolic link in base.

    Raises:
        OSError: as readlink(2), but ENOENT for what is no link; ENOTDIR where a link is on the way.
    """
    with holding(path) as fd:
        return os.readlink(b"", dir_fd=fd)


def path_of(fd: int) -> bytes:
    """Return a path to an open file, through one link of the system's, for functions that need a
    path.
    """
    return b"/proc/self/fd/%d" % fd


def open_noatime(path: bytes, flags: int) -> int:
    """Open the path of something in base without moving its access time, if that is permitted.

    No symbolic link is followed, not even on the way there: rules have judged this path, and the
    host may since have put a link in the place of a directory.

    Raises:
        OSError: as open(2); ELOOP for a link.
    """
    try:
        return open_by_no_link(path, flags | os.O_NOATIME)
    except PermissionError:
        return open_by_no_link(path, flags)


@contextlib.contextmanager
def noatime_directory(path: bytes) -> Iterator[int]:
    """Give a descriptor of a directory in base, to list it, for the time of a block.

    Raises:
        OSError: as :func:`open_noatime`, but ENOTDIR for a link.
    """
    try:
        fd = open_noatime(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    try:
        yield fd
    finally:
        os.close(fd)
