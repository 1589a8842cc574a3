"""Splits a directory that is to be bound straight from base around the things in it that must not
be.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable

from yolofs.paths import is_below

MOST_PARTS = 256
"""How many parts of one directory there may be: each is a mount, which takes a tenth of a
millisecond at each start.
"""


def directories_beside(top: bytes, obstacles: Iterable[bytes]) -> list[bytes]:
    """Return the highest directories, ``top`` or below it, in which none of the obstacles lies.

    Absolute paths.  Those far down are left out where there would be too many.  Reads the
    directories on the way to the obstacles.
    """
    inside = [path for path in obstacles if is_below(path, top)]
    found: list[bytes] = []
    todo = deque([top])
    while todo:
        directory = todo.popleft()
        names_of_obstacles = {path[len(directory) + 1 :].split(b"/")[0] for path in inside if is_below(path, directory)}
        if not names_of_obstacles:
            found.append(directory)
        elif b"" not in names_of_obstacles:  # an obstacle itself
            below = _directories(directory)
            if len(found) + len(todo) + len(below) <= MOST_PARTS:
                todo += below
    return found


def apart(paths: Iterable[bytes]) -> list[bytes]:
    """Return the paths of which none lies below another."""
    found: list[bytes] = []
    for path in sorted(paths, key=lambda path: path.split(b"/")):
        if not (found and is_below(path, found[-1])):
            found.append(path)
    return found


def _directories(directory: bytes) -> list[bytes]:
    """Return the directories in a directory; links are none."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
