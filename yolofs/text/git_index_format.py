"""The format of git's index, and whether two of them say the same.

The format is that of gitformat-index(5), versions 2 to 4, read as git's ``read-cache.c`` reads it.
Two say the same if they differ only in where entries lie in the file (``EOIE``, ``IEOT``), and in
what git keeps there so as not to read files again.  That is the attributes of files as they were
when it last looked (times, device, inode number, owner, size), what it knows of directories without
tracked files (``UNTR``), and what its file system monitor told (``FSMN``).  ``git status`` writes
these anew whenever something of them has changed.

Anybody may have written an index: what is odd in any way raises :class:`OddIndexError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import msgspec

SIGNATURE: Final = b"DIRC"
HEADER: Final = struct.Struct(">4sII")
_STAT_BYTES = 40
_MODE = slice(24, 28)
_LENGTH = 0xFFF
_EXTENDED = 0x4000
_MOST_ENTRIES = 10_000_000
_MOST_NAME_BYTES = 4096
"""No longer path can be opened.  Version 4 tells a name by what it shares with the one before: a
small file could hold gigabytes of them."""
_EXTENSION = struct.Struct(">4sI")
_CACHES = frozenset({b"UNTR", b"FSMN", b"EOIE", b"IEOT"})
_HASHES = (20, 32)
"""How long they may be: SHA-1, SHA-256."""


class OddIndexError(Exception):
    """It is not what git writes."""


class EntryPlace(msgspec.Struct, frozen=True):
    """Where an entry lies in an index."""

    name: bytes
    start: int
    name_start: int
    """The flags, of two or four bytes, end here."""
    end: int


def may_be_index(path: bytes, head: bytes) -> bool:
    """Tell from its path and its first bytes whether a file may be an index."""
    return path.rpartition(b"/")[2] == b"index" and head.startswith(SIGNATURE)


def entries(data: bytes, hash_bytes: int) -> Iterator[EntryPlace]:
    """Yield all entries; ``hash_bytes``: how long the repository's hashes are.

    Raises:
        OddIndexError: it is no index with hashes of that size, or not to its end.
    """
    if len(data) < HEADER.size:
        raise OddIndexError
    signature, version, count = HEADER.unpack_from(data)
    if signature != SIGNATURE or version not in (2, 3, 4) or count > _MOST_ENTRIES:
        raise OddIndexError
    at, last, name = HEADER.size, len(data), b""
    flags_at = _STAT_BYTES + hash_bytes
    for _ in range(count):
        entry, start = at, at + flags_at + 2
        if start > last:
            raise OddIndexError
        flags = (data[at + flags_at] << 8) | data[at + flags_at + 1]
        if flags & _EXTENDED:
            start += 2
        name_start = start
        if version == 4:
            cut, start = _number(data, start)
            if cut > len(name):
                raise OddIndexError
            end = _end(data, start)
            name = name[: len(name) - cut] + data[start:end]
            at = end + 1
        else:
            length = flags & _LENGTH
            end = _end(data, start) if length == _LENGTH else start + length
            if end >= last or data[end]:
                raise OddIndexError
            name = data[start:end]
            at += (end - at + 8) // 8 * 8
        if len(name) > _MOST_NAME_BYTES:
            raise OddIndexError
        yield EntryPlace(name, entry, name_start, at)


def is_same_but_for_caches(one: bytes, other: bytes) -> bool:
    """Tell whether two indexes say the same; what cannot be read to its last byte says nothing.

    The two may be of different versions.
    """
    return any(_is_same(one, other, hash_bytes) for hash_bytes in _HASHES)


def _is_same(one: bytes, other: bytes, hash_bytes: int) -> bool:
    try:
        said = zip_longest(_said(one, hash_bytes), _said(other, hash_bytes))
        return all(left == right for left, right in said)
    except OddIndexError:
        return False


def _said(data: bytes, hash_bytes: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield what an index says: of each entry its name, its mode with its hash, and its flags; then
    its extensions.

    Raises:
        OddIndexError: it is no index with hashes of that size, or its checksum is wrong.
    """
    body = _checked_end(data, hash_bytes)
    at = HEADER.size
    for entry in entries(data[:body], hash_bytes):
        start, name, name_start = entry.start, entry.name, entry.name_start
        if b"\0" in name:
            raise OddIndexError
        flags_at = start + _STAT_BYTES + hash_bytes
        flags = int.from_bytes(data[flags_at : flags_at + 2])
        further = data[flags_at + 2 : name_start] if flags & _EXTENDED else b"\0\0"
        kept_flags = (flags & ~_LENGTH & ~_EXTENDED).to_bytes(2) + further
        mode = data[start + _MODE.start : start + _MODE.stop]
        yield name, mode + data[start + _STAT_BYTES : flags_at], kept_flags
        at = entry.end
    while at < body:
        if at + _EXTENSION.size > body:
            raise OddIndexError
        kind, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        if at + size > body:
            raise OddIndexError
        if kind not in _CACHES:
            yield b"", kind, data[at : at + size]
        at += size
    if at != body:
        raise OddIndexError


def _checked_end(data: bytes, hash_bytes: int) -> int:
    """Return where the checksum begins, which git may have left out (``index.skipHash``)."""
    body = len(data) - hash_bytes
    if body < HEADER.size or data[body:] not in (bytes(hash_bytes), _hash(data[:body], hash_bytes)):
        raise OddIndexError
    return body


def _hash(data: bytes, hash_bytes: int) -> bytes:
    import hashlib  # takes long, and few commands compare indexes

    return (hashlib.sha1 if hash_bytes == 20 else hashlib.sha256)(data).digest()


def _end(data: bytes, start: int) -> int:
    end = data.find(b"\0", start)
    if end < 0:
        raise OddIndexError
    return end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that git has written as in its packs (offsets of deltas), and where it
    ends.
    """
    value = -1
    while True:
        if at >= len(data) or value > len(data):
            raise OddIndexError
        byte = data[at]
        at += 1
        value = ((value + 1) << 7) | (byte & 0x7F)
        if not byte & 0x80:
            return value, at
