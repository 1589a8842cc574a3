"""Finds what is wrong with a journal: a bad line, or the first record that does not fit those
before it, so that no state comes of them.
"""

from __future__ import annotations

from yolofs.errors import JournalError
from yolofs.journal import journal_damage, journal_file
from yolofs.journal.journal import Journal
from yolofs.journal.journal_damage import Damage
from yolofs.journal.records import Snapshot, Travel
from yolofs.journal.timeline import BASE, Timeline
from yolofs.paths import Generation
from yolofs.state.tree import Tree


def find_bad_line(path: bytes) -> Damage | None:
    """Return where a journal is bad, None if all states come of it; what the present one comes of
    is looked at first.

    Raises:
        JournalError: as :meth:`Journal.find_damage`.
        OSError: it cannot be read.
    """
    return Journal.find_damage(path) or find_misfit(path) or _find_misfit_elsewhere(path)


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
            misfit = _apply(journal, segment, tree)
            if misfit is not None:
                return _damage_after(path, journal.segment_range(segment)[0], *misfit)
    return None


def _find_misfit_elsewhere(path: bytes) -> Damage | None:
    """Return where a record does not fit those before it that only other generations than the
    present one come of; None if all fit.

    Each segment is replayed once; where several are built on one, its tree is copied.

    Raises:
        JournalError: a line is bad.
        OSError: it cannot be read.
    """
    with Journal.open(path, read_only=True) as journal:
        timeline = Timeline(at.marker for at in journal.markers)
        built_on: dict[Generation, list[Generation]] = {}
        for at in range(1, timeline.present + 1):
            number = Generation(at)
            if timeline.shown_by(number) == number:
                built_on.setdefault(timeline.shown_by(number - 1), []).append(number)
        waiting = [(BASE, Tree())]
        while waiting:
            below, tree = waiting.pop()
            segments = built_on.get(below, [])
            for segment in segments:
                own = tree.copy() if segment != segments[-1] else tree
                misfit = _apply(journal, segment, own)
                if misfit is not None:
                    start, end = journal.segment_range(segment)
                    everything = map(Generation, range(1, timeline.present + 1))
                    lost = tuple(number for number in everything if segment in timeline.segments_of(number))
                    return _damage_after(path, start, *misfit, end=end, generations=lost)
                waiting.append((segment, own))
    return None


def _apply(journal: Journal, segment: int, tree: Tree) -> tuple[int, str] | None:
    """Apply the records of a segment to a tree; return how many fit, and why the next one does not,
    or None if all do.
    """
    count = 0
    try:
        for record in journal.read_segment(segment):
            if not isinstance(record, Snapshot | Travel):
                tree.apply(record)
            count += 1
    except JournalError as error:
        return count, error.message
    return None


def _damage_after(
    path: bytes, start: int, count: int, reason: str, *, end: int | None = None, generations: tuple[int, ...] = ()
) -> Damage:
    """Return the damage that begins so many lines after an offset, up to ``end`` or all."""
    with open(path, "rb") as file:
        fd = file.fileno()
        before = journal_file.count_lines(fd, 0, start)
        offset = start
        for line in journal_file.read_tail(fd, start).split(b"\n")[:count]:
            offset += len(line) + 1
        return journal_damage.damage_at(fd, offset, before + count, reason, end=end, generations=generations)
