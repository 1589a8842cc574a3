"""What is appended goes behind what the host has written, with the transport of our own: the kernel
asks for no size before it appends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.hard_links import Mounter
from tests.support.program import wait_until
from yolofs.fuse.direct.transport import DirectTransport

pytestmark = pytest.mark.mount

OLD = b"old line\n" * 10


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"by the host\n")


def shrink(path: Path) -> None:
    os.truncate(path, 9)


@pytest.mark.parametrize("change", [grow, shrink])
@pytest.mark.parametrize("is_held", [True, False], ids=["held", "opened later"])
def test_what_is_appended_goes_behind_what_the_host_has_left(
    base: Path, mounted: Mounter, change: Callable[[Path], None], *, is_held: bool
) -> None:
    (base / "log").write_bytes(OLD)
    view = mounted(make_transport=DirectTransport, base_timeout_s=3600.0)
    path = Path(os.fsdecode(view.mountpoint)) / "log"
    assert path.stat().st_size == len(OLD)
    flags = os.O_WRONLY | os.O_APPEND
    fd = os.open(path, flags) if is_held else -1
    change(base / "log")
    expected = (base / "log").read_bytes() + b"one\ntwo\n"
    fd = fd if is_held else os.open(path, flags)
    assert os.write(fd, b"one\n") == 4
    assert os.write(fd, b"two\n") == 4
    os.close(fd)
    wait_until(lambda: path.read_bytes() == expected, "what was appended, and no page of before")
    assert path.stat().st_size == len(expected)
    view.commit()
    assert (base / "log").read_bytes() == expected


def test_a_write_at_a_place_goes_there_also_by_a_file_that_was_opened_to_append(base: Path, mounted: Mounter) -> None:
    (base / "log").write_bytes(OLD)
    view = mounted(make_transport=DirectTransport, base_timeout_s=3600.0)
    path = Path(os.fsdecode(view.mountpoint)) / "log"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND)
    os.pwrite(fd, b"new", 0)
    os.close(fd)
    assert path.read_bytes() == b"new" + OLD[3:]
