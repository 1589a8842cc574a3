"""Directories in memory, for tests that make many thousands of files and wait for none of them to
be durable.

:func:`memory_directory` is one of a test's own.  :func:`mount_for_the_run` makes one for the whole
run.  It is no part of ``/dev``, which a view of the machine leaves out.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VARIABLE = "YOLOFS_TEST_MEMORY"
"""Where the run's directory in memory is, for its processes; empty if it has none."""

_MEMORY = "/dev/shm"
_LEAST_BYTES = 4 << 30
"""Of memory that has to be free; the tests take a fourth of it at a time."""
_CLONE_NEWNS = 0x20000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_MNT_DETACH = 2


@contextmanager
def memory_directory() -> Iterator[Path]:
    """Give a directory that is gone at the end; on a disk, where the machine has no place in memory
    for one.
    """
    place = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="yolofs-test.", dir=place))
    try:
        (directory / "state").mkdir(0o700)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def mount_for_the_run() -> None:
    """Mount a directory in memory for this process and all that it starts, and name it in
    :data:`VARIABLE`.

    Nobody else sees the mount, and it is gone with the last of these processes.  By night there is
    none, nor where this process may not mount or memory is short: all files are on the disk then.
    """
    if VARIABLE in os.environ:
        return
    os.environ[VARIABLE] = ""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" or _free_bytes() < _LEAST_BYTES:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(_CLONE_NEWNS) != 0:
        return
    directory = tempfile.mkdtemp(prefix="yolofs-memory.")
    if (
        libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None) != 0
        or libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", 0, b"mode=1777") != 0
    ):
        os.rmdir(directory)
        return
    os.environ[VARIABLE] = directory


def unmount_after_the_run() -> None:
    """Undo :func:`mount_for_the_run`, in the process that called it."""
    directory = os.environ.pop(VARIABLE, "")
    if directory:
        ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(directory), _MNT_DETACH)
        with suppress(OSError):
            os.rmdir(directory)


def _free_bytes() -> int:
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
