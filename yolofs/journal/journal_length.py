"""How many records a journal has, noted beside it in ``journal.length``, so that lines missing at
its end show.

Each line of a journal tells its place, so that a gap shows by the line after it; after the last
there is none.  The note is written after the records, but not after each of them.  So it is never
too high, and it is exact once the writer has written a marker, has rested for some seconds, or has
closed.

The file is the reserve of its session, too: what makes room on a full disk may remove it first
(:func:`in_reserve`).  On most disks the little that it has is enough.  On btrfs, where a quota that
is used up leaves no room even for a rename, it keeps :data:`RESERVE_BYTES` more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Callable

from yolofs.system import syscalls
from yolofs.system.plain_files import open_plain

LENGTH_SUFFIX = b".length"
_SIZE_BYTES = 33
"""Key, count and checksum in hex, blanks between them, and a newline: so little is written at once
or not at all.
"""
RESERVE_BYTES = 512 << 10
"""Of a quota btrfs sets aside the most that a change of the disk may take, and gives back what it
did not: to make a journal and to rename it takes less than half of this.
"""
_BLOCK_BYTES = 4096


def write(journal: bytes, key: int, record_count: int) -> None:
    """Note how many records the journal at a path has, if the disk takes it; else it takes no
    records either.
    """
    with contextlib.suppress(OSError):
        fd = open_plain(journal + LENGTH_SUFFIX, os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(fd, _encode(key, record_count), 0)
            _keep_reserve(fd)
        finally:
            os.close(fd)


def _keep_reserve(fd: int) -> None:
    """Take room on the disk for the reserve, where it is needed and not there.

    Raises:
        OSError: there is none, or the disk cannot keep any.
    """
    if os.fstat(fd).st_blocks * 512 < RESERVE_BYTES and syscalls.is_on_btrfs(fd):
        syscalls.reserve_space(fd, _BLOCK_BYTES, RESERVE_BYTES)


def in_reserve(journal: bytes, make_room: Callable[[], None]) -> None:
    """Call what makes room on the disk of the journal at a path; if the disk is full, again without
    the reserve.

    Raises:
        OSError: as ``make_room``.
    """
    try:
        make_room()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        with contextlib.suppress(FileNotFoundError):
            os.unlink(journal + LENGTH_SUFFIX)
        make_room()


def read(journal: bytes, key: int) -> int:
    """Return how many records the journal at a path, which has this key, is known to have had; 0 if
    nothing tells.

    Danger: a reader calls it before it reads the journal, or it may be told of lines that it has
    not seen.
    """
    try:
        fd = open_plain(journal + LENGTH_SUFFIX, os.O_RDONLY)
    except OSError:
        return 0
    try:
        note = os.read(fd, _SIZE_BYTES)
    except OSError:
        return 0
    finally:
        os.close(fd)
    try:
        count = int(note[9:23], 16)
    except ValueError:
        return 0
    return count if note == _encode(key, count) else 0


def _encode(key: int, record_count: int) -> bytes:
    text = b"%08x %014x" % (key, record_count)
    return b"%b %08x\n" % (text, zlib.crc32(text))
