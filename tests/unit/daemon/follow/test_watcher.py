"""The process that watches base, when the daemon that started it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

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


def test_each_directory_in_one_that_comes_is_told(tmp_path: Path) -> None:
    """Nobody has watched them until then."""
    (tmp_path / "top").mkdir()
    (tmp_path / "tree/a/b").mkdir(parents=True)
    command = [sys.executable, "-m", "yolofs.daemon.follow.watcher", "--limit", "100", str(tmp_path / "top")]
    missing = {os.fsencode(tmp_path / "top" / name) for name in ("tree", "tree/a", "tree/a/b")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = records(process.stdout)
        assert next(told) == b"."
        (tmp_path / "tree").rename(tmp_path / "top/tree")
        while missing:
            missing.discard(next(told).removeprefix(b"+"))
        process.stdin.close()


MEANWHILE = """
import os, sys
from yolofs.daemon.follow import watcher

class Meanwhile(watcher.DirectoryWatcher):
    watches = 0

    def _watch(self):
        self.watches += 1
        if self.watches == 2:
            os.mkdir(sys.argv[2])
        return super()._watch()

watcher.DirectoryWatcher = Meanwhile
sys.exit(watcher.main(["--limit", "100", sys.argv[1]]))
"""
"""A watcher beside which a directory is made just before the watch is made anew."""


@pytest.mark.parametrize("name", ["tree/late", "late"], ids=["in the new directory", "in a watched one"])
def test_a_directory_that_comes_while_the_watch_is_made_anew_is_watched(tmp_path: Path, name: str) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "tree").mkdir()
    command = [sys.executable, "-P", "-c", MEANWHILE, str(top), str(top / name)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        too_long = threading.Timer(30, process.kill)
        too_long.start()
        told = records(process.stdout)
        assert next(told) == b"."
        (tmp_path / "tree").rename(top / "tree")
        assert b"+" + os.fsencode(top / name) in told
        time.sleep(2)  # longer than it takes to make the watch anew, which nothing tells
        (top / name / "file").touch()
        assert b"+" + os.fsencode(top / name / "file") in told
        too_long.cancel()
        process.stdin.close()


def records(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield what the watcher reports, until it ends."""
    record = b""
    while byte := stream.read(1):
        if byte == b"\0":
            yield record
            record = b""
        else:
            record += byte
