"""How many records a journal has, noted beside it in ``journal.length``, so that lines missing at
its end show.

Each line of a journal tells its place, so that a gap shows by the line after it; after the last
there is none.  The note is written after the records, but not after each of them.  So it is never
too high, and it is exact once the writer has written a marker, has rested for some seconds, or has
closed.
"""

from __future__ import annotations

import contextlib
import os
import zlib

from yolofs.system.plain_files import open_plain

LENGTH_SUFFIX = b".length"
_SIZE_BYTES = 33
"""Key, count and checksum in hex, blanks between them, and a newline: so little is written at once
or not at all.
"""


def write(journal: bytes, key: int, record_count: int) -> None:
    """Note how many records the journal at a path has, if the disk takes it; else it takes no
    records either.
    """
    with contextlib.suppress(OSError):
        fd = open_plain(journal + LENGTH_SUFFIX, os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(fd, _encode(key, record_count), 0)
        finally:
            os.close(fd)


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
