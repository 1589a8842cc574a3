"""Files that are not in memory, read through a mount."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.in_process import MountedView
from tests.support.cold_files import make_cold

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
