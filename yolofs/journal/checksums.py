"""A line's checksum, which also ties the line to its place in one journal."""

from __future__ import annotations

import re
from zlib import crc32

_is_closing = re.compile(rb" #([0-9a-f]{8})").fullmatch


def with_checksum(body: bytes, stamp: int = 0) -> bytes:
    """Return the line whose fields are ``body``: with its checksum and a newline."""
    return b"%b #%08x\n" % (body, crc32(b" ", crc32(body)) ^ stamp)


def has_right_checksum(line: bytes, stamp: int = 0) -> bool:
    """Tell whether ``line``, without its newline, ends in the right checksum."""
    return line.endswith(b" #%08x" % (crc32(line[:-9]) ^ stamp))


def stamp_of(line: bytes) -> int | None:
    """Return the stamp with which ``line``, without its newline, would be right; None if it ends
    in no checksum.
    """
    found = _is_closing(line[-10:])
    return None if found is None else int(found[1], 16) ^ crc32(line[:-9])
