"""Files of a mount that the host changes, for tests of what the kernel has cached of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.in_process import MountedView

Mounter = Callable[..., MountedView]

PAGE = 4096
LONG_S = 1000.0
"""A lifetime for attributes that no test sees the end of."""


def at(view: MountedView, name: str) -> str:
    return os.path.join(os.fsdecode(view.mountpoint), name)


@contextlib.contextmanager
def opened(path: str | Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def change(path: Path, data: bytes, offset: int = 0) -> None:
    """Change a file in place, as the host does; its mtime is another one then, also within one tick
    of the clock.
    """
    before = path.stat().st_mtime_ns
    with opened(path, os.O_WRONLY) as fd:
        os.pwrite(fd, data, offset)
    if path.stat().st_mtime_ns == before:
        os.utime(path, ns=(before + 1, before + 1))
