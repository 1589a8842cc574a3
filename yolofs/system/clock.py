"""The clock that records and touched directories are stamped with."""

from __future__ import annotations

import time

_CLOCK_REALTIME_COARSE = 5  # linux/time.h; the time module has no name for it


def coarse_clock_ns() -> int:
    """Return the time by the clock that the kernel's own filesystems stamp files with."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
