"""A descriptor that stands for exactly one process, whoever gets its number later."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def pidfd_of(pid: int) -> Iterator[int | None]:
    """Give a descriptor that stands for exactly this process, None if it is gone or not in
    sight.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)
