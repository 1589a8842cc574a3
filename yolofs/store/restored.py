"""The files of base that taking back a commit has put in their places again: in ``restored`` of the
session's directory.

Base is then as it was, except for the times of change (ctime), which no program can set.  So what
was put back looks as if the host had changed it, and the next commit would find conflicts.  So each
is noted with its resulting ctime; a later ctime is the host's again.

Once nothing is staged, no commit can meet what was put back before.  An undo of a commit that is
kept still can, so the notes move to ``restored.earlier``, which commands that compare what is
staged do not read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import msgspec

from yolofs.system.plain_files import read_note, replace_note

_NAME = b"restored"
_EARLIER = b"restored.earlier"
_UNSET = b"unset"
"""In the same way: what a commit or an undo gave other content or metadata, and could not give all,
such as its time.  It does not look as it was to look, and yet nobody else has changed it.
"""
_MOST_BYTES = 1 << 30
_MOST_EARLIER = 200_000
"""So many inode ctimes are kept for undos alone, the latest."""
_MOST_OF_A_NUMBER = 8
"""So many inode ctimes with one inode number are kept, the latest: as many disks may have such a
file.
"""
InodeCtime: TypeAlias = tuple[int, int]
"""An inode number, and the ctime in ns of the file that has it: the inode number alone may be that
of a file on each disk.
"""


def by_names(inode_ctime: InodeCtime) -> InodeCtime:
    """Return the inode ctime that a directory has, besides its own, if an undo or a commit made it.

    What came into such a directory with it has inode ctimes, too; anything else in it is the
    host's.
    """
    inode, ctime_ns = inode_ctime
    return -inode, ctime_ns


def read(directory: bytes) -> set[InodeCtime]:
    """Return the inode ctimes of what was put back; empty if nothing was, or the note is damaged.

    Raises:
        OSError: it cannot be read.
    """
    return _read(directory, _NAME)


def read_all(directory: bytes) -> set[InodeCtime]:
    """Return the inode ctimes of all that was put back, also before what is staged now; empty and
    raises as :func:`read`.
    """
    return _read(directory, _NAME) | _read(directory, _EARLIER)


def read_unset(directory: bytes) -> set[InodeCtime]:
    """Return the inode ctimes of files that do not look as a commit should have left them; empty
    and raises as :func:`read`.
    """
    return _read(directory, _UNSET)


def _read(directory: bytes, name: bytes) -> set[InodeCtime]:
    text = read_note(os.path.join(directory, name), _MOST_BYTES)
    try:
        noted = msgspec.json.decode(text, type=dict[int, int] | list[InodeCtime]) if text is not None else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return set()
    return set(noted.items() if isinstance(noted, dict) else noted)  # a dictionary is of an earlier version


def add(directory: bytes, restored: AbstractSet[InodeCtime]) -> None:
    """Note what was put back just now, durably.

    Raises:
        OSError: it cannot be written, or what is there not be read.
    """
    _add(directory, _NAME, restored)


def add_unset(directory: bytes, unset: AbstractSet[InodeCtime]) -> None:
    """Note what does not look as a commit was to leave it, durably; raises as :func:`add`."""
    if unset:
        _add(directory, _UNSET, unset)


def _add(directory: bytes, name: bytes, inode_ctimes: AbstractSet[InodeCtime], *, most: int | None = None) -> None:
    path = os.path.join(directory, name)
    latest: dict[int, list[int]] = {}
    for inode, ctime_ns in sorted(_read(directory, name) | inode_ctimes):
        latest.setdefault(inode, []).append(ctime_ns)
    kept = [(inode, ctime_ns) for inode, ctimes in latest.items() for ctime_ns in ctimes[-_MOST_OF_A_NUMBER:]]
    if most is not None and len(kept) > most:
        kept = sorted(kept, key=lambda inode_ctime: inode_ctime[1])[-most:]
    replace_note(path, msgspec.json.encode(kept))


def keep_for_undos(directory: bytes) -> None:
    """Keep for undos alone what was put back, and forget the rest: nothing is staged any more."""
    with contextlib.suppress(OSError):  # a full disk keeps it where it is
        if found := read(directory):
            _add(directory, _EARLIER, found, most=_MOST_EARLIER)
        _remove(directory, _NAME, _NAME + b".new")
    _remove(directory, _UNSET, _UNSET + b".new")


def _remove(directory: bytes, *names: bytes) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))
