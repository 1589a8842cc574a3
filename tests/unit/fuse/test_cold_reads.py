"""Reads that would have to wait for the disk are left to a worker thread."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.cold_files import make_cold
from tests.support.plain_handlers import handlers_of, open_file
from yolofs.fuse.handlers import Handlers

SIZE = 3 << 20
ATTEMPTS = 100


def can_tell(path: Path) -> bool:
    """Tell whether the filesystem says that a read would wait (ext4, xfs and btrfs do, tmpfs does
    not).

    Like :func:`is_left_open` it needs several attempts.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        for _ in range(ATTEMPTS):
            make_cold(path)
            os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    raise AssertionError("the file is not cold")


def is_left_open(handlers: Handlers, handle: int, path: Path) -> bool:
    """Tell whether a read of a cold file is left to others.

    A read without waiting starts another one, which goes on by itself and may end before the first
    has looked.
    """
    make_cold(path)
    return handlers.read(handle, 0, 4096) is None


def test_a_read_that_is_not_in_memory_is_left_to_a_job(base: Path) -> None:
    content = os.urandom(SIZE)
    (base / "f").write_bytes(content)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f")
        if can_tell(base / "f"):
            assert any(is_left_open(handlers, handle, base / "f") for _ in range(ATTEMPTS))
        job = handlers.read_job(handle, 1, 4096)
        handlers.release(handle)  # the job has a descriptor of its own
        assert job() == content[1:4097]


def test_a_read_that_is_in_memory_is_answered_at_once(base: Path) -> None:
    (base / "f").write_bytes(b"0123456789")
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f")
        for offset, size, expected in [(0, 4, b"0123"), (8, 100, b"89"), (10, 5, b""), (50, 5, b"")]:
            data = handlers.read(handle, offset, size)
            assert data is not None
            assert bytes(data) == expected
