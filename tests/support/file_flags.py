"""Files that are immutable or append-only, as chattr makes them."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
IMMUTABLE, APPEND = 0x10, 0x20


def set_flag(path: str | Path, flag: int) -> None:
    """Give a file one of the flags, or none, and take all others away; it may not be a link.

    Raises:
        OSError: the filesystem or the user has no such flags, as :func:`flagged` finds out before.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.ioctl(fd, _SET_FLAGS, struct.pack("l", flag))
    finally:
        os.close(fd)


@contextmanager
def flagged(path: Path, flag: int) -> Iterator[None]:
    """Do as chattr +i or +a for the time of the block."""
    fd = os.open(path, os.O_RDONLY)
    try:
        try:
            (before,) = struct.unpack("l", fcntl.ioctl(fd, _GET_FLAGS, struct.pack("l", 0)))
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("l", before | flag))
        except OSError as error:  # tmpfs has none, and neither an ordinary user nor a container may set them
            pytest.skip(f"this filesystem or user has no such flags: {error}")
        try:
            yield
        finally:
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("l", before))
    finally:
        os.close(fd)
