"""The format of git's index, and whether two of them say the same.

The format is that of gitformat-index(5), versions 2 to 4, read as git's ``read-cache.c`` reads it.
Two say the same if they differ only in where entries lie in the file (``EOIE``, ``IEOT``), and in
what git keeps there so as not to read files again.  That is the attributes of files as they were
when it last looked (times, device, inode number, owner, size), what it knows of directories without
tracked files (``UNTR``), and what its file system monitor told (``FSMN``).  ``git status`` writes
these anew whenever something of them has changed.

With a split index, what is compared is the whole of it, with the entries of its shared part
(:mod:`yolofs.text.git_split_index`).

Anybody may have written an index: what is odd in any way raises :class:`OddIndexError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Final, TypeAlias

import msgspec

from yolofs.text.git_split_index import LINK, OddLinkError, SharedPart, read_link

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
_Said: TypeAlias = tuple[bytes, bytes, bytes]
"""An entry: its name, its mode with its hash, its flags.  Or an extension: nothing, its kind, its
content.
"""
_HASHES = (20, 32)
"""How long they may be: SHA-1, SHA-256."""


SharedOf: TypeAlias = Callable[[bytes], bytes]
"""Returns the content of the shared part with a hash, nothing if it cannot be had."""


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


def is_same_but_for_caches(one: bytes, other: bytes, shared_of: SharedOf = lambda _: b"") -> bool:
    """Tell whether two indexes say the same; what cannot be read to its last byte says nothing.

    The two may be of different versions.  ``shared_of`` finds the shared part of one that is split.
    """
    return any(_is_same(one, other, hash_bytes, shared_of) for hash_bytes in _HASHES)


def _is_same(one: bytes, other: bytes, hash_bytes: int, shared_of: SharedOf) -> bool:
    try:
        said = zip_longest(_said(one, hash_bytes, shared_of), _said(other, hash_bytes, shared_of))
        return all(left == right for left, right in said)
    except (OddIndexError, OddLinkError):
        return False


def _said(data: bytes, hash_bytes: int, shared_of: SharedOf) -> Iterator[_Said]:
    """Yield what an index says, with the entries of its shared part.

    Raises:
        OddIndexError, OddLinkError: it or its shared part is no index with hashes of that size.
    """
    content = data[HEADER.size : -hash_bytes]
    if LINK not in content:
        yield from _said_alone(data, hash_bytes)
        return
    said = list(_said_alone(data, hash_bytes))
    links = [text for name, kind, text in said if not name and kind == LINK]
    if not links:
        yield from said
        return
    own = [one for one in said if len(one[1]) != len(LINK)]
    further = [one for one in said if len(one[1]) == len(LINK) and one[1] != LINK]
    if links != [bytes(hash_bytes)]:
        shared = shared_of(links[0][:hash_bytes])
        if shared[-hash_bytes:] != links[0][:hash_bytes]:
            raise OddIndexError
        in_shared = list(_said_alone(shared, hash_bytes))
        if any(not name for name, _, _ in in_shared):  # it has extensions, or is split itself
            raise OddIndexError
        own = _put_together(own, in_shared, read_link(links[0], hash_bytes, len(in_shared)))
    yield from own
    yield from further


def _put_together(own: list[_Said], shared: list[_Said], part: SharedPart) -> list[_Said]:
    """Return the entries of a split index with those of its shared part, as git sorts them."""
    if len(part.replaced) > len(own):
        raise OddIndexError
    for place, (name, mode, flags) in zip(part.replaced, own, strict=False):
        if name:
            raise OddIndexError
        shared[place] = shared[place][0], mode, flags
    kept = [one for place, one in enumerate(shared) if place not in part.removed]
    found = {(name, _stage(flags)): (name, mode, flags) for name, mode, flags in kept}
    for name, mode, flags in own[len(part.replaced) :]:
        if not name:
            raise OddIndexError
        found[name, _stage(flags)] = name, mode, flags
    return [found[key] for key in sorted(found)]


def _stage(flags: bytes) -> int:
    return flags[0] >> 4 & 3


def _said_alone(data: bytes, hash_bytes: int) -> Iterator[_Said]:
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
