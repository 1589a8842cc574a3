"""Repairs a damaged journal by taking out its bad lines alone, for who would rather have the rest than nothing of it.

What is left out is not known then, so nothing of this happens unasked; and a rest that contradicts itself, or that
might mean something else now, is refused.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from yolofs import journal_damage, journal_file
from yolofs.errors import JournalError
from yolofs.journal import Journal
from yolofs.journal_codec import Form, decode, is_sealed, seal
from yolofs.journal_damage import Damage
from yolofs.paths import display
from yolofs.records import Snapshot, Travel
from yolofs.timeline import Timeline
from yolofs.tree import Tree

_HINT = "yolofs doctor --repair cuts the journal there instead"


class Rest(NamedTuple):
    """What comes after damage and can be kept."""

    bodies: list[bytes]
    """Lines without their checksums, in the order in which they were written."""
    left_out: int
    """How many lines of the file are not among them: changed, cut, of another journal, there twice."""
    missing: int
    """How many records there are between them that the file does not have; 0 in version 1, where that does not show."""


def find_rest(path: bytes, damage: Damage) -> Rest:
    """Return what can be kept of a journal from its damage on.

    Raises:
        JournalError: it might mean something else now: a travel in it leads to a generation by its number, and
            markers may be missing before it.
        OSError: it cannot be read.
    """
    form = Journal.form_of(path)
    lines = _tail(path, damage.offset_bytes).split(b"\n")
    whole = lines[:-1]  # what follows the last newline is cut, or nothing
    first = damage.line_number - 1
    numbered = _by_number(whole, form, first) if form.step else dict(enumerate(filter(is_sealed, whole), first))
    kept = {number: line for number, line in sorted(numbered.items()) if _can_be_read(line, form, number)}
    missing = max(kept, default=first - 1) + 1 - first - len(kept) if form.step else 0
    left_out = len(whole) - len(kept) + bool(lines[-1])
    lacks_any = missing > 0 if form.step else left_out > 0
    at_gap = first if not form.step else next((one for one in range(first, max(kept, default=0)) if one not in kept), 0)
    if lacks_any and any(number >= at_gap and line.startswith(b"T ") for number, line in kept.items()):
        raise JournalError(
            "after the missing lines comes a travel, and whether its generation still has that number cannot be told",
            hint=_HINT,
        )
    return Rest([line[:-10] for line in kept.values()], left_out, missing)


def _tail(path: bytes, offset: int) -> bytes:
    with open(path, "rb") as file:
        return journal_file.read_tail(file.fileno(), offset)


def _by_number(lines: list[bytes], form: Form, first: int) -> dict[int, bytes]:
    """Return the lines that are records of this journal, by their numbers, from ``first`` on."""
    numbers = [journal_damage.number_of(line, form, first + len(lines) + journal_damage.MOST_MISSING) for line in lines]
    found: dict[int, bytes] = {}
    for needs_neighbour in (True, False):  # a changed line may have any number, but hardly that beside its neighbour's
        for at, number in enumerate(numbers):
            if number is None or number < first:
                continue
            around = numbers[max(at - 1, 0) : at + 2]
            if number - 1 in around[:1] or number + 1 in around[-1:] or not needs_neighbour:
                found.setdefault(number, lines[at])
    return found


def _can_be_read(line: bytes, form: Form, number: int) -> bool:
    try:
        decode(line, form.stamp(number))
    except JournalError:
        return False
    return True


def keep_rest(path: bytes, damage: Damage) -> Rest:
    """Take the bad lines out of a journal and keep the others; all from the damage on is in ``journal.torn`` before.

    Danger: nobody else may have the journal open to write to it.

    Raises:
        JournalError: as :func:`find_rest`, or the rest contradicts itself.  Nothing was done then.
        OSError: it cannot be read or written.
    """
    rest = find_rest(path, damage)
    form = Journal.form_of(path)
    stamps = (form.stamp(number) for number in range(damage.line_number - 1, damage.line_number + len(rest.bodies)))
    with open(path, "rb") as file:
        good = b"".join(journal_file.read_chunks(file.fileno(), 0, damage.offset_bytes))
    repaired = path + b".new"
    fd = os.open(repaired, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(good)
        file.writelines(map(seal, rest.bodies, stamps))
        file.flush()
        os.fsync(file.fileno())
    try:
        _check(repaired)
    except JournalError as error:
        os.unlink(repaired)
        raise JournalError(
            f"what is left of {display(path)} contradicts itself: {error.message}", hint=_HINT
        ) from error
    journal_file.keep_tail(path, damage.offset_bytes, _tail(path, damage.offset_bytes))
    os.rename(repaired, path)
    journal_file.sync_directory_of(path)
    return rest


def _check(path: bytes) -> None:
    """See that a journal comes to a state.

    Raises:
        JournalError: it does not.
    """
    with Journal.open(path, read_only=True) as journal:
        timeline = Timeline(at.marker for at in journal.markers)
        tree = Tree()
        for segment in timeline.live_segments:
            for record in journal.read_segment(segment):
                if not isinstance(record, Snapshot | Travel):
                    tree.apply(record)
