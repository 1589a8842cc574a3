"""Removing the sessions of projects that tests make by the hundred.

Each would be looked through by every later command.  And a directory that lived for less than a
tick of the kernel's clock may leave its inode number and its time of birth to the next one, which
no user's does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from yolofs.registry.registry import Registry
from yolofs.session.forget import forget_session


def remove_sessions_below(directory: bytes) -> None:
    """Remove the sessions of all projects in a directory; none may be in use."""
    directory = os.path.realpath(directory)
    with Registry.open() as registry:
        entries = list(registry)
    for entry in entries:
        if entry.project_path == directory or entry.project_path.startswith(directory + b"/"):
            forget_session(entry)


@contextmanager
def sessions_removed(state_home: str) -> Iterator[None]:
    """Remove the sessions that come during a block, and their entries in the registry; none may be
    in use at its end.
    """
    parts = [os.path.join(state_home, "yolofs", part) for part in ("registry", "sessions")]
    before = [_names(part) for part in parts]
    try:
        yield
    finally:
        for part, known in zip(parts, before, strict=True):
            for name in _names(part) - known:
                path = os.path.join(part, name)
                if os.path.isdir(path):
                    shutil.rmtree(path, ignore_errors=True)  # an ordinary user's may hold what it closed
                else:
                    os.unlink(path)


def _names(directory: str) -> set[str]:
    return set(os.listdir(directory)) if os.path.isdir(directory) else set()
