"""What a commit takes of a file with hard links whose names are not all selected."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.core_driver import CoreDriver

OLD = 1_400_000_000_000_000_000


def test_a_time_of_a_symlink_is_a_change_of_all_its_names(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    os.symlink("target", base / "one")
    os.link(base / "one", base / "other", follow_symlinks=False)
    os.utime(base / "one", ns=(OLD, OLD), follow_symlinks=False)
    view = CoreDriver(os.fsencode(base))
    try:
        view.utimes(b"one", OLD + 1)
        assert not view.commit_paths([b"one"])
        assert os.lstat(base / "other").st_mtime_ns == OLD
        assert view.commit_paths([b"one", b"other"])
        assert os.lstat(base / "other").st_mtime_ns == OLD + 1
    finally:
        view.close()
