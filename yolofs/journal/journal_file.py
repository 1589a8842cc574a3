"""The bytes of a journal file: header, lines, torn tail and damage.

All functions take an open descriptor and use pread, so its file position does not matter.  What the
records mean to a session is :mod:`yolofs.journal.journal`'s business.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Iterator

from yolofs.errors import JournalError
from yolofs.journal.cuts import CUTS_SUFFIX, TORN_SUFFIX, Cut
from yolofs.journal.header import JournalForm, header, read_header
from yolofs.paths import display
from yolofs.system import syscalls
from yolofs.system.plain_files import is_there, open_plain

ROOM_BYTES = 256 << 10
_CHUNK_BYTES = 1 << 20
_NO_END = 1 << 64
"""Above every file offset."""


class Room:
    """Space on the disk that a journal has ahead of its end, so that removals can be recorded when
    the disk is full.

    Up to :data:`ROOM_BYTES`; the last half of it is for removals alone.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._end = 0

    def has(self, start: int, length: int) -> bool:
        """Tell whether ``length`` bytes can be written at ``start`` without a :meth:`take`."""
        return start + length + ROOM_BYTES // 2 <= self._end

    def take(self, start: int, length: int, *, is_removal: bool) -> None:
        """Take room on the disk for ``length`` bytes at ``start``, where the filesystem can do
        that.

        Raises:
            OSError: ENOSPC: the disk is full, and what room is left is for removals.
        """
        end = start + length
        try:
            syscalls.reserve_space(self._fd, start, length + ROOM_BYTES)
            self._end = end + ROOM_BYTES
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self._end = _NO_END  # this filesystem cannot
            elif not is_removal:
                raise

    def take_none(self) -> None:
        """Take no room from now on."""
        self._end = _NO_END

    def forget(self) -> None:
        """Note that the file was cut: then the disk has taken the room back."""
        self._end = 0


def create(path: bytes, key: int, *, spare: bytes | None = None) -> int:
    """Make a journal with a key and without records (mode 0600); return a descriptor for reading
    and appending.

    It is durable when this returns, and appears complete or not at all.  On a full disk the file
    ``spare`` becomes it, if there is one: what it has of the disk is enough.

    Raises:
        FileExistsError: there is something at ``path`` already.
        OSError: it cannot be written.
    """
    if is_there(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    unfinished = path + b".new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(unfinished)
    fd = -1
    try:
        try:
            fd = os.open(unfinished, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            write_whole(fd, header(key))
        except OSError as error:
            if spare is None or error.errno not in (errno.ENOSPC, errno.EDQUOT) or not is_there(spare):
                raise
            if fd >= 0:
                os.close(fd)
            fd = -1
            os.rename(spare, unfinished)
            fd = _written_over(unfinished, header(key))
        os.fsync(fd)
        os.rename(unfinished, path)
        sync_directory_of(path)
    except BaseException:
        if fd >= 0:
            os.close(fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    return fd


def _written_over(path: bytes, data: bytes) -> int:
    """Make ``data`` all that a file holds, without more of the disk; return a descriptor for
    reading and appending.
    """
    fd = open_plain(path, os.O_WRONLY)  # by O_APPEND nothing is written over
    try:
        write_whole(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)
    return open_plain(path, os.O_RDWR | os.O_APPEND)


def write_whole(fd: int, data: bytes) -> None:
    """Write ``data`` by one write(2).

    Raises:
        OSError: it failed, or wrote less: on a regular file that is a disk (or a quota) that is
            full.
    """
    if os.write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, "the write was cut short")


def read_form(fd: int, path: bytes) -> JournalForm:
    """Return what the first line says.

    Raises:
        JournalError: it is no journal, of an unknown version, or damaged in that line.
    """
    line, newline, _ = os.pread(fd, 64, 0).partition(b"\n")
    try:
        return read_header(line if newline else b"")
    except JournalError as error:
        raise JournalError(f"{display(path)} {error.message}", hint=error.hint) from error


def read_lines(fd: int, start: int, end: int) -> Iterator[list[bytes]]:
    """Yield the complete lines between two byte offsets, in batches, without their newlines.

    What follows the last newline is left out.
    """
    begun: list[bytes] = []
    for chunk in read_bytes_between(fd, start, end):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join((*begun, head)).split(b"\n")
            begun = []
        begun.append(tail)


def read_bytes_between(fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield all bytes between two offsets, piece by piece; less if the file ends before ``end``."""
    while start < end:
        chunk = os.pread(fd, min(_CHUNK_BYTES, end - start), start)
        if not chunk:
            return
        yield chunk
        start += len(chunk)


def may_have_marks(path: bytes) -> bool:
    """Tell whether a journal may have a record with ``marks=``: by its bytes, as to decode all
    takes much longer.
    """
    fd = open_plain(path, os.O_RDONLY)
    try:
        before = b""
        for chunk in read_bytes_between(fd, 0, os.fstat(fd).st_size):
            if b" marks=" in before + chunk:
                return True
            before = chunk[-len(b" marks=") :]
        return False
    finally:
        os.close(fd)


def checksum(fd: int, size: int) -> int:
    """Return the CRC-32 of the first ``size`` bytes."""
    crc = 0
    for chunk in read_bytes_between(fd, 0, size):
        crc = zlib.crc32(chunk, crc)
    return crc


def count_lines(fd: int, start: int, end: int) -> int:
    """Return how many lines end between two byte offsets."""
    return sum(chunk.count(b"\n") for chunk in read_bytes_between(fd, start, end))


def append_to(path: bytes, data: bytes) -> None:
    """Append ``data`` to a file (mode 0600), durably: all of it or, after an error, nothing.

    Raises:
        OSError: it cannot be written.
    """
    fd = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(fd).st_size
        try:
            write_whole(fd, data)
        except OSError:
            os.ftruncate(fd, size)
            raise
        os.fsync(fd)
    finally:
        os.close(fd)


def read_tail(fd: int, offset: int) -> bytes:
    """Return all from ``offset`` on."""
    return b"".join(read_bytes_between(fd, offset, os.fstat(fd).st_size))


def keep_tail(path: bytes, offset: int, tail: bytes) -> None:
    """Append ``tail``, which stands at ``offset``, to ``journal.torn``, durably.

    That file grows by a line ``# <count> bytes cut from offset <offset>``, those bytes and a
    newline.
    """
    append_to(path + TORN_SUFFIX, b"# %d bytes cut from offset %d\n%b\n" % (len(tail), offset, tail))


def move_tail(fd: int, path: bytes, offset: int, note: Cut | None = None) -> None:
    """Move all from ``offset`` on to ``journal.torn``: first made durable there, then cut from
    ``fd``.

    The ``note`` of it is durable before the cut, so that no cut goes untold.
    """
    keep_tail(path, offset, read_tail(fd, offset))
    if note is not None:
        append_to(path + CUTS_SUFFIX, note.encode())
    sync_directory_of(path)
    os.ftruncate(fd, offset)
    os.fsync(fd)


def sync_directory_of(path: bytes) -> None:
    """Make durable what was created, renamed or removed beside a path."""
    fd = os.open(os.path.dirname(path) or b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
