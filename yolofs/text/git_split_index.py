"""What a split index of git's adds to the index that it shares with others.

With ``core.splitIndex``, most entries lie in a file ``sharedindex.HASH`` beside the index.  The
index has an extension ``link`` (gitformat-index(5)): the hash of that file; which of its entries
are gone; and which have others in their place.  These come first in the index, without a name.  The
two sets are bitmaps in the form of EWAH, as gitformat-bitmap(5) says.

Anybody may have written one: what is odd in any way raises :class:`OddLinkError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

LINK: Final = b"link"
"""The name of the extension."""
NAME: Final = b"sharedindex."
"""How the name of the file begins that has the other entries."""
_HEADER = struct.Struct(">II")
_WORD = struct.Struct(">Q")
_WORD_BITS = 64
_RUN_BITS = 32


def is_shared_part(path: bytes) -> bool:
    """Tell from its path whether a file may be the shared part of indexes."""
    return path.rpartition(b"/")[2].startswith(NAME)


class OddLinkError(Exception):
    """It is not what git writes."""


class SharedPart(msgspec.Struct, frozen=True):
    """What the extension says."""

    hash: bytes
    """Of the file with the other entries."""
    removed: frozenset[int]
    """Which of them are gone, by their place from 0."""
    replaced: tuple[int, ...]
    """Which of them have others in their place, in order."""


def read_link(data: bytes, hash_bytes: int, most: int) -> SharedPart:
    """Return what the extension says; there are at most ``most`` entries.

    Raises:
        OddLinkError: it is no such extension, or one about more entries.
    """
    if len(data) == hash_bytes:
        return SharedPart(data, frozenset(), ())
    removed, at = _places(data, hash_bytes, most)
    replaced, at = _places(data, at, most)
    if at != len(data):
        raise OddLinkError
    return SharedPart(data[:hash_bytes], frozenset(removed), tuple(replaced))


def _places(data: bytes, at: int, most: int) -> tuple[list[int], int]:
    """Return the numbers in a bitmap, and where it ends."""
    if len(data) < at + _HEADER.size:
        raise OddLinkError
    _, count = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    end = at + count * _WORD.size + 4
    if end > len(data):
        raise OddLinkError
    words = struct.unpack_from(f">{count}Q", data, at)
    return list(_numbers(words, most)), end


def _numbers(words: tuple[int, ...], most: int) -> Iterator[int]:
    at = place = 0
    while at < len(words):
        marker = words[at]
        length = (marker >> 1) & ((1 << _RUN_BITS) - 1)
        if marker & 1:
            if place + length * _WORD_BITS > most:
                raise OddLinkError
            yield from range(place, place + length * _WORD_BITS)
        place += length * _WORD_BITS
        literals = marker >> (1 + _RUN_BITS)
        if literals > len(words) - at - 1:
            raise OddLinkError
        for word in words[at + 1 : at + 1 + literals]:
            for bit in range(_WORD_BITS) if word else ():
                if word >> bit & 1:
                    if place + bit >= most:
                        raise OddLinkError
                    yield place + bit
            place += _WORD_BITS
        at += 1 + literals
