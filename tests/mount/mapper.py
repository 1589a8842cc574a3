"""A process that maps files for a test: ``mapper.py``, told what to do by pickled tuples on stdin.

A process of its own, as an access behind the end of a file ends it (SIGBUS).  Each request is
answered on stdout.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
from typing import Any


class Mapper:
    """Holds mappings by numbers."""

    def __init__(self) -> None:
        self.maps: dict[int, mmap.mmap] = {}
        self.files: dict[int, int] = {}

    def open(self, number: int, path: str, *, writes: bool) -> int:
        """Map all of a file and return how much that is."""
        self.files[number] = fd = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)
        self.maps[number] = mmap.mmap(fd, 0, mmap.MAP_SHARED, access)
        return len(self.maps[number])

    def read(self, number: int, size: int) -> bytes:
        """Return the first ``size`` bytes, or as many as the file has as far as the kernel knows by
        now.
        """
        return self.maps[number][: min(size, os.fstat(self.files[number]).st_size)]

    def write(self, number: int, offset: int, data: bytes) -> None:
        """Write into a mapping."""
        self.maps[number][offset : offset + len(data)] = data

    def sync(self, number: int) -> None:
        """Have the kernel write out what was written."""
        self.maps[number].flush()

    def close(self, number: int) -> None:
        """Take a mapping away."""
        self.maps.pop(number).close()
        os.close(self.files.pop(number))


def main() -> None:
    """Serve until the end of stdin."""
    mapper = Mapper()
    while True:
        try:
            word, arguments, named = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        result: Any
        try:
            result = getattr(mapper, word)(*arguments, **named)
        except OSError as error:
            result = error
        pickle.dump(result, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
