"""How many changes a commit made to base, as its list showed them, and which runs they are due to:
in ``counts`` and ``runs`` of its directory.

Its plan does not tell: a rename is two steps, and a directory whose time alone is set is one.  Its
journal does not, either: it also has what stayed staged, and what was travelled away from.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import msgspec

from yolofs.changes.changes import Change, ChangeKind
from yolofs.changes.counting import counts
from yolofs.commit.apply.commit_directory import write_new
from yolofs.system.plain_files import read_plain

_COUNTS = b"counts"
_RUNS = b"runs"
_MOST_BYTES = 1 << 10
_MOST_BYTES_OF_RUNS = 1 << 20


def note_counts(directory: bytes, changes: Iterable[Change]) -> None:
    """Note in a commit's directory what it is about to change; nobody waits for the disk.

    Raises:
        OSError: it cannot be written.
    """
    write_new(directory, _COUNTS, msgspec.json.encode(counts(changes)), durable=False)


def read_counts(directory: bytes) -> Mapping[str, int] | None:
    """Return how many changes of each kind a commit made, by letter; None if that is not known: an
    earlier version made it, or the note is lost.
    """
    try:
        found = msgspec.json.decode(read_plain(os.path.join(directory, _COUNTS), _MOST_BYTES), type=dict[str, int])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return {kind.value: max(0, found.get(kind.value, 0)) for kind in ChangeKind}


def note_runs_of_commit(directory: bytes, runs: Iterable[int]) -> None:
    """Note in a commit's directory which runs its changes are due to; nobody waits for the disk.

    Raises:
        OSError: it cannot be written.
    """
    write_new(directory, _RUNS, msgspec.json.encode(sorted(runs)), durable=False)


def read_runs_of_commit(directory: bytes) -> list[int]:
    """Return which runs the changes of a commit are due to, in order; none if that is not known: an
    earlier version made it, it is an undo, or the note is lost.
    """
    try:
        return msgspec.json.decode(read_plain(os.path.join(directory, _RUNS), _MOST_BYTES_OF_RUNS), type=list[int])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []
