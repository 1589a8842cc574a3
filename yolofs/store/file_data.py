"""Copying the bytes of a file as cheaply as the filesystem allows: shared blocks, a copy in the
kernel, or reading and writing; holes stay holes.

Every function blocks until the bytes are with the kernel (not until they are durable).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from enum import Enum

_FICLONE = 0x40049409  # _IOW(0x94, 9, int) of linux/fs.h
_CHUNK_BYTES = 1 << 20
_KERNEL_CHUNK_BYTES = 1 << 30  # below the 2 GiB that one system call moves at most

_TRY_OTHERWISE = frozenset(
    {
        errno.EXDEV,
        errno.ENOSYS,
        errno.EOPNOTSUPP,
        errno.EINVAL,
        errno.ENOTTY,  # an ioctl that the filesystem does not know
        errno.EPERM,  # a seccomp filter, or a file that is sealed
        errno.ETXTBSY,  # a swap file
    }
)
"""What the cheap ways of copying answer where they do not work; reading and writing may still
do.
"""
_SMALL_BYTES = 1 << 17


class CopyMethod(Enum):
    """How bytes were moved."""

    REFLINK = "reflink"
    COPY_FILE_RANGE = "copy_file_range"
    READ_WRITE = "read-write"


# --- whole files ----------------------------------------------------------------------------------


def copy_small(src_fd: int, dst_fd: int, st: os.stat_result, size: int) -> bool:
    """Copy a few bytes without holes by one read and one write, a third of the calls; tell whether
    that could be done.

    If not, what was written is of no use.
    """
    if size > _SMALL_BYTES or st.st_blocks * 512 < st.st_size:
        return False
    data = os.pread(src_fd, size, 0)
    return len(data) == size == os.pwrite(dst_fd, data, 0)


# --- metadata -------------------------------------------------------------------------------------


# --- data -----------------------------------------------------------------------------------------


def copy_data(src_fd: int, dst_fd: int, size: int) -> CopyMethod:
    """Make the first ``size`` bytes of ``src_fd`` the content of ``dst_fd``, keeping holes; return
    how.

    What ``dst_fd`` held before is gone.  It ends up as long as ``size``, or as ``src_fd`` if that
    is shorter.  The file position of ``src_fd`` moves.  Blocks; safe in any thread as long as
    nobody else uses the two.

    Raises:
        OSError: ENOSPC, EIO and the like; ``dst_fd`` is then one hole of the size that it had
            before.
    """
    size_before = os.fstat(dst_fd).st_size
    if size_before:  # to empty what is empty has ext4 write the copy out at its close
        os.ftruncate(dst_fd, 0)
    try:
        if size and _reflink(src_fd, dst_fd, size):
            return CopyMethod.REFLINK
        return _copyextents(src_fd, dst_fd, size)
    except BaseException:
        with contextlib.suppress(OSError):
            os.ftruncate(dst_fd, 0)
            os.ftruncate(dst_fd, size_before)
        raise


def _reflink(src_fd: int, dst_fd: int, size: int) -> bool:
    try:
        fcntl.ioctl(dst_fd, _FICLONE, src_fd)
    except OSError as error:
        if error.errno not in _TRY_OTHERWISE:
            raise
        return False
    if os.fstat(dst_fd).st_size > size:
        os.ftruncate(dst_fd, size)
    return True


def _copyextents(src_fd: int, dst_fd: int, size: int) -> CopyMethod:
    method = CopyMethod.COPY_FILE_RANGE
    end = min(size, os.fstat(src_fd).st_size)
    for start, stop in extents(src_fd, end):
        position = start
        if method is CopyMethod.COPY_FILE_RANGE:
            position = _copy_in_kernel(src_fd, dst_fd, start, stop)
        if position < stop:  # not possible here, or it stopped early, as on files that the kernel makes up
            method = CopyMethod.READ_WRITE
            position = copy_by_hand(src_fd, dst_fd, position, stop)
        if position < stop:  # the file has become shorter
            end = position
            break
    os.ftruncate(dst_fd, end)
    return method


def extents(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where the first ``size`` bytes hold data, as (start, stop), between the holes."""
    position = 0
    while position < size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
            stop = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            if error.errno not in _TRY_OTHERWISE:
                raise
            start, stop = position, size
        if start >= size:
            return
        position = min(stop, size) if stop > start else size
        yield start, position


def _copy_in_kernel(src_fd: int, dst_fd: int, start: int, stop: int) -> int:
    """Copy a range by copy_file_range and return how far it came."""
    while start < stop:
        try:
            count = os.copy_file_range(src_fd, dst_fd, min(stop - start, _KERNEL_CHUNK_BYTES), start, start)
        except OSError as error:
            if error.errno not in _TRY_OTHERWISE:
                raise
            return start
        if not count:
            return start
        start += count
    return start


def copy_by_hand(src_fd: int, dst_fd: int, start: int, stop: int) -> int:
    """Copy a range by reading and writing and return how far it came: short of ``stop`` if the file
    ends.  ``start`` and ``stop`` are offsets in bytes.

    Raises:
        OSError: as pread(2) and pwrite(2); EIO if a write writes nothing.
    """
    while start < stop:
        data = os.pread(src_fd, min(stop - start, _CHUNK_BYTES), start)
        if not data:
            return start
        written = os.pwrite(dst_fd, data, start)
        if not written:
            raise OSError(errno.EIO, "a write wrote nothing")
        start += written
    return start
