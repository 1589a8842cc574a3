"""Processes that leave out syncs: what tests write need not outlive the machine.

It is left out on the mount of temporary directories alone.  A disk that a test has made to be full,
to fail or to lose its power tells of errors when it is synced, and is synced as ever.  The
recorders of calls stand above these functions, and see each sync and its order.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from typing import Any

from yolofs.system import syscalls

fsync = os.fsync
"""Waits for the disk in any case."""


def install() -> None:
    """Leave out syncs in this process, and in its forks; by night all are made."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return
    directory = os.open(tempfile.gettempdir(), os.O_PATH)
    mount = _mount_of(directory)
    os.close(directory)
    for module, name in ((os, "fsync"), (os, "fdatasync"), (syscalls, "sync_filesystem")):
        setattr(module, name, _but_on(mount, getattr(module, name)))


def _mount_of(fd: int) -> bytes:
    """Return the number of the mount that a descriptor is of.  Asks no filesystem: one in user
    space counts what it is asked.
    """
    with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:
        return next(line for line in lines if line.startswith(b"mnt_id:"))


def _but_on(mount: bytes, sync: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(sync)
    def without(fd: Any) -> None:
        if _mount_of(fd if isinstance(fd, int) else fd.fileno()) != mount:
            sync(fd)

    return without
