"""Counts what some work does: the functions that it calls, and the files that it opens."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions of Python some work calls."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@contextmanager
def opened(directory: Path) -> Iterator[list[str]]:
    """Give the paths in a directory that are opened in the block."""
    found: list[str] = []
    _hear(lambda path: found.append(path) if path.startswith(str(directory)) else None)
    try:
        yield found
    finally:
        _hear(lambda _: None)


_heard: list[Callable[[str], None]] = []
"""Who hears what is opened; an audit hook cannot be taken away again."""


def _hear(by: Callable[[str], None]) -> None:
    if not _heard:
        sys.addaudithook(lambda event, arguments: _heard[0](_path(arguments[0])) if event == "open" else None)
    _heard[:] = [by]


def _path(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, str | bytes) else ""
