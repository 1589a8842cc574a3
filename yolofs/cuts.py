"""What was cut off a journal because its tail was torn: noted beside it, in ``journal.cuts``, so that it is told.

A note is one JSON object a line.  It is about one journal, which its key tells, and is of no account any more when that
journal has ended, when the user has acknowledged it (:func:`forget`), or has taken away ``journal.torn``.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from yolofs.clock import coarse_clock_ns
from yolofs.paths import display
from yolofs.plain_files import open_plain

SUFFIX = b".cuts"
TORN_SUFFIX = b".torn"
ACKNOWLEDGE = "yolofs doctor --acknowledge"
_MOST_BYTES = 1 << 20
"""So much is read of the notes; each is some hundred bytes."""


class Cut(msgspec.Struct, frozen=True):
    """A torn tail that was moved to ``journal.torn``."""

    key: int
    """Of the journal; 0 for one of version 1."""
    line_number: int
    """Of the journal, on which the tail began."""
    offset_bytes: int
    """Where in the journal the tail began."""
    size_bytes: int
    record_count: int
    """How many lines they were, the last of them as a rule not whole."""
    time_ns: int

    @classmethod
    def now(cls, key: int, line: int, offset: int, tail: bytes) -> Cut:
        """Return the note of a cut that is about to be made."""
        return cls(key, line, offset, len(tail), line_count(tail), coarse_clock_ns())

    def encode(self) -> bytes:
        """Return the note as one line."""
        return msgspec.json.encode(self) + b"\n"


def line_count(tail: bytes) -> int:
    """Return how many lines there are, the last of which need not be whole."""
    return tail.count(b"\n") + (not tail.endswith(b"\n"))


def read(journal: bytes, key: int) -> list[Cut]:
    """Return what was cut off the journal at a path, which has this key, and is to be told; the oldest first."""
    if not os.path.lexists(journal + TORN_SUFFIX):
        return []
    try:
        with open(open_plain(journal + SUFFIX, os.O_RDONLY), "rb") as file:
            lines = file.read(_MOST_BYTES).split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):  # half a line, which a crash has left
            cut = msgspec.json.decode(line, type=Cut)
            if cut.key == key:
                found.append(cut)
    return found


def forget(journal: bytes) -> None:
    """Have nothing told any more of what was cut off the journal at a path; ``journal.torn`` stays.

    Raises:
        OSError: the notes cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(journal + SUFFIX)


def amount(size: int, records: int) -> str:
    """Say how much a torn tail is."""
    return f"{size} byte{'s' if size != 1 else ''} ({record_text(records)})"


def record_text(count: int) -> str:
    """Say how many records (changes and snapshots) there are."""
    return f"{count} record{'s' if count != 1 else ''}"


def message(cut: Cut, journal: bytes) -> str:
    """Say what was cut, and where it is."""
    what = amount(cut.size_bytes, cut.record_count)
    return (
        f"the journal's tail was torn, as a crash leaves it: {what} from line {cut.line_number} "
        f"(byte {cut.offset_bytes}) on are not in the view, and lie in {display(journal + TORN_SUFFIX)}"
    )


def torn_sentence(offset: int, line: int, size: int, records: int = 1) -> str:
    """Say that the next writer cuts a torn tail; by all rules it is one line."""
    return (
        f"the journal's tail is torn, as a crash leaves it: {amount(size, records)} from line {line} (byte {offset}) "
        "on are not in the view; the next `yolofs mount` moves them to journal.torn"
    )


def advice() -> str:
    """Say what the user does about it."""
    return f"see by `yolofs diff` whether the last changes are there, then: {ACKNOWLEDGE}"


def sentence(cut: Cut, journal: bytes) -> str:
    """Say what was cut, where it is, and what the user does about it."""
    return f"{message(cut, journal)}; {advice()}"
