"""A process that maps files for a test: ``mapper.py``, told what to do by pickled tuples on stdin.

A process of its own, as an access behind the end of a file ends it (SIGBUS).  Each request is answered on stdout.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
from typing import Any


class Mapper:
    """Holds mappings by numbers; a file's descriptor is closed as soon as it is mapped, as programs do."""

    def __init__(self) -> None:
        self.maps: dict[int, mmap.mmap] = {}

    def open(self, number: int, path: str, *, writes: bool) -> int:
        """Map all of a file and return how much that is."""
        fd = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
        try:
            access = mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)
            self.maps[number] = mmap.mmap(fd, 0, mmap.MAP_SHARED, access)
        finally:
            os.close(fd)
        return len(self.maps[number])

    def read(self, number: int, size: int) -> bytes:
        """Return the first ``size`` bytes."""
        return self.maps[number][:size]

    def write(self, number: int, offset: int, data: bytes) -> None:
        """Write into a mapping."""
        self.maps[number][offset : offset + len(data)] = data

    def sync(self, number: int) -> None:
        """Have the kernel write out what was written."""
        self.maps[number].flush()

    def close(self, number: int) -> None:
        """Take a mapping away."""
        self.maps.pop(number).close()


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
