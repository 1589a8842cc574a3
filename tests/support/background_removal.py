"""Removes what tests have made while others run: at the end of a run the disk alone would be at
work, with a hundred thousand files.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from pathlib import Path

KEPT = 20
"""So many directories stay after the tests that made them: a number and a time of birth are given
again only where the older file has lived for less than a tick of the kernel's clock.
"""
AT_ONCE = 100
"""So many are removed by one process."""

_made: deque[Path] = deque()
_removing: list[subprocess.Popen[bytes]] = []


def of(directory: Path) -> None:
    """Have a directory removed some time after the test that made it has ended."""
    _made.append(directory)


def go_on() -> None:
    """Begin to remove what is due; to be called between two tests, as they may change what starts
    processes.
    """
    if len(_made) < KEPT + AT_ONCE:
        return
    wait()
    command = ["rm", "-rf", "--one-file-system", *(os.fspath(_made.popleft()) for _ in range(AT_ONCE))]
    # without the mark by which what a test leaves behind is known
    _removing.append(subprocess.Popen(command, env={"PATH": os.defpath}, stderr=subprocess.DEVNULL))


def wait() -> None:
    """Wait until what is being removed is gone."""
    while _removing:
        _removing.pop().wait()
