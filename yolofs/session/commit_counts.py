"""How many changes a commit made to base, as its list showed them: in ``counts`` of its directory.

Its plan does not tell: a rename is two steps, and a directory whose time alone is set is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import msgspec

from yolofs.changes.changes import Change, Kind
from yolofs.changes.counting import counts
from yolofs.commit.apply.commit_directory import write_new
from yolofs.system.plain_files import read_plain

_NAME = b"counts"
_MOST_BYTES = 1 << 10


def note_counts(directory: bytes, changes: Iterable[Change]) -> None:
    """Note in a commit's directory what it is about to change; nobody waits for the disk.

    Raises:
        OSError: it cannot be written.
    """
    write_new(directory, _NAME, msgspec.json.encode(counts(changes)), durable=False)


def read_counts(directory: bytes) -> Mapping[str, int] | None:
    """Return how many changes of each kind a commit made, by letter; None if that is not known: an
    earlier version made it, or the note is lost.
    """
    try:
        found = msgspec.json.decode(read_plain(os.path.join(directory, _NAME), _MOST_BYTES), type=dict[str, int])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return {kind.value: max(0, found.get(kind.value, 0)) for kind in Kind}
