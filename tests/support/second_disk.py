"""A disk in memory, mounted for a test where it wants one: a second device that is as small as need
be.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.required import do_without

_READ_ONLY = 1
_BIND = 4096
_DETACH = 2


@contextmanager
def mounted_disk(
    place: Path, *, mib: int = 16, source: Path | None = None, is_read_only: bool = False
) -> Iterator[None]:
    """Mount a disk of so many MiB in memory at a place for the time of the block; the test is
    skipped where root may not.

    With a ``source`` that directory is mounted there: another mount of the same device.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if source is None:
        failed = libc.mount(b"none", bytes(place), b"tmpfs", _READ_ONLY * is_read_only, b"size=%dm" % mib)
    else:
        failed = libc.mount(bytes(source), bytes(place), None, _BIND, None)
    if failed:
        do_without("mounting is not permitted here")
    try:
        yield
    finally:
        assert libc.umount2(bytes(place), _DETACH) == 0
