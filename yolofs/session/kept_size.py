"""How much of the disk commits take, and how much of that is what base had before.

It is found once for each commit, and noted for all of them in ``commits/sizes``, so that looking
costs the same with any number of commits.  What a commit keeps stays as it is, but for what an undo
takes of it; then the note goes.  Nothing is noted while a commit or undo has no end: a look half
way sees what is still on its way.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

import msgspec

from yolofs.session import run_tmp
from yolofs.session.archive import all_are_put_away, commit_directory, commit_numbers
from yolofs.state.kept_bases import NAME as BASES
from yolofs.system.disk_usage import size_of
from yolofs.system.plain_files import open_plain, read_plain

_NAME = b"sizes"
_MOST_BYTES = 1 << 26


class Size(msgspec.Struct, frozen=True, array_like=True):
    """How much of the disk a commit takes, in bytes."""

    kept: int
    """For what base had before."""
    besides: int
    """For its journal, its plan and all else."""


NOTHING = Size(0, 0)
"""Of a commit that is not there any more."""


def sizes_of_commits(session: bytes) -> dict[int, Size]:
    """Return how much each commit of the session in a directory takes, by number.

    Blocks while those are walked that nobody has looked at before.
    """
    numbers = commit_numbers(session)
    if not numbers:
        return {}
    path = _path(session)
    noted = _read(path)
    is_lasting = noted.keys() >= set(numbers) or all_are_put_away(session)
    sizes = {number: noted.get(number) or _walk(commit_directory(session, number)) for number in numbers}
    if is_lasting and sizes != noted:
        with contextlib.suppress(OSError):
            with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(msgspec.msgpack.encode(sizes))
            os.rename(path + b".new", path)
            if not all_are_put_away(session):  # an undo has begun: it forgets after it has made its directory
                forget_sizes(session)
    return sizes


class SessionSize(NamedTuple):
    """How much of the disk a session takes, in bytes."""

    all: int
    """As ``du`` says."""
    kept: int
    """Of that for what base had before commits: what ``keep_commits.gib`` is about."""


def size_of_session(session: bytes) -> SessionSize:
    """Return how much of the disk a session takes, but for the private ``/tmp`` of its runs
    (:func:`yolofs.session.run_tmp.size`); what commits keep is not walked anew.
    """
    sizes = sizes_of_commits(session)
    commits = os.path.join(session, b"commits")
    walked = {commit_directory(session, number) for number in sizes}
    above = size_of(session, without={commits, run_tmp.top_of(session)})
    others = size_of(commits, without=walked)
    kept = sum(size.kept for size in sizes.values())
    return SessionSize(above + others + kept + sum(size.besides for size in sizes.values()), kept)


def forget_sizes(session: bytes) -> None:
    """Drop what is noted, as something that a commit keeps is being taken.

    Raises:
        OSError: the disk failed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(session))


def _walk(directory: bytes) -> Size:
    before = {os.path.join(directory, name) for name in (b"replaced", BASES)}
    return Size(sum(map(size_of, before)), size_of(directory, without=before))


def _path(session: bytes) -> bytes:
    return os.path.join(session, b"commits", _NAME)


def _read(path: bytes) -> dict[int, Size]:
    try:
        return msgspec.msgpack.decode(read_plain(path, _MOST_BYTES), type=dict[int, Size])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
