"""The bytes of a journal file: header, lines, torn tail and damage.

All functions take an open descriptor and use pread, so its file position does not matter.  What the records
mean to a session is :mod:`yolofs.journal`'s business.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from yolofs import syscalls
from yolofs.errors import JournalError
from yolofs.journal_codec import FORMAT, HEADER, VERSION, decode
from yolofs.paths import display

TORN_SUFFIX = b".torn"
ROOM_BYTES = 256 << 10
_CHUNK_BYTES = 1 << 20
_NO_END = 1 << 64
"""Above every file offset."""


class Damage(NamedTuple):
    """Where a journal stops being readable, and why."""

    offset_bytes: int
    """Where the bad line starts; all before it is good."""
    line_number: int
    """Of the bad line; line 1 is the header."""
    cut_bytes: int
    """How much a repair cuts: the bad line and all after it."""
    reason: str


class Room:
    """Space on the disk that a journal has ahead of its end, so that removals can be recorded when the disk is full.

    Up to :data:`ROOM_BYTES`; the last half of it is for removals alone.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._end = 0

    def has(self, start: int, length: int) -> bool:
        """Tell whether ``length`` bytes can be written at ``start`` without a :meth:`take`."""
        return start + length + ROOM_BYTES // 2 <= self._end

    def take(self, start: int, length: int, *, is_removal: bool) -> None:
        """See that ``length`` bytes can be written at ``start``, as far as that can be told beforehand.

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

    def forget(self) -> None:
        """Note that the file was cut: then the disk has taken the room back."""
        self._end = 0


def create(path: bytes) -> int:
    """Make a journal without records (mode 0600) and return a descriptor for reading and appending.

    It is durable when this returns, and appears complete or not at all.

    Raises:
        FileExistsError: there is something at ``path`` already.
        OSError: it cannot be written.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    unfinished = path + b".new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(unfinished)
    fd = os.open(unfinished, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_whole(fd, HEADER)
        os.fsync(fd)
        os.rename(unfinished, path)
        sync_directory_of(path)
    except BaseException:
        os.close(fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    return fd


def write_whole(fd: int, data: bytes) -> None:
    """Write ``data`` by one write(2).

    Raises:
        OSError: it failed, or wrote less: on a regular file that is a disk (or a quota) that is full.
    """
    if os.write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, "the write was cut short")


def check_header(fd: int, path: bytes) -> None:
    """Refuse what is no journal of this version.

    Raises:
        JournalError: it is none.
    """
    line, newline, _ = os.pread(fd, 64, 0).partition(b"\n")
    if line + newline == HEADER:
        return
    word, _, version = line.partition(b" ")
    if word == FORMAT and version.isdigit() and newline:
        raise JournalError(
            f"{display(path)} has format version {display(version)}, but this yolofs reads version {VERSION}",
            hint="use the yolofs that made it, or a newer one",
        )
    hint = "its first line should be " + HEADER.decode().rstrip()
    raise JournalError(f"{display(path)} is not a yolofs journal", hint=hint)


def read_lines(fd: int, start: int, end: int) -> Iterator[list[bytes]]:
    """Yield the complete lines between two byte offsets, in batches, without their newlines.

    What follows the last newline is left out.
    """
    begun: list[bytes] = []
    for chunk in read_chunks(fd, start, end):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join((*begun, head)).split(b"\n")
            begun = []
        begun.append(tail)


def read_chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield all bytes between two offsets, piece by piece; less if the file ends before ``end``."""
    while start < end:
        chunk = os.pread(fd, min(_CHUNK_BYTES, end - start), start)
        if not chunk:
            return
        yield chunk
        start += len(chunk)


def checksum(fd: int, size: int) -> int:
    """Return the CRC-32 of the first ``size`` bytes."""
    crc = 0
    for chunk in read_chunks(fd, 0, size):
        crc = zlib.crc32(chunk, crc)
    return crc


def line_number(fd: int, offset: int) -> int:
    """Return the number, from 1, of the line that starts at ``offset``."""
    return 1 + sum(chunk.count(b"\n") for chunk in read_chunks(fd, 0, offset))


def find_damage(fd: int) -> Damage | None:
    """Decode every line; return where the first bad one is, None if there is none."""
    file_size = os.fstat(fd).st_size
    offset = len(HEADER)
    for lines in read_lines(fd, offset, file_size):
        for line in lines:
            try:
                decode(line)
            except JournalError as error:
                return Damage(offset, line_number(fd, offset), file_size - offset, error.message)
            offset += len(line) + 1
    if offset == file_size:
        return None
    return Damage(offset, line_number(fd, offset), file_size - offset, "the line is cut")


def move_tail(fd: int, path: bytes, offset: int) -> None:
    """Move all from ``offset`` on to ``journal.torn``: first made durable there, then cut from ``fd``.

    ``journal.torn`` grows by a line ``# <count> bytes cut from offset <offset>``, those bytes and a newline.
    """
    tail = b"".join(read_chunks(fd, offset, os.fstat(fd).st_size))
    torn = os.open(path + TORN_SUFFIX, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write_whole(torn, b"# %d bytes cut from offset %d\n%b\n" % (len(tail), offset, tail))
        os.fsync(torn)
    finally:
        os.close(torn)
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
