"""How much of the disk that takes which a commit keeps of base.

It is found once, and noted in the commit's directory: what is kept stays as it is, but for what an undo takes of it.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.disk_usage import size_of
from yolofs.plain_files import open_plain, read_plain

_NAME = b"size"
_MOST_BYTES = 64


def kept_bytes(directory: bytes) -> int:
    """Return it, in bytes, of the commit in a directory."""
    path = os.path.join(directory, _NAME)
    with contextlib.suppress(OSError, ValueError):
        return max(0, int(read_plain(path, _MOST_BYTES)))
    size = size_of(os.path.join(directory, b"replaced"))
    with contextlib.suppress(OSError):
        with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(b"%d\n" % size)
        os.rename(path + b".new", path)
    return size


def session_bytes(directory: bytes) -> int:
    """Return how much of the disk a session takes: what is staged, and what its commits keep."""
    commits = os.path.join(directory, b"commits")
    try:
        numbers = [name for name in os.listdir(commits) if name.isdigit()]
    except FileNotFoundError:
        numbers = []
    kept = sum(kept_bytes(os.path.join(commits, name)) for name in numbers)
    return kept + size_of(os.path.join(directory, b"files"))


def forget_size(directory: bytes) -> None:
    """Drop the note, as something is being taken of what the commit keeps.

    Raises:
        OSError: the disk failed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, _NAME))
