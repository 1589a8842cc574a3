"""Files that are not in memory, and names that the kernel does not know, through a mount."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cold_files import make_cold
from tests.support.in_process import MountedView
from tests.support.program import wait_until

pytestmark = pytest.mark.mount
SIZE = 3 << 20


def test_a_cold_file_is_read_whole_through_a_mount(base: Path, mounted: Callable[..., MountedView]) -> None:
    content = os.urandom(SIZE + 123)
    (base / "f").write_bytes(content)
    view = mounted()
    path = Path(os.fsdecode(view.mountpoint)) / "f"
    for _ in range(3):
        make_cold(base / "f")
        make_cold(path)
        assert path.read_bytes() == content


def held_below(base: Path) -> list[str]:
    """Return the directories below base that this process, which serves the view, holds."""
    places = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    return [place for place in places if place.startswith(f"{base}/") and os.path.isdir(place)]


def test_an_idle_view_holds_no_directory_of_base(base: Path, mounted: Callable[..., MountedView]) -> None:
    (base / "disk/below").mkdir(parents=True)
    (base / "disk/below/f").touch()
    top = Path(os.fsdecode(mounted().mountpoint))
    assert os.listdir(top / "disk/below") == ["f"]
    assert not (top / "disk/below/f").lstat().st_size
    assert not os.path.lexists(top / "disk/below/none")
    wait_until(lambda: not held_below(base), "the directories are closed: else the host could not unmount the disk")
