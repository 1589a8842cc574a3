"""Which operations move which times, as on a plain directory."""

from __future__ import annotations

import ctypes
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.probes.tools import libc
from tests.support.in_process import MountedView
from tests.support.transports import IS_DIRECT
from yolofs.system.clock import coarse_clock_ns

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2


class Timespec(ctypes.Structure):
    """As utimensat(2) takes it."""

    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


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


@pytest.mark.skipif(not IS_DIRECT, reason="pyfuse3 hands over the time of its own clock, and not that it is to be now")
@pytest.mark.parametrize("name", ["base", "new", "link", "directory"])
def test_a_time_of_now_is_by_the_clock_that_stamps_writes(base: Path, mounted: Mounter, name: str) -> None:
    (base / "base").touch()
    path = Path(os.fsdecode(mounted().mountpoint)) / name
    {"new": path.touch, "link": lambda: path.symlink_to("x"), "directory": path.mkdir}.get(name, lambda: None)()
    for _ in range(20):
        os.utime(path, follow_symlinks=False)
        st = path.lstat()
        assert st.st_atime_ns == st.st_mtime_ns == st.st_ctime_ns


@pytest.mark.skipif(not IS_DIRECT, reason="pyfuse3 hands over the time of its own clock, and not that it is to be now")
@pytest.mark.parametrize("is_mtime", [False, True], ids=["atime", "mtime"])
def test_one_time_may_be_now_and_the_other_one_given_or_left(base: Path, mounted: Mounter, *, is_mtime: bool) -> None:
    view = mounted()
    path = Path(os.fsdecode(view.mountpoint)) / "file"
    path.touch()
    for other, expected_ns in ((Timespec(5, 7), 5_000_000_007), (Timespec(0, UTIME_OMIT), 5_000_000_007)):
        times = (
            (Timespec * 2)(other, Timespec(0, UTIME_NOW)) if is_mtime else (Timespec * 2)(Timespec(0, UTIME_NOW), other)
        )
        assert libc.utimensat(-100, bytes(path), times, 0) == 0
        st = path.stat()
        now_ns, other_ns = (st.st_mtime_ns, st.st_atime_ns) if is_mtime else (st.st_atime_ns, st.st_mtime_ns)
        assert other_ns == expected_ns
        assert 0 <= st.st_ctime_ns - now_ns < 10**9
