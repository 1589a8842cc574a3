"""The disk space that is taken by what a commit keeps of base.

It is found once, and noted in the commit's directory: what is kept stays as it is, but for what an
undo takes of it.  Nothing is noted while a commit or undo has no end: a look half way sees what is
still on its way.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.session.archive import End, commit_directory, commit_numbers
from yolofs.system.disk_usage import size_of
from yolofs.system.plain_files import open_plain, read_plain

_NAME = b"size"
_MOST_BYTES = 64


def kept_bytes(directory: bytes) -> int:
    """Return it, in bytes, of the commit in a directory."""
    path = os.path.join(directory, _NAME)
    with contextlib.suppress(OSError, ValueError):
        return max(0, int(read_plain(path, _MOST_BYTES)))
    session = os.path.dirname(os.path.dirname(directory))
    is_lasting = _has_all_ended(session)
    size = size_of(os.path.join(directory, b"replaced"))
    if not is_lasting:
        return size
    with contextlib.suppress(OSError):
        with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(b"%d\n" % size)
        os.rename(path + b".new", path)
        if not _has_all_ended(session):  # an undo has begun: it drops what is noted after it has made its directory
            forget_size(directory)
    return size


def _has_all_ended(session: bytes) -> bool:
    """Tell whether the newest commit has an end; all before it have."""
    newest = commit_directory(session, max(commit_numbers(session), default=0))
    return any(os.path.lexists(os.path.join(newest, end.value)) for end in End)


def session_bytes(directory: bytes) -> int:
    """Return how much of the disk a session takes, all of it, as ``du`` says; what commits keep is
    not walked anew.
    """
    commits = [commit_directory(directory, number) for number in commit_numbers(directory)]
    kept = sum(map(kept_bytes, commits))
    return kept + size_of(directory, without={os.path.join(commit, b"replaced") for commit in commits})


def forget_size(directory: bytes) -> None:
    """Drop the note, as something is being taken of what the commit keeps.

    Raises:
        OSError: the disk failed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, _NAME))
