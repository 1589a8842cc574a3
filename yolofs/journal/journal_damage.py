"""Describes the damage of a journal: its place, the fate of the lines there, and the lines after it
that can be kept.

No request comes here: all of it reads the journal again, to describe damage or to repair it.
"""

from __future__ import annotations

import os

import msgspec

from yolofs.errors import JournalError
from yolofs.journal.checksums import has_right_checksum, stamp_of
from yolofs.journal.codec import decode
from yolofs.journal.cuts import line_count
from yolofs.journal.header import JournalForm
from yolofs.journal.journal_file import read_lines, read_tail

MOST_MISSING = 4096
"""How many more lines than the file has may be missing from it.  With a larger number, a changed
line would more often be taken for one in the wrong place: for each line the chance is one in 2**32.
"""


class Damage(msgspec.Struct, frozen=True):
    """Where a journal stops being readable, and why."""

    offset_bytes: int
    """Where the bad line starts; all before it is good."""
    line_number: int
    """Of the bad line; line 1 is the header."""
    cut_bytes: int
    """How much a repair cuts: the bad line and all after it."""
    reason: str
    cut_lines: int = 1
    """How many lines that is, the last of them perhaps not whole."""
    is_torn: bool = False
    """It is no damage but a torn tail, which the next writer cuts by itself."""
    generations: tuple[int, ...] = ()
    """Which generations cannot be shown, where the present one can: then a repair takes out only
    what is left of a segment.
    """

    @property
    def end_bytes(self) -> int:
        """Where what a repair cuts ends."""
        return self.offset_bytes + self.cut_bytes


def number_of(line: bytes, form: JournalForm, most: int) -> int | None:
    """Return which record of a journal ``line`` is, wherever it stands; None if it is none of the
    first ``most``.
    """
    if not form.step:
        return None
    stamp = stamp_of(line)
    number = stamp - form.key if stamp is not None else 0
    return number if 1 <= number <= most else None


def is_misplaced(line: bytes, form: JournalForm, number: int) -> bool:
    """Tell whether ``line``, which is not record ``number`` and the last of its file, is another
    record of the journal.

    Then it is no torn tail: lines before it are missing, or it is there twice.
    """
    return number_of(line, form, number + MOST_MISSING) is not None


def find(fd: int, form: JournalForm) -> Damage | None:
    """Decode every line; return where the first bad one is, None if there is none."""
    file_size = os.fstat(fd).st_size
    offset, number = form.header_bytes, 1
    for lines in read_lines(fd, offset, file_size):
        for line in lines:
            end = offset + len(line) + 1
            try:
                decode(line, form.stamp(number))
            except JournalError as error:
                is_wrong = not has_right_checksum(line, form.stamp(number))
                reason = explain(fd, form, offset, number) if is_wrong else error.message
                is_torn = is_wrong and end == file_size and not is_misplaced(line, form, number)
                return damage_at(fd, offset, number, reason, is_torn=is_torn)
            offset, number = end, number + 1
    return None if offset == file_size else damage_at(fd, offset, number, "the line is cut", is_torn=True)


def damage_at(
    fd: int,
    offset: int,
    number: int,
    reason: str,
    *,
    is_torn: bool = False,
    end: int | None = None,
    generations: tuple[int, ...] = (),
) -> Damage:
    """Return what a cut before record ``number``, which stands at ``offset``, takes off, up to
    ``end`` or all.
    """
    tail = read_tail(fd, offset)[: None if end is None else end - offset]
    return Damage(offset, number + 1, len(tail), reason, line_count(tail), is_torn, generations)


def explain(fd: int, form: JournalForm, offset: int, number: int) -> str:
    """Return, as a clause, what is wrong with the line at ``offset``, where record ``number``
    should stand.
    """
    lines = read_tail(fd, offset).split(b"\n")
    found = number_of(lines[0], form, number + len(lines) + MOST_MISSING)
    if found is None:
        zeros = lines[0].count(b"\0")
        holds = f": it holds {zeros} zero bytes, as a power failure leaves them" if zeros else ""
        return f"the checksum does not match{holds}"
    if found < number:
        return f"it is there twice, and is line {found + 1}"
    later = {number_of(line, form, found) for line in lines[1:]}
    missing = [one for one in range(number, found) if one not in later]
    if not missing:
        return f"it should be line {found + 1}: lines have changed places"
    what = "a line before it is missing" if len(missing) == 1 else f"{len(missing)} lines before it are missing"
    return f"it should be line {found + 1}: {what}"
