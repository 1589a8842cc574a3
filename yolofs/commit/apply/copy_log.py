"""Which copies a commit has made on another device or mount, and of what: ``commits/N/copied``.

There is a line for each thing that was copied, and for each in a directory that was.  It has
device, inode number, time of birth and number of names of the thing, then device, inode number and
time of birth of its copy.  A copy has another inode number than what it is a copy of.  So without
this an undo of an earlier commit would take it for something of the host's.  The thing is deleted,
and the disk may give its number to something else.  The time of birth tells the two apart (0 where
that does not last).

Of a file in a directory no step tells what it was when it came.  If it had several names the line
also has size, mtime, mode and owner of the copy: an undo makes it a link again only if nobody has
changed it since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from yolofs.commit.apply.ready import Looks
from yolofs.system import syscalls
from yolofs.system.plain_files import open_plain, read_note

_NAME = b"copied"
_MOST_BYTES = 1 << 30
FileNumbers: TypeAlias = tuple[int, int]
"""Which file it is: device and inode number."""


class ObjectByDevice(NamedTuple):
    """Something on a disk."""

    file: FileNumbers
    birth_ns: int
    """0 if nobody knows."""

    @classmethod
    def at(cls, path: bytes, st: os.stat_result, known: dict[bytes, bool] | None = None) -> ObjectByDevice:
        """Return what is at a path, of which ``st`` is known; ``known`` as for
        :func:`yolofs.system.syscalls.look`.

        Raises:
            OSError: it cannot be looked at.
        """
        return cls((st.st_dev, st.st_ino), syscalls.look(path, known).lasting_birth_ns or 0)


class Copied(NamedTuple):
    """A copy, and what it is one of."""

    was: ObjectByDevice
    links: int
    """How many names it had."""
    now: ObjectByDevice
    looks: Looks | None = None
    """What the copy was when it was made, if that is noted."""


_is_number = re.compile(rb"-?[0-9]+").fullmatch
"""Times before 1970 are negative."""


def add(directory: bytes, copies: Sequence[Copied], *, durable: bool) -> None:
    """Note in a commit's directory what copies were made.

    A line that a crash has cut off goes: what follows it would be read as the rest of it.

    Raises:
        OSError: it cannot be written, or what is there not be read.
    """
    if not copies:
        return
    numbers = (
        (*was.file, was.birth_ns, links, *now.file, now.birth_ns, *(looks or ())) for was, links, now, looks in copies
    )
    text = b"".join(b" ".join(map(b"%d".__mod__, one)) + b"\n" for one in numbers)
    path = os.path.join(directory, _NAME)
    fd = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with os.fdopen(fd, "ab") as file:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.ftruncate(fd, (read_note(path, _MOST_BYTES) or b"").rfind(b"\n") + 1)
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
        if len(words) in (7, 12) and all(map(_is_number, words)):
            device, inode, birth_ns, links, *now = map(int, words)
            copy = ObjectByDevice((now[0], now[1]), now[2])
            looks = (now[3], now[4], now[5], now[6], now[7]) if len(words) == 12 else None
            found.append(Copied(ObjectByDevice((device, inode), birth_ns), links, copy, looks))
    return found
