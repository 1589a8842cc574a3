"""What a commit could not set of times, modes, owners and extended attributes, or its taking back:
``commits/N/unset`` and ``commits/N/unset-back``.

There is a line for each path and what was tried there, in JSON.  It is written as soon as that is
found, so that a process that goes on after a kill tells it, too.  Nobody waits for it to be
durable; a torn line is passed over.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from yolofs.paths import RelPath
from yolofs.system.plain_files import open_plain, read_note

UNSET = b"unset"
UNSET_BACK = b"unset-back"
_MOST_BYTES = 1 << 30


class _Line(msgspec.Struct, array_like=True):
    path: bytes
    aspects: tuple[str, ...]


def add(directory: bytes, name: bytes, path: RelPath, aspects: tuple[str, ...]) -> None:
    """Note in a commit's directory what could not be set at a path.

    Where the disk is full, say, nothing is noted: a commit that could be finished or taken back is
    not to fail at this.
    """
    with contextlib.suppress(OSError):
        fd = open_plain(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            # on a line of its own, whatever a crash or a full disk has cut off before it
            os.write(fd, b"\n" + msgspec.json.encode(_Line(path, aspects)) + b"\n")
        finally:
            os.close(fd)


def read(directory: bytes, name: bytes) -> dict[RelPath, tuple[str, ...]]:
    """Return what was noted in a commit's directory.

    Raises:
        OSError: it cannot be read.
    """
    found: dict[RelPath, tuple[str, ...]] = {}
    for text in (read_note(os.path.join(directory, name), _MOST_BYTES) or b"").split(b"\n"):
        try:
            line = msgspec.json.decode(text, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        path = RelPath(line.path)
        found[path] = tuple(dict.fromkeys(found.get(path, ()) + line.aspects))
    return found
