"""Files that keep what was worked out once.  They may be deleted, and are not durable: what is
missing, damaged or of another form is worked out again.
"""

from __future__ import annotations

import os
from typing import TypeVar

import msgspec

from yolofs.system.plain_files import open_plain, read_plain

_Known = TypeVar("_Known")


def read_cache(path: bytes, kind: type[dict[int, _Known]], most_bytes: int) -> dict[int, _Known]:
    """Return what a file keeps; nothing if it cannot be used, or has more than ``most_bytes``."""
    try:
        return msgspec.msgpack.decode(read_plain(path, most_bytes), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def write_cache(path: bytes, known: dict[int, _Known]) -> None:
    """Replace what a file keeps.

    Raises:
        OSError: it cannot be written.
    """
    with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(msgspec.msgpack.encode(known))
    os.rename(path + b".new", path)
