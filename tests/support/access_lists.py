"""Access control lists, in the kernel's form."""

from __future__ import annotations

import struct

TAGS = {"user": 1, "alice": 2, "group": 4, "staff": 8, "mask": 16, "other": 32}


def acl(text: str) -> bytes:
    """Return the kernel's form of a list such as ``user:6 alice:4 group:0 mask:4 other:0``."""
    entries = [entry.split(":") for entry in text.split()]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", TAGS[tag], int(bits), 7) for tag, bits in entries)
