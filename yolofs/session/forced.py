"""What a commit replaces although the host has changed it: ``forced`` in its directory, a JSON list
of inode numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from yolofs.commit.apply.commit_directory import write_new
from yolofs.system.plain_files import is_there, read_plain

_NAME = b"forced"
_MOST_BYTES = 1 << 30


def write_forced(directory: bytes, inodes: Iterable[int]) -> None:
    """Note, durably, the inode numbers of what the commit in a directory is about to replace.

    Raises:
        OSError: it cannot be written.
    """
    write_new(directory, _NAME, msgspec.json.encode(sorted(inodes)))


def read_forced(directory: bytes) -> frozenset[int] | None:
    """Return what :func:`write_forced` noted; None if that is damaged, and could have been any.

    Raises:
        OSError: it cannot be read.
    """
    path = os.path.join(directory, _NAME)
    if not is_there(path):
        return frozenset()
    try:
        return msgspec.json.decode(read_plain(path, _MOST_BYTES), type=frozenset[int])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
