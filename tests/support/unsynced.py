"""Processes that leave out syncs: what tests write need not outlive the machine.

It is left out on the disk of temporary directories alone.  A disk that a test has made to be full,
to fail or to lose its power tells of errors when it is synced, and is synced as ever.  What is
synced, and in which order, is seen by the recorders of calls, which stand above these functions.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from typing import Any

from yolofs.system import syscalls


def install() -> None:
    """Leave out syncs in this process, and in its forks; by night all are made."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return
    device = os.stat(tempfile.gettempdir()).st_dev
    for module, name in ((os, "fsync"), (os, "fdatasync"), (syscalls, "sync_filesystem")):
        setattr(module, name, _but_on(device, getattr(module, name)))


def _but_on(device: int, sync: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(sync)
    def without(fd: Any) -> None:
        if os.fstat(fd if isinstance(fd, int) else fd.fileno()).st_dev != device:
            sync(fd)

    return without
