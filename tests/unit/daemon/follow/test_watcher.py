"""The process that watches base, when the daemon that started it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("limit", [1, 100], ids=["too-many", "watched"])
def test_the_watcher_ends_silently_if_the_daemon_is_gone(tmp_path: Path, limit: int) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    command = [sys.executable, "-m", "yolofs.daemon.follow.watcher", "--limit", str(limit), str(tmp_path)]
    nobody, end = os.pipe()
    os.close(nobody)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=end, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    finally:
        os.close(end)
    assert done.stderr == ""
