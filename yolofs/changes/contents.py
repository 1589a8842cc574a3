"""What regular files hold: compared and digested without reading the holes of sparse ones."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator

from yolofs.store.file_data import extents

BLOCK_BYTES = 1 << 20
_NOTHING = bytes(BLOCK_BYTES)


def is_same_content(left: int, right: int) -> bool:
    """Tell whether two open files hold the same bytes; blocks while it reads them.

    Raises:
        OSError: one of them cannot be read.
    """
    size = os.fstat(left).st_size
    if os.fstat(right).st_size != size:
        return False
    last = -1
    for at in heapq.merge(_blocks(left, size), _blocks(right, size)):
        if at != last and os.pread(left, BLOCK_BYTES, at) != os.pread(right, BLOCK_BYTES, at):
            return False
        last = at
    return True


def digest_of(fd: int, *, most_bytes: int) -> bytes | None:
    """Return what stands for all that an open file holds; None if ``most_bytes`` are not enough to
    be read for it.  Blocks.

    It says nothing of holes: a file with zeros in their place has the same.

    Raises:
        OSError: it cannot be read.
    """
    size = os.fstat(fd).st_size
    import hashlib  # takes long, and most commands need none of it

    digest = hashlib.blake2b(b"%d" % size, digest_size=16)
    left = most_bytes
    for at in _blocks(fd, size):
        left -= min(BLOCK_BYTES, size - at)
        if left < 0:
            return None
        data = os.pread(fd, BLOCK_BYTES, at)
        if data != _NOTHING[: len(data)]:
            digest.update(b" %d " % at)
            digest.update(data)
    return digest.digest()


def _blocks(fd: int, size: int) -> Iterator[int]:
    """Yield where the blocks begin that hold data, in their order."""
    after = 0
    for start, stop in extents(fd, size):
        first = max(start - start % BLOCK_BYTES, after)
        for at in range(first, stop, BLOCK_BYTES):
            yield at
            after = at + BLOCK_BYTES
