"""What the user tells the agent about dropped changes.  It is kept in the session, which programs
in a view cannot reach.

One JSON object a line, only ever added to: an item, that an item was withdrawn, or that all up to
one have been told.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from yolofs.system.clock import coarse_clock_ns
from yolofs.system.plain_files import is_there, open_plain

NAME = b"feedback"
MOST_LINES = 40
"""How many changed lines of one thing are kept; the number of the others is told."""
MOST_LINE_BYTES = 500
MOST_THINGS = 50
MOST_NOTE_CHARS = 500
_MOST_BYTES = 4 << 20
"""With more than this in the file, what has been told is forgotten."""


class Dropped(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was dropped."""

    path: bytes
    """Relative to base."""
    kind: str
    """What it was about: the word of a kind of hunk."""
    lines: tuple[bytes, ...] = ()
    """The changed lines that are gone, with ``-`` or ``+`` before each, without line ends."""
    more_lines: int = 0
    """How many there were besides."""
    old_path: bytes | None = None


class Item(msgspec.Struct, frozen=True, omit_defaults=True, tag="item"):
    """What was dropped at a time."""

    number: int
    time_ns: int
    things: tuple[Dropped, ...]
    note: str = ""
    more_things: int = 0


class WithdrawnItem(msgspec.Struct, frozen=True, tag="withdrawn"):
    """An item does not hold any more."""

    number: int


class ToldItems(msgspec.Struct, frozen=True, tag="told"):
    """All items up to this one have been told to an agent."""

    number: int


class Feedback(msgspec.Struct, frozen=True):
    """All that the user has told."""

    items: tuple[Item, ...] = ()
    """Oldest first."""
    told: int = 0
    """The last one that was told to an agent."""

    @property
    def new(self) -> tuple[Item, ...]:
        """Return what was not told yet."""
        return tuple(item for item in self.items if item.number > self.told)


def read(directory: bytes) -> Feedback:
    """Return what the user has told in the session in ``directory``; blocks while it is read.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with open(open_plain(_path(directory), os.O_RDONLY), "rb") as file:
            return _read(file.read(_MOST_BYTES * 2))
    except FileNotFoundError:
        return Feedback()


def add(directory: bytes, things: Sequence[Dropped], note: str) -> int:
    """Keep an item, durably, and return its number.

    Raises:
        OSError: it cannot be written.
    """
    with _open(directory) as (fd, known):
        number = max(known.told, *(item.number for item in known.items), 0) + 1
        kept = tuple(things[:MOST_THINGS])
        item = Item(number, coarse_clock_ns(), kept, note[:MOST_NOTE_CHARS], len(things) - len(kept))
        if os.fstat(fd).st_size > _MOST_BYTES:
            os.ftruncate(fd, 0)
            _write(fd, *known.new, ToldItems(known.told))
        _write(fd, item)
        os.fsync(fd)
        return number


def withdraw(directory: bytes, number: int) -> None:
    """Withdraw an item: agents are not told of it from now on.

    Raises:
        OSError: it cannot be written.
    """
    with _open(directory) as (fd, _):
        _write(fd, WithdrawnItem(number))


def take_new(directory: bytes) -> tuple[Item, ...]:
    """Return what was not told yet; from now on it has been.

    Raises:
        OSError: it cannot be read or written.
    """
    if not is_there(_path(directory)):
        return ()
    with _open(directory) as (fd, known):
        new = known.new
        if new:
            _write(fd, ToldItems(new[-1].number))
        return new


def _path(directory: bytes) -> bytes:
    return os.path.join(directory, NAME)


@contextmanager
def _open(directory: bytes) -> Iterator[tuple[int, Feedback]]:
    """Give the file, to be added to by one at a time, and what is in it."""
    fd = open_plain(_path(directory), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd, _read(os.pread(fd, _MOST_BYTES * 2, 0))
    finally:
        os.close(fd)


def _read(data: bytes) -> Feedback:
    items: dict[int, Item] = {}
    told = 0
    for line in data.split(b"\n"):
        try:
            record = msgspec.json.decode(line, type=Item | WithdrawnItem | ToldItems)
        except (msgspec.DecodeError, UnicodeDecodeError):  # a crash has torn it off
            continue
        match record:
            case Item():
                items[record.number] = record
            case WithdrawnItem():
                items.pop(record.number, None)
            case ToldItems():
                told = max(told, record.number)
    return Feedback(tuple(items.values()), told)


def _write(fd: int, *records: Item | WithdrawnItem | ToldItems) -> None:
    data = b"".join(b"\n" + msgspec.json.encode(record) + b"\n" for record in records)
    if os.write(fd, data) < len(data):  # the file has a line that nobody can read, which readers leave out
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
