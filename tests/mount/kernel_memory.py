"""Makes the kernel forget all files; no test may do that to another one that counts the kernel's
questions.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def _holding(kind: int) -> Iterator[None]:
    """Hold a lock that all processes of all test runs share; this directory stands for it."""
    fd = os.open(Path(__file__).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, kind)
        yield
    finally:
        os.close(fd)


def have_the_kernel_forget() -> None:
    """Have the kernel drop all names and inodes that nobody uses; only root can."""
    with _holding(fcntl.LOCK_EX):
        Path("/proc/sys/vm/drop_caches").write_text("2")


def what_it_knows_stays() -> contextlib.AbstractContextManager[None]:
    """Keep other tests from :func:`have_the_kernel_forget` for the time of the block."""
    return _holding(fcntl.LOCK_SH)
