"""Finds what is wrong with a journal: a bad line, or the first record that does not fit those
before it, so that no state comes of them.
"""

from __future__ import annotations

from yolofs.errors import JournalError
from yolofs.journal import journal_damage, journal_file
from yolofs.journal.journal import Journal
from yolofs.journal.journal_damage import Damage
from yolofs.journal.records import Snapshot, Travel
from yolofs.journal.timeline import Timeline
from yolofs.state.tree import Tree


def find_bad_line(path: bytes) -> Damage | None:
    """Return where a journal is bad, None if the present state comes of it.

    Raises:
        JournalError: as :meth:`Journal.find_damage`.
        OSError: it cannot be read.
    """
    return Journal.find_damage(path) or find_misfit(path)


def find_misfit(path: bytes) -> Damage | None:
    """Return where the first record is that does not fit those before it, of those that lead to the
    present; None if all fit.

    Raises:
        JournalError: a line is bad.
        OSError: it cannot be read.
    """
    with Journal.open(path, read_only=True) as journal:
        timeline = Timeline()
        for at in journal.markers:
            try:
                timeline.add(at.marker)
            except JournalError as error:
                return _damage_after(path, at.offset_bytes, 0, error.message)
        tree = Tree()
        for segment in timeline.live_segments:
            count = 0
            try:
                for record in journal.read_segment(segment):
                    if not isinstance(record, Snapshot | Travel):
                        tree.apply(record)
                    count += 1
            except JournalError as error:
                return _damage_after(path, journal.segment_range(segment)[0], count, error.message)
    return None


def _damage_after(path: bytes, start: int, count: int, reason: str) -> Damage:
    """Return the damage that begins so many lines after an offset."""
    with open(path, "rb") as file:
        fd = file.fileno()
        before = journal_file.count_lines(fd, 0, start)
        offset = start
        for line in journal_file.read_tail(fd, start).split(b"\n")[:count]:
            offset += len(line) + 1
        return journal_damage.damage_at(fd, offset, before + count, reason)
