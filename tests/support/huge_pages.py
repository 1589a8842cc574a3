"""Memory of which there are few pages, as each page of a process is worked on when it forks."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

_PAGE_BYTES = 1 << 21
_COLLAPSE = 25
"""MADV_COLLAPSE, of Linux 6.1: Python has no name for it."""


def collapse() -> int:
    """Put what this process has in memory into huge pages, and return how many they are.

    A fork then takes half of its time or less.  Where the kernel does not do it, all stays as it
    is.
    """
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    done = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, inode, *_ = line.split()
        if rights == "rw-p" and inode == "0":
            first, end = (int(address, 16) for address in addresses.split("-"))
            for start in range(-(-first // _PAGE_BYTES) * _PAGE_BYTES, end - _PAGE_BYTES + 1, _PAGE_BYTES):
                libc.madvise(start, _PAGE_BYTES, mmap.MADV_HUGEPAGE)
                done += libc.madvise(start, _PAGE_BYTES, _COLLAPSE) == 0
    return done
