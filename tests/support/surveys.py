"""Surveys whose clock is ahead: what was made just now is old enough to be kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from yolofs.daemon.runs.native_survey import KnownDirectories, Survey


def survey(known: KnownDirectories, mounts: Callable[[], Mapping[bytes, bytes]] | None = None) -> Survey:
    """Return a survey that begins with what is known."""
    return Survey(known, now_ns=lambda: time.time_ns() + 10_000_000_000, mounts=mounts or (lambda: {b"/": b"ext4"}))


def next_tick(directory: Path) -> None:
    """Wait until what changes has another ctime than what has changed so far."""
    probe = directory / "tick"
    probe.touch()
    first = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == first:
        os.utime(probe)


def found(known: KnownDirectories, top: Path) -> tuple[set[str], KnownDirectories]:
    """Return what a survey finds below a directory, relative to it, and what may be kept of it."""
    one = survey(known)
    paths = {os.path.relpath(os.fsdecode(path), top) for path in one.find(os.fsencode(top))}
    return paths, one.to_keep()
