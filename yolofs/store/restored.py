"""The files of base that taking back a commit has put in their places again: in ``restored`` of the
session's directory.

Base is then as it was, except for the times of change (ctime), which no program can set.  So what
was put back looks as if the host had changed it, and the next commit would find conflicts.  So each
is noted with the ctime that it has got by that; one that it gets later is the host's again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

import msgspec

from yolofs.system.plain_files import read_note, replace_note

_NAME = b"restored"
_UNSET = b"unset"
"""In the same way: what a commit or an undo gave other content or metadata, and could not give all,
such as its time.  It does not look as it was to look, and yet nobody else has changed it.
"""
_MOST_BYTES = 1 << 30


def read(directory: bytes) -> dict[int, int]:
    """Return the ctime, in ns, of what was put back, by inode number; empty if nothing was, or the
    note is damaged.

    Raises:
        OSError: it cannot be read.
    """
    return _read(directory, _NAME)


def read_unset(directory: bytes) -> dict[int, int]:
    """Return the ctimes, in ns, of files that do not look as a commit should have left them, by
    inode number; empty and raises as :func:`read`.
    """
    return _read(directory, _UNSET)


def _read(directory: bytes, name: bytes) -> dict[int, int]:
    text = read_note(os.path.join(directory, name), _MOST_BYTES)
    try:
        return msgspec.json.decode(text, type=dict[int, int]) if text is not None else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def add(directory: bytes, restored: Mapping[int, int]) -> None:
    """Note what was put back just now, durably.

    Raises:
        OSError: it cannot be written, or what is there not be read.
    """
    _add(directory, _NAME, restored)


def add_unset(directory: bytes, unset: Mapping[int, int]) -> None:
    """Note what does not look as a commit was to leave it, durably; raises as :func:`add`."""
    if unset:
        _add(directory, _UNSET, unset)


def _add(directory: bytes, name: bytes, ctimes: Mapping[int, int]) -> None:
    path = os.path.join(directory, name)
    text = msgspec.json.encode({**_read(directory, name), **ctimes})
    replace_note(path, text)


def remove(directory: bytes) -> None:
    """Forget all of it: nothing is staged any more that it could matter to."""
    for name in (_NAME, _NAME + b".new", _UNSET, _UNSET + b".new"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))
