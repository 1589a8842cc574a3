"""Which operations move which times, as on a plain directory."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView
from yolofs.system.clock import coarse_clock_ns

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def moved(path: Path, operation: Callable[[], object]) -> str:
    """Tell which times of ``path`` an operation moves: ``m``, ``c``, both or none."""
    before = path.stat()
    deadline = time.monotonic() + 10
    while coarse_clock_ns() <= before.st_ctime_ns and time.monotonic() < deadline:
        pass  # the clock that the system stamps files with has not gone on yet
    operation()
    after = path.stat()
    return ("m" if after.st_mtime_ns != before.st_mtime_ns else "") + (
        "c" if after.st_ctime_ns != before.st_ctime_ns else ""
    )


@pytest.mark.parametrize("is_staged", [False, True])
def test_each_operation_moves_the_times_of_a_file_as_on_a_plain_directory(
    base: Path, mounted: Mounter, is_staged: bool
) -> None:
    (base / "f").write_bytes(b"0123456789")
    view = mounted()
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    if is_staged:
        file.unlink()
        file.write_bytes(b"0123456789")
    other = file.with_name("other")
    expected = {
        "link": ("c", lambda: os.link(file, other)),
        "unlink": ("c", other.unlink),
        "chmod": ("c", lambda: file.chmod(0o600)),
        "utime": ("mc", lambda: os.utime(file, ns=(1, 2))),
        "write": ("mc", lambda: file.write_bytes(b"x")),
        "truncate": ("mc", lambda: os.truncate(file, 100)),
        "read": ("", file.read_bytes),
    }
    assert {name: moved(file, operation) for name, (_, operation) in expected.items()} == {
        name: times for name, (times, _) in expected.items()
    }


def test_replacing_a_link_moves_the_ctime_of_the_name_that_stays(base: Path, mounted: Mounter) -> None:
    view = mounted()
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    file.write_bytes(b"")
    os.link(file, file.with_name("other"))
    file.with_name("new").write_bytes(b"")
    assert moved(file, lambda: file.with_name("new").rename(file.with_name("other"))) == "c"
    assert file.stat().st_nlink == 1


@pytest.mark.parametrize("mode", [0o644, 0o4755])
def test_emptying_an_empty_file_moves_its_times_and_keeps_its_mode(base: Path, mounted: Mounter, mode: int) -> None:
    view = mounted()
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    for empty in (
        lambda: os.truncate(file, 0),
        lambda: file.write_bytes(b""),
        lambda: os.close(os.open(file, os.O_RDWR | os.O_TRUNC)),
    ):
        file.write_bytes(b"")
        file.chmod(mode)
        os.utime(file, ns=(1_000_000_001, 2_000_000_002))
        before = file.stat()
        empty()
        after = file.stat()
        assert (after.st_size, after.st_atime_ns) == (0, 1_000_000_001)
        assert after.st_mtime_ns > before.st_mtime_ns
        assert after.st_ctime_ns >= before.st_ctime_ns
        if mode == 0o644:
            assert stat.S_IMODE(after.st_mode) == mode
