"""Which thing of base each copy is that a commit has made on another device or mount:
``commits/N/copied``.

There is a line for each thing that was copied, and each in a directory that was: device, inode
number and number of names of the thing, then device and inode number of its copy.  A copy has
another inode number than what it is a copy of.  So without this an undo of an earlier commit would
take it for something of the host's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from yolofs.system.plain_files import open_plain, read_note

_NAME = b"copied"
_MOST_BYTES = 1 << 30
File: TypeAlias = tuple[int, int]
"""Which file it is: device and inode number."""


class Copied(NamedTuple):
    """A copy, and what it is one of."""

    was: File
    links: int
    """How many names it had."""
    now: File


def add(directory: bytes, copies: Sequence[Copied], *, durable: bool) -> None:
    """Note in a commit's directory what copies were made.

    Raises:
        OSError: it cannot be written.
    """
    if not copies:
        return
    text = b"".join(b"%d %d %d %d %d\n" % (*one.was, one.links, *one.now) for one in copies)
    fd = open_plain(os.path.join(directory, _NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with os.fdopen(fd, "ab") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(fd)


def read(directory: bytes) -> list[Copied]:
    """Return what was noted in a commit's directory; a line that a crash has cut off is left out.

    Raises:
        OSError: it cannot be read.
    """
    found: list[Copied] = []
    for line in (read_note(os.path.join(directory, _NAME), _MOST_BYTES) or b"").split(b"\n")[:-1]:
        words = line.split(b" ")
        if len(words) == 5 and all(map(bytes.isdigit, words)):
            device, inode, links, copy_device, copy_inode = map(int, words)
            found.append(Copied((device, inode), links, (copy_device, copy_inode)))
    return found
