"""What a commit replaces although the host has changed it: ``forced`` in its directory, a JSON list
of files, each with its disk and its inode number; inode numbers alone in notes of earlier versions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from yolofs.commit.apply.commit_directory import write_new
from yolofs.system.disks import FilesOnDisks, OnDisk
from yolofs.system.plain_files import is_there, read_plain

_NAME = b"forced"
_MOST_BYTES = 1 << 30


def write_forced(directory: bytes, files: Iterable[OnDisk]) -> None:
    """Note, durably, which files the commit in a directory is about to replace.

    Raises:
        OSError: it cannot be written.
    """
    write_new(directory, _NAME, msgspec.json.encode(sorted(set(files))))


def read_forced(directory: bytes) -> FilesOnDisks | None:
    """Return what :func:`write_forced` noted; None if that is damaged, and could have been any.

    Raises:
        OSError: it cannot be read.
    """
    path = os.path.join(directory, _NAME)
    if not is_there(path):
        return FilesOnDisks()
    try:
        noted = msgspec.json.decode(read_plain(path, _MOST_BYTES), type=list[int | OnDisk])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return FilesOnDisks(OnDisk(None, one) if isinstance(one, int) else one for one in noted)
