"""Git's index: whether ``git checkout`` writes what it names into the work tree alone.

Git checks names as it puts them into the index, and not as it takes them out: an index that something else has written
may name ``.git/hooks/pre-commit``, or a path out of the work tree, and ``git checkout .`` or ``git stash`` writes it.
The format is that of gitformat-index(5), versions 2 to 4, read as git's ``read-cache.c`` reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

MOST_BYTES: Final = 1 << 27
"""What is longer is not looked at, and so is not harmless."""
_SIGNATURE = b"DIRC"
_HEADER = struct.Struct(">4sII")
_STAT_BYTES = 40
_LENGTH = 0xFFF
_EXTENDED = 0x4000
_MOST_ENTRIES = 10_000_000
_NAMES_OUT = frozenset({b"", b".", b"..", b".git"})


class _OddError(Exception):
    """It is not what git writes."""


def is_harmless(data: bytes, hash_bytes: int) -> bool:
    """Tell whether an index names nothing in a directory ``.git`` and nothing outside of the work tree.

    ``hash_bytes``: how long the repository's hashes are.
    """
    try:
        return not any(b"\0" in name or _leads_out(name) for name in _names(data, hash_bytes))
    except _OddError:
        return False


def _leads_out(name: bytes) -> bool:
    # A directory of a sparse index ends in a slash; of a split index some entries have no name.
    plain = name[:-1] if name.endswith(b"/") else name
    if b".git" not in plain and b"." not in plain and b"//" not in plain:
        return plain[:1] == b"/"
    return not _NAMES_OUT.isdisjoint(plain.lower().split(b"/"))


def _names(data: bytes, hash_bytes: int) -> Iterator[bytes]:
    """Yield the names of all entries.

    Raises:
        _OddError: it is no index with hashes of that size, or not to its end.
    """
    if len(data) < _HEADER.size:
        raise _OddError
    signature, version, count = _HEADER.unpack_from(data)
    if signature != _SIGNATURE or version not in (2, 3, 4) or count > _MOST_ENTRIES:
        raise _OddError
    at, last, name = _HEADER.size, len(data), b""
    flags_at = _STAT_BYTES + hash_bytes
    for _ in range(count):
        start = at + flags_at + 2
        if start > last:
            raise _OddError
        flags = (data[at + flags_at] << 8) | data[at + flags_at + 1]
        if flags & _EXTENDED:
            start += 2
        if version == 4:
            cut, start = _number(data, start)
            if cut > len(name):
                raise _OddError
            end = _end(data, start)
            name = name[: len(name) - cut] + data[start:end]
            at = end + 1
        else:
            length = flags & _LENGTH
            end = _end(data, start) if length == _LENGTH else start + length
            if end >= last or data[end]:
                raise _OddError
            name = data[start:end]
            at += (end - at + 8) // 8 * 8
        yield name


def _end(data: bytes, start: int) -> int:
    end = data.find(b"\0", start)
    if end < 0:
        raise _OddError
    return end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that git has written as in its packs (offsets of deltas), and where it ends."""
    value = -1
    while True:
        if at >= len(data) or value > len(data):
            raise _OddError
        byte = data[at]
        at += 1
        value = ((value + 1) << 7) | (byte & 0x7F)
        if not byte & 0x80:
            return value, at
