"""The clock that records and touched directories are stamped with, and what disks keep of a
time.
"""

from __future__ import annotations

import time

_KEPT_IN_NS = (1, 100, 1_000, 10_000_000, 1_000_000_000, 2_000_000_000)
"""In which steps disks keep times: as given; NTFS and SMB; XFS of old and UDF; exFAT; ext4 with
small inodes and HFS+; FAT.
"""
_CLOCK_REALTIME_COARSE = 5  # linux/time.h; the time module has no name for it


def coarse_clock_ns() -> int:
    """Return the time by the clock that the kernel's own filesystems stamp files with."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


def is_kept_as(given_ns: int, kept_ns: int) -> bool:
    """Tell whether ``kept_ns`` is what a disk keeps of a time that it was given."""
    return any(given_ns - given_ns % step_ns == kept_ns for step_ns in _KEPT_IN_NS)
