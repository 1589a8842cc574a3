"""What the C library has and Python's ``os`` lacks."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


def syncfs(fd: int) -> None:
    """Write out all that the kernel holds back for the filesystem of ``fd``: syncfs(2).  Blocks.

    Raises:
        OSError: as syncfs(2).
    """
    if _libc.syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
