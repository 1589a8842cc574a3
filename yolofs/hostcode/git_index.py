"""Git's index: what it names, and whether ``git checkout`` writes that into the work tree alone.

Git checks names when it puts them into the index, not when it takes them out.  If something else
wrote the index, it may name ``.git/hooks/pre-commit``, or a path outside of the work tree, and
``git checkout .`` or ``git stash`` writes there.
"""

from __future__ import annotations

import contextlib
from typing import Final

from yolofs.text.git_index_format import OddIndexError, entries

MOST_BYTES: Final = 1 << 27
"""What is longer is not looked at, and so is not harmless."""
_MOST_NAME_BYTES = MOST_BYTES
"""Of all names together.  Version 4 tells a name by what it shares with the one before: gigabytes
of them may be in an index that is smaller than this.
"""
_HASH_BYTES = (20, 32)
_NAMES_OUT = frozenset({b"", b".", b"..", b".git"})


def names(data: bytes) -> list[bytes] | None:
    """Return the names that an index has, in its order, None if it is odd: no path has a zero byte.

    A directory of a sparse index ends in a slash.
    """
    for hash_bytes in _HASH_BYTES:
        with contextlib.suppress(OddIndexError):
            return _paths(data[:-hash_bytes], hash_bytes)
    return None


def _paths(data: bytes, hash_bytes: int) -> list[bytes]:
    found, left = [], _MOST_NAME_BYTES
    for entry in entries(data, hash_bytes):
        left -= len(entry.name)
        if left < 0 or b"\0" in entry.name:
            raise OddIndexError
        found.append(entry.name)
    return found


def is_harmless(data: bytes, hash_bytes: int) -> bool:
    """Tell whether an index names nothing in a directory ``.git`` and nothing outside of the work
    tree.

    ``hash_bytes``: how long the repository's hashes are.
    """
    try:
        return not any(b"\0" in entry.name or leads_out(entry.name) for entry in entries(data, hash_bytes))
    except OddIndexError:
        return False


def leads_out(name: bytes) -> bool:
    """Tell whether a name lies outside of the work tree, or in a directory ``.git``."""
    # A directory of a sparse index ends in a slash; of a split index some entries have no name.
    plain = name[:-1] if name.endswith(b"/") else name
    if b".git" not in plain and b"." not in plain and b"//" not in plain:
        return plain[:1] == b"/"
    return not _NAMES_OUT.isdisjoint(plain.lower().split(b"/"))
