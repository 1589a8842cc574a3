"""Files of which the kernel has nothing in memory."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import unsynced


def make_cold(path: Path) -> None:
    """Have the kernel drop a file's pages."""
    fd = os.open(path, os.O_RDONLY)
    try:
        unsynced.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
