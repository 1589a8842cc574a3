"""A rename moves the ctime of what is staged, as on a plain directory, and of nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.test_posix_times import moved
from tests.support.in_process import MountedView
from tests.support.plain_directory import RENAME_EXCHANGE

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_rename_moves_the_ctime_of_what_is_staged(base: Path, mounted: Mounter, what: str) -> None:
    view = mounted()
    root = Path(os.fsdecode(view.mountpoint))
    for name in ("one", "two"):
        if what == "file":
            (root / name).write_bytes(b"")
        else:
            (root / name).mkdir()
    view.snapshot()
    fds = [os.open(root / name, os.O_PATH) for name in ("one", "two")]
    try:
        one, two = (Path(f"/proc/self/fd/{fd}") for fd in fds)
        assert moved(one, lambda: (root / "one").rename(root / "three")) == "c"
        assert moved(two, lambda: view.rename(b"two", b"three", RENAME_EXCHANGE)) == "c"
        assert moved(one, lambda: view.rename(b"three", b"two", RENAME_EXCHANGE)) == "c"
    finally:
        for fd in fds:
            os.close(fd)


def test_a_rename_leaves_the_ctime_of_what_is_in_base(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"")
    root = Path(os.fsdecode(mounted(base_timeout_s=0.0).mountpoint))
    with (root / "f").open("rb") as held:
        assert moved(Path(f"/proc/self/fd/{held.fileno()}"), lambda: (root / "f").rename(root / "g")) == ""
