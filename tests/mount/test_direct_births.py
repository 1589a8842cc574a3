"""When a file was made, as statx(2) tells it with the transport of our own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.hard_links import Mounter
from tests.support.in_process import MountedView
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.fuse.trace import Trace
from yolofs.system.syscalls import _statx

pytestmark = pytest.mark.mount

MAKERS: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_text("content"),
    "directory": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("target"),
    "fifo": os.mkfifo,
}


ALL = 0xFFF
"""All fields of statx(2): with the birth alone, the answer would be the kernel's own."""


def birth_ns(path: Path | int) -> int:
    told = _statx(path if isinstance(path, int) else os.fsencode(path), ALL)
    assert int.from_bytes(told[:4], sys.byteorder) & ALL == ALL
    return int.from_bytes(told[80:88], sys.byteorder, signed=True) * 10**9 + int.from_bytes(told[88:92], sys.byteorder)


def root(view: MountedView) -> Path:
    return Path(os.fsdecode(view.mountpoint))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_base_file_has_the_birth_that_base_says(base: Path, mounted: Mounter, kind: str) -> None:
    MAKERS[kind](base / "old")
    view = mounted(make_transport=DirectTransport)
    assert birth_ns(root(view) / "old") == birth_ns(base / "old")


@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_made_in_the_view_has_its_birth_there(base: Path, mounted: Mounter, kind: str) -> None:
    before = base.stat().st_mtime_ns
    view = mounted(make_transport=DirectTransport)
    MAKERS[kind](root(view) / "new")
    os.utime(root(view) / "new", ns=(1, 1), follow_symlinks=False)
    born = birth_ns(root(view) / "new")
    assert before <= born
    view.remount()
    assert birth_ns(root(view) / "new") == born


def test_an_open_file_and_the_mountpoint_have_a_birth(base: Path, mounted: Mounter) -> None:
    (base / "old").write_text("content")
    view = mounted(make_transport=DirectTransport)
    with (root(view) / "old").open() as file:
        assert birth_ns(file.fileno()) == birth_ns(base / "old")
    assert birth_ns(root(view)) == birth_ns(base)


def test_a_copy_was_made_when_it_was_copied_up(base: Path, mounted: Mounter) -> None:
    (base / "old").write_text("content")
    view = mounted(make_transport=DirectTransport)
    first = birth_ns(root(view) / "old")
    with (root(view) / "old").open("a") as file:
        file.write(", more")
    copied = birth_ns(root(view) / "old")
    assert copied > first


@pytest.mark.parametrize("kind", MAKERS)
def test_statx_tells_all_but_births_as_base_does(base: Path, mounted: Mounter, kind: str) -> None:
    MAKERS[kind](base / "old")
    os.utime(base / "old", ns=(-1_500_000_000, 1_600_000_000_123_456_789), follow_symlinks=False)
    view = mounted(make_transport=DirectTransport, base_timeout_s=0.0)
    told, expected = (
        _statx(os.fsencode(root(view) / "old"), ALL),
        _statx(os.fsencode(base / "old"), ALL),
    )
    assert told[16:32] == expected[16:32]  # nlink uid gid mode
    assert told[32:56] == expected[32:56]  # ino size blocks
    assert told[64:128] == expected[64:128]  # times


def test_a_stat_that_asks_for_no_birth_makes_no_statx_request(base: Path, mounted: Mounter) -> None:
    (base / "old").write_text("content")
    trace = Trace()
    view = mounted(make_transport=DirectTransport, trace=trace, base_timeout_s=0.0)
    for _ in range(3):
        os.stat(root(view) / "old")
    assert "statx" not in trace.counts()
    birth_ns(root(view) / "old")
    assert trace.counts()["statx"] == 1
