"""How much of the disk something takes."""

from __future__ import annotations

import os
from collections.abc import Container

from yolofs.system.busy_trees import Measured

_BLOCK = 512
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_of(path: bytes, *, without: Container[bytes] = ()) -> int:
    """Return how many bytes of the disk a directory takes with all that is in it, each file once,
    as ``du`` says; 0 if it is not there.

    What cannot be looked at is left out.  What is ``without`` is not even looked at.
    """
    try:
        total = os.lstat(path).st_blocks * _BLOCK
    except OSError:
        return 0
    seen: set[tuple[int, int]] = set()
    todo = [path]
    while todo:
        directory = todo.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.path in without:
                        continue
                    st = entry.stat(follow_symlinks=False)
                    if st.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (st.st_dev, st.st_ino) in seen:
                            continue
                        seen.add((st.st_dev, st.st_ino))
                    total += st.st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            continue
    return total


def size_text(count: int) -> str:
    """Return a number of bytes as people read it."""
    size = float(count)
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"


def size_at_least_text(found: Measured) -> str:
    """Return how much something takes that may not all have been looked at, as people read it."""
    return f"more than {size_text(found.size_bytes)}" if found.is_more else size_text(found.size_bytes)
