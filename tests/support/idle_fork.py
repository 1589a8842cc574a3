"""A fork of the tests that does nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def idle_fork() -> Iterator[int]:
    """Give the number of a process that has all that this one has open, and ends with the block."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        yield pid
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(pid, 0)
