"""What of base a commit that was taken back has put in its place again: in ``restored`` of the
session's directory.

Base is as it was then, but for the times of change (ctime) that no program can set: by them what
was put back looks as if the host had changed it, and the next commit would find conflicts.  So each
is noted with the ctime that it has got by that; one that it gets later is the host's again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

import msgspec

from yolofs.system.plain_files import open_plain, read_note, sync_directory

_NAME = b"restored"
_MOST_BYTES = 1 << 30


def read(directory: bytes) -> dict[int, int]:
    """Return the ctime, in ns, of what was put back, by inode number; empty if nothing was, or the
    note is damaged.

    Raises:
        OSError: it cannot be read.
    """
    text = read_note(os.path.join(directory, _NAME), _MOST_BYTES)
    try:
        return msgspec.json.decode(text, type=dict[int, int]) if text is not None else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def add(directory: bytes, restored: Mapping[int, int]) -> None:
    """Note what was put back just now, durably.

    Raises:
        OSError: it cannot be written, or what is there not be read.
    """
    path = os.path.join(directory, _NAME)
    text = msgspec.json.encode({**read(directory), **restored})
    with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + b".new", path)
    sync_directory(directory)


def remove(directory: bytes) -> None:
    """Forget all of it: nothing is staged any more that it could matter to."""
    for name in (_NAME, _NAME + b".new"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))
