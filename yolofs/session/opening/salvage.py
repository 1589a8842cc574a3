"""Repairs a damaged journal by taking out its bad lines alone, which keeps the rest.

The lost lines are unknown then, so nothing of this happens unasked; and a rest that contradicts
itself, or that might mean something else now, is refused.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yolofs.errors import JournalError
from yolofs.journal import journal_damage, journal_file, journal_length
from yolofs.journal.checksums import has_right_checksum, stamp_of, with_checksum
from yolofs.journal.codec import decode
from yolofs.journal.cuts import Cut
from yolofs.journal.header import HEADER_1, KEY_LIMIT, JournalForm, header, is_newer, read_header
from yolofs.journal.journal import Journal
from yolofs.journal.journal_damage import Damage
from yolofs.paths import StoreIno, display
from yolofs.session.archive import inodes_without_journal, numbers_of_ended_journals, replace_journal, store_numbers
from yolofs.session.opening.misfits import find_misfit
from yolofs.store.store import Store
from yolofs.system.plain_files import is_there

_HINT = "yolofs doctor --repair cuts all changes from there on off instead"


class KeptLines(NamedTuple):
    """What comes after damage and can be kept."""

    bodies: list[bytes]
    """Lines without their checksums, in the order in which they were written."""
    left_out: int
    """How many lines of the file are not among them: changed, cut, of another journal, there
    twice.
    """
    missing: int
    """How many records between them are lost without even a bad line; 0 in version 1, which cannot
    tell.
    """


class FirstLine(NamedTuple):
    """What the damaged first line of a journal should be."""

    line: bytes
    """With its newline."""
    offset_bytes: int
    """Where, in the file as it is, the first record stands."""
    sound: int
    """How many lines tell that."""
    others: int
    """How many lines there are except for it."""


def find_rest(path: bytes, damage: Damage) -> KeptLines:
    """Return what can be kept of a journal from its damage on.

    Raises:
        JournalError: it might mean something else now, as a travel in it names a generation by its
            number, and markers may be missing before it.
        OSError: it cannot be read.
    """
    form = Journal.form_of(path)
    lines = _tail(path, damage.offset_bytes).split(b"\n")
    whole = lines[:-1]  # what follows the last newline is cut, or nothing
    first = damage.line_number - 1
    numbered = (
        _by_number(whole, form, first) if form.step else dict(enumerate(filter(has_right_checksum, whole), first))
    )
    kept = {number: line for number, line in sorted(numbered.items()) if _can_be_read(line, form, number)}
    lacking = max(kept, default=first - 1) + 1 - first - len(kept) if form.step else 0
    left_out = len(whole) - len(kept) + bool(lines[-1])
    lacks_any = lacking > 0 if form.step else left_out > 0
    at_gap = first if not form.step else next((one for one in range(first, max(kept, default=0)) if one not in kept), 0)
    if lacks_any and any(number >= at_gap and line.startswith(b"T ") for number, line in kept.items()):
        raise JournalError(
            "a travel comes after the missing lines, and its generation may have another number now",
            hint=_HINT,
        )
    numbers = [_number_of(line, form, first, whole) for line in whole]
    ruined = sum(number is None or (number >= first and number not in kept) for number in numbers)
    return KeptLines([line[:-10] for line in kept.values()], left_out, max(lacking - ruined, 0))


def _tail(path: bytes, offset: int) -> bytes:
    with open(path, "rb") as file:
        return journal_file.read_tail(file.fileno(), offset)


def _by_number(lines: list[bytes], form: JournalForm, first: int) -> dict[int, bytes]:
    """Return the lines that are records of this journal, by their numbers, from ``first`` on."""
    numbers = [_number_of(line, form, first, lines) for line in lines]
    found: dict[int, bytes] = {}
    for needs_neighbour in (True, False):  # a changed line may have any number, but hardly that beside its neighbour's
        for at, number in enumerate(numbers):
            if number is None or number < first:
                continue
            around = numbers[max(at - 1, 0) : at + 2]
            if number - 1 in around[:1] or number + 1 in around[-1:] or not needs_neighbour:
                found.setdefault(number, lines[at])
    return found


def _number_of(line: bytes, form: JournalForm, first: int, lines: list[bytes]) -> int | None:
    """Return the number of the record in one of the journal's last ``lines``; the first of them
    should be record ``first``.
    """
    return journal_damage.number_of(line, form, first + len(lines) + journal_damage.MOST_MISSING)


def _can_be_read(line: bytes, form: JournalForm, number: int) -> bool:
    try:
        decode(line, form.stamp(number))
    except JournalError:
        return False
    return True


def keep_rest(path: bytes, damage: Damage) -> KeptLines:
    """Take the bad lines out of a journal and keep the others; all from the damage on is in
    ``journal.torn`` before.

    Danger: nobody else may have the journal open to write to it.

    Raises:
        JournalError: as :func:`find_rest`, or the rest contradicts itself.  Nothing was done then.
        OSError: it cannot be read or written.
    """
    rest = find_rest(path, damage)
    form = Journal.form_of(path)
    kept = damage.line_number - 2 + len(rest.bodies)
    told = kept + max(rest.missing, rest.left_out)  # as many as are told of by this repair
    at_end = max(journal_length.read(path, form.key) - told, 0)
    stamps = (form.stamp(number) for number in range(damage.line_number - 1, damage.line_number + len(rest.bodies)))
    with open(path, "rb") as file:
        good = b"".join(journal_file.read_bytes_between(file.fileno(), 0, damage.offset_bytes))
    repaired = _write_beside(path, [good, *map(with_checksum, rest.bodies, stamps)])
    misfit = find_misfit(repaired)
    if misfit is not None:
        os.unlink(repaired)
        raise JournalError(f"what is left of {display(path)} contradicts itself: {misfit.reason}", hint=_HINT)
    journal_file.keep_tail(path, damage.offset_bytes, _tail(path, damage.offset_bytes))
    os.rename(repaired, path)
    journal_file.sync_directory_of(path)
    journal_length.write(path, form.key, kept + at_end)
    return rest


def take_out(path: bytes, damage: Damage) -> None:
    """Take out of a journal what is left of a segment from a record on that does not fit; it is in
    ``journal.torn`` before.

    Markers keep their numbers, and the present state stays as it is.

    Danger: nobody else may have the journal open to write to it.

    Raises:
        JournalError: the present state comes of what would be taken out.  Nothing was done then.
        OSError: it cannot be read or written.
    """
    form = Journal.form_of(path)
    with open(path, "rb") as file:
        whole = file.read()
    good, cut, rest = (
        whole[: damage.offset_bytes],
        whole[damage.offset_bytes : damage.end_bytes],
        whole[damage.end_bytes :],
    )
    bodies = [line[:-10] for line in rest.split(b"\n")[:-1]]
    stamps = map(form.stamp, range(damage.line_number - 1, damage.line_number - 1 + len(bodies)))
    repaired = _write_beside(path, [good, *map(with_checksum, bodies, stamps)])
    misfit = find_misfit(repaired)
    if misfit is not None:
        os.unlink(repaired)
        raise JournalError(f"what is left of {display(path)} contradicts itself: {misfit.reason}")
    journal_file.keep_tail(path, damage.offset_bytes, cut)
    os.rename(repaired, path)
    journal_file.sync_directory_of(path)
    journal_length.write(path, form.key, damage.line_number - 2 + len(bodies))


def _write_beside(path: bytes, lines: Iterable[bytes]) -> bytes:
    """Write a file beside a journal, durably, to be renamed onto it; return its path."""
    repaired = path + b".new"
    fd = os.open(repaired, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    return repaired


def find_first_line(path: bytes) -> FirstLine | None:
    """Return what the damaged first line of a journal should be; None if it is sound, or nothing
    tells.

    The checksum of a line depends on its place and on the journal's key
    (:class:`~yolofs.journal.header.JournalForm`).  So two lines, or one and what is left of the
    first line, give the key.

    Raises:
        JournalError: a newer version has made it.
        OSError: it cannot be read.
    """
    data = _tail(path, 0)
    first = data.partition(b"\n")[0]
    try:
        read_header(first)
    except JournalError:
        if is_newer(first):
            raise
    else:
        return None
    found: FirstLine | None = None
    for offset in (len(header(0)), len(HEADER_1), len(first) + 1, 0):  # a newline may have changed, too, or all be gone
        one = _told_by(data[offset:].split(b"\n")[:-1], first, offset)
        if one is not None and (found is None or one.sound > found.sound):
            found = one
    return found


def _told_by(lines: list[bytes], first: bytes, offset: int) -> FirstLine | None:
    """Return the first line that most of the others tell, None if they tell none."""
    stamps = [(number, stamp_of(line)) for number, line in enumerate(lines, 1)]
    if unstamped := sum(stamp == 0 for _, stamp in stamps):
        return FirstLine(HEADER_1, offset, unstamped, len(lines))
    keys = Counter(stamp - number for number, stamp in stamps if stamp is not None and 0 <= stamp - number < KEY_LIMIT)
    told = {key: count for key, count in keys.items() if count > 1 or b"%08x" % key in first}
    if not told:
        return None
    most = max(told, key=told.__getitem__)
    # lines may be missing: then those after the gap tell a larger key, and with it those before it
    # would be lost
    key = min(key for key in told if most - journal_damage.MOST_MISSING <= key <= most)
    return FirstLine(header(key), offset, sum(told.values()), len(lines))


def restore_first_line(path: bytes, found: FirstLine) -> None:
    """Write the first line of a journal anew; all as it was is in ``journal.torn`` before.

    Danger: nobody else may have the journal open to write to it.

    Raises:
        OSError: it cannot be read or written.
    """
    whole = _tail(path, 0)
    repaired = _write_beside(path, [found.line, whole[found.offset_bytes :]])
    journal_file.keep_tail(path, 0, whole)
    os.rename(repaired, path)
    journal_file.sync_directory_of(path)


def begin_empty_journal(directory: bytes) -> bytes | None:
    """Begin an empty journal for the session in ``directory``, whose own is missing or says nothing
    any more.

    What is left of the old one is first kept in ``journal.torn``.  The staged files that no journal
    names are moved to a directory below ``lost``, which is returned; None if there are none.  The
    lock is held.

    Raises:
        OSError: something cannot be moved or written.
    """
    path = os.path.join(directory, b"journal")
    if is_there(path):
        journal_file.keep_tail(path, 0, _tail(path, 0))
    place = _set_aside(directory, inodes_without_journal(directory))
    replace_journal(path)
    return place


def go_on_without(directory: bytes, journal: Journal) -> Cut:
    """Go on without the lines that are missing at the end of a session's journal, and keep what
    only they named.

    The staged files that no journal names are moved to a directory below ``lost``.  The lock is
    held, and the journal open to write to it.

    Raises:
        OSError: something cannot be moved or noted.
    """
    named = store_numbers(journal.path) | numbers_of_ended_journals(directory)
    place = _set_aside(directory, [ino for ino in _store_of(directory) if ino not in named])
    return journal.accept_loss(int(os.path.basename(place)) if place is not None else 0)


def _store_of(directory: bytes) -> Store:
    return Store(os.path.join(directory, b"files"))


def _set_aside(directory: bytes, numbers: Sequence[StoreIno]) -> bytes | None:
    """Move store inodes to a directory below ``lost``, durably, and return its path; None if there
    are none.
    """
    if not numbers:
        return None
    store = _store_of(directory)
    place = b""
    for number in range(1, 1 << 30):  # those of an earlier loss have the same numbers
        place = os.path.join(directory, b"lost", b"%d" % number)
        if not is_there(place):
            break
    os.makedirs(place, 0o700)
    for ino in numbers:
        os.rename(store.path(ino), os.path.join(place, b"%d" % ino))
    for made in (place + b"/.", place, os.path.dirname(place)):
        journal_file.sync_directory_of(made)
    return place
