"""What a journal has lost at its end, a torn tail or whole lines: noted in ``journal.cuts``, so
that it is told.

A note is one JSON object a line.  Its key tells which journal it is about.  It no longer counts
when that journal has ended, or when the user has acknowledged it (:func:`forget`) or removed what
was kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from yolofs.paths import display
from yolofs.system.clock import coarse_clock_ns
from yolofs.system.plain_files import is_there, open_plain
from yolofs.text.enumeration import some_of

CUTS_SUFFIX = b".cuts"
TORN_SUFFIX = b".torn"
ACKNOWLEDGE = "yolofs doctor --acknowledge"
_MOST_NAMED = 10
"""How many generations are named."""
_MOST_BYTES = 1 << 20
"""How much of the notes is read; each has some hundred bytes."""


class Cut(msgspec.Struct, frozen=True):
    """A torn tail that was moved to ``journal.torn``, or lines that were missing."""

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
    is_missing: bool = False
    """The lines were not there any more, and nothing of them could be kept."""
    lost: int = 0
    """In which directory below ``lost`` the staged files are that only those lines had named, 0 if
    there were none.
    """

    @classmethod
    def now(cls, key: int, line: int, offset: int, tail: bytes) -> Cut:
        """Return the note of a cut that is about to be made."""
        return cls(key, line, offset, len(tail), line_count(tail), coarse_clock_ns())

    @classmethod
    def missing(cls, key: int, line: int, offset: int, records: int, lost: int) -> Cut:
        """Return the note of lines that were missing."""
        return cls(key, line, offset, 0, records, coarse_clock_ns(), is_missing=True, lost=lost)

    def encode(self) -> bytes:
        """Return the note as one line."""
        return msgspec.json.encode(self) + b"\n"

    def kept_in(self, journal: bytes) -> bytes:
        """Return where what was kept lies, empty if nothing could be."""
        if not self.is_missing:
            return journal + TORN_SUFFIX
        return os.path.join(os.path.dirname(journal), b"lost", b"%d" % self.lost) if self.lost else b""


def line_count(tail: bytes) -> int:
    """Return how many lines there are, the last of which need not be whole."""
    return tail.count(b"\n") + (not tail.endswith(b"\n"))


def read(journal: bytes, key: int) -> list[Cut]:
    """Return what the journal at a path, which has this key, has lost and is to be told; the oldest
    first.
    """
    try:
        with open(open_plain(journal + CUTS_SUFFIX, os.O_RDONLY), "rb") as file:
            lines = file.read(_MOST_BYTES).split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):  # half a line, which a crash has left
            cut = msgspec.json.decode(line, type=Cut)
            kept = cut.kept_in(journal)
            if cut.key == key and (not kept or is_there(kept)):
                found.append(cut)
    return found


def forget(journal: bytes) -> None:
    """Have nothing told any more of what the journal at a path has lost; what was kept stays.

    Raises:
        OSError: the notes cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(journal + CUTS_SUFFIX)


def amount(size: int, records: int) -> str:
    """Say how much a torn tail is."""
    return f"{size} byte{'s' if size != 1 else ''} ({record_text(records)})"


def record_text(count: int) -> str:
    """Say how many records (changes and snapshots) there are."""
    return f"{count} record{'s' if count != 1 else ''}"


def message(cut: Cut, journal: bytes) -> str:
    """Say what was lost, and where the rest of it is kept."""
    if cut.is_missing:
        kept = cut.kept_in(journal)
        return missing_clause(cut.record_count, cut.line_number) + (
            f"; the staged files that only they named lie in {display(kept)}, by numbers instead of names"
            if kept
            else ""
        )
    what = amount(cut.size_bytes, cut.record_count)
    return (
        f"the journal's tail was torn, as a crash leaves it: {what} from line {cut.line_number} "
        f"(byte {cut.offset_bytes}) on are not in the view, and lie in {display(journal + TORN_SUFFIX)}"
    )


def missing_clause(records: int, line: int) -> str:
    """Say that whole lines are missing at a journal's end, the first of which stood on ``line``."""
    are = "is" if records == 1 else "are"
    return f"{record_text(records)} {are} missing at the journal's end, from line {line} on, and not in the view"


def missing_sentence(records: int, line: int) -> str:
    """Say that whole lines are missing, before a writer has kept what only they named."""
    return (
        f"{missing_clause(records, line)}; put the journal back from a copy, if there is one, before the next "
        "`yolofs mount`, which goes on without them and keeps in lost/ the staged files that only they named"
    )


def unshown_clause(generations: Sequence[int]) -> str:
    """Say which generations come from a bad line, if the present one does not; "" if there are
    none.
    """
    if not generations:
        return ""
    which = some_of([str(number) for number in generations], _MOST_NAMED)
    plural = "s" if len(generations) > 1 else ""
    return f"; the view does not come from it, but no travel leads to generation{plural} {which} any more"


TORN_NEXT = "the next `yolofs mount` moves them to journal.torn"
"""What becomes of a torn tail."""


def torn_message(offset: int, line: int, size: int, records: int = 1) -> str:
    """Say that there is a torn tail, which nobody has cut yet; by all rules it is one line."""
    return (
        f"the journal's tail is torn, as a crash leaves it: {amount(size, records)} from line {line} (byte {offset}) "
        "on are not in the view"
    )


def advice() -> str:
    """Say what the user does about it."""
    return f"see by `yolofs diff` whether the last changes are there, then: {ACKNOWLEDGE}"


def sentence(cut: Cut, journal: bytes) -> str:
    """Say how much was lost, where the rest is kept, and how to go on."""
    return f"{message(cut, journal)}; {advice()}"
