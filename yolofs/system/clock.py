"""The clocks that records, touched directories and files are stamped with, and what disks keep of
a time.
"""

from __future__ import annotations

import os
import time

_KEPT_IN_NS = (1, 100, 1_000, 10_000_000, 1_000_000_000, 2_000_000_000)
"""In which steps disks keep times: as given; NTFS and SMB; XFS of old and UDF; exFAT; ext4 with
small inodes and HFS+; FAT.
"""
_CLOCK_REALTIME_COARSE = 5  # linux/time.h; the time module has no name for it


def coarse_clock_ns() -> int:
    """Return the time by the clock that the kernel's own filesystems stamp files with."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


class StampClock:
    """Tells the time that the kernel stamps a file with which changes now.

    From Linux 6.13 on that is up to a tick later than :func:`coarse_clock_ns`: the kernel stamps
    what was looked at more finely, and nothing after it with an earlier time.  No clock tells that;
    so a file in memory is stamped.
    """

    def __init__(self) -> None:
        self._fd = os.memfd_create("stamped", os.MFD_CLOEXEC)

    def now_ns(self) -> int:
        """Return the time, no earlier than that of any file which has changed, on any disk."""
        os.utime(self._fd)
        return os.fstat(self._fd).st_mtime_ns

    def close(self) -> None:
        """Give the descriptor back, once."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_kept_as(given_ns: int, kept_ns: int) -> bool:
    """Tell whether ``kept_ns`` is what a disk keeps of a time that it was given."""
    return any(given_ns - given_ns % step_ns == kept_ns for step_ns in _KEPT_IN_NS)
