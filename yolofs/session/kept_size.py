"""How much of the disk that takes which a commit keeps of base.

It is found once, and noted in the commit's directory: what is kept stays as it is, but for what an undo takes of it.
Nothing is noted while a commit or undo has no end: who looks half way sees what is still on its way.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.session.archive import End, commit_directory, commit_numbers
from yolofs.system.disk_usage import disk_bytes, size_of
from yolofs.system.plain_files import open_plain, read_plain

_NAME = b"size"
_MOST_BYTES = 64


def kept_bytes(directory: bytes) -> int:
    """Return it, in bytes, of the commit in a directory."""
    return _sizes(directory)[0]


def _sizes(directory: bytes) -> tuple[int, int]:
    """Return how much a commit keeps of base, and how much all in its directory takes."""
    path = os.path.join(directory, _NAME)
    with contextlib.suppress(OSError, ValueError):
        kept, whole = map(int, read_plain(path, _MOST_BYTES).split())
        return max(0, kept), max(0, whole)
    session = os.path.dirname(os.path.dirname(directory))
    is_lasting = _has_all_ended(session)
    sizes = size_of(os.path.join(directory, b"replaced")), size_of(directory)
    if not is_lasting:
        return sizes
    with contextlib.suppress(OSError):
        with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(b"%d %d\n" % sizes)
        os.rename(path + b".new", path)
        if not _has_all_ended(session):  # an undo has begun: it drops what is noted after it has made its directory
            forget_size(directory)
    return sizes


def _has_all_ended(session: bytes) -> bool:
    """Tell whether the newest commit has an end; all before it have."""
    newest = commit_directory(session, max(commit_numbers(session), default=0))
    return any(os.path.lexists(os.path.join(newest, end.value)) for end in End)


def session_bytes(directory: bytes) -> int:
    """Return how much of the disk a session takes: what is staged, its journal and audit, and all of its commits."""
    commits = os.path.join(directory, b"commits")
    total = size_of(os.path.join(directory, b"files"))
    with contextlib.suppress(FileNotFoundError):
        total += sum(_sizes(os.path.join(commits, name))[1] for name in os.listdir(commits) if name.isdigit())
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        total += sum(disk_bytes(entry.stat(follow_symlinks=False)) for entry in entries if entry.is_file())
    return total


def forget_size(directory: bytes) -> None:
    """Drop the note, as something is being taken of what the commit keeps.

    Raises:
        OSError: the disk failed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, _NAME))
