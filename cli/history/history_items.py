"""The records and notes of a session's history that a log is about, in their order."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, assert_never

from yolofs.audit.audit import AskNote, JournalEnd, Note, RefusalNote, RuleChange, RunEnd, RunStart, records_before
from yolofs.audit.runs import runs_in
from yolofs.cli.history.chapter_span import ChapterSpan
from yolofs.cli.history.earlier_names import EarlierNames
from yolofs.cli.history.visible_records import is_about, may_show, paths_of_record
from yolofs.cli.options import options
from yolofs.cli.show.audit_lines import comes_before, is_about_any, notes_between
from yolofs.cli.show.record_lines import RecordEntry
from yolofs.paths import RelPath
from yolofs.session.history.chapters import DroppedJournal
from yolofs.session.session import Session
from yolofs.state.regions import Region, Regions


class WantedHistory(NamedTuple):
    """What of the records and notes is wanted."""

    session: Session
    paths: Sequence[RelPath]
    names: EarlierNames
    """Of these paths."""
    run: int | None


def items_of(span: ChapterSpan, wanted: WantedHistory, left_out: LeftOut) -> Iterator[RecordEntry | Note]:
    """Yield the records and notes of a chapter that are wanted, in their order."""
    root, run = wanted.session.base.root, wanted.run
    entries = _entries(span, wanted)
    paths = [wanted.session.base.path(path) for path in wanted.names.within(span)]
    notes = notes_between(span.chapter, span.start, span.end, paths)
    if options().guard is not None:
        entries = (entry for entry in entries if may_show(entry.record, root))
        notes = iter(())  # which are about what others may have wanted
    if run is not None:
        entries = (entry for entry in entries if run in runs_in(entry.record))
        notes = (note for note in notes if _run_of_note(note) == run)
    return _in_place(filter(left_out.shows, entries), notes)


def dropped_notes(span: ChapterSpan, wanted: WantedHistory) -> Iterator[tuple[DroppedJournal, list[Note]]]:
    """Yield what was dropped before a chapter, each with the notes that are wanted of it; none if
    only a run or paths are, and no note is about these.
    """
    paths = [wanted.session.base.path(path) for path in wanted.names.within(span)]
    for dropped in span.dropped:
        notes = [
            note
            for note in (dropped.notes if options().guard is None else ())
            if is_about_any(note, paths) and wanted.run in (None, _run_of_note(note))
        ]
        if notes or not (wanted.paths or wanted.run is not None):
            yield dropped, notes


def _run_of_note(note: Note) -> int:
    """Return the number of the run that a note is about, 0 if it is about none."""
    match note:
        case RunStart() | RunEnd():
            return note.run
        case AskNote() | RefusalNote():
            return note.process.run
        case RuleChange() | JournalEnd():
            return 0
        case _:
            assert_never(note)


class LeftOut:
    """Filters out records that are only about scratch directories, and counts them."""

    def __init__(self, regions: Regions | None) -> None:
        """Without ``regions`` none is left out."""
        self._regions = regions
        self.count = 0

    def shows(self, entry: RecordEntry) -> bool:
        """Tell whether a record is shown."""
        paths = paths_of_record(entry.record)
        if self._regions is None or not paths or self._regions.of_all(paths) is not Region.SCRATCH:
            return True
        self.count += 1
        return False


def _in_place(entries: Iterable[RecordEntry], notes: Iterable[Note]) -> Iterator[RecordEntry | Note]:
    """Yield records in their order, and each note before the first record that is later.

    A note that says how many records came before it is placed by that number, and among equal
    numbers by time.  Other notes are placed by time.
    """
    by_time = sorted(notes, key=_time_ns)
    counted = deque(sorted((note for note in by_time if records_before(note) is not None), key=_records))
    timed = deque(note for note in by_time if records_before(note) is None)
    for entry in entries:
        yield from heapq.merge(_take_due(counted, entry), _take_due(timed, entry), key=_time_ns)
        yield entry
    yield from heapq.merge(counted, timed, key=_time_ns)


def _take_due(notes: deque[Note], entry: RecordEntry) -> Iterator[Note]:
    """Take notes from the front as long as they are older than a record."""
    while notes and comes_before(notes[0], entry.records, entry.record.time_ns):
        yield notes.popleft()


def _time_ns(note: Note) -> int:
    return note.time_ns


def _records(note: Note) -> int:
    return records_before(note) or 0


def _entries(span: ChapterSpan, wanted: WantedHistory) -> Iterator[RecordEntry]:
    """Yield the records of a span, or only those that touch the wanted paths, without markers
    then.
    """
    live = span.live
    markers = {entry.generation: entry for entry in markers_of(span)}
    for segment in range(span.start + 1, span.last + 1):
        for number, record in span.records(segment):
            if not wanted.paths or any(is_about(record, path) for path in wanted.names.at(span, number)):
                yield RecordEntry(segment, segment in live, record, number)
        if segment in markers and not wanted.paths:
            yield markers[segment]


def markers_of(span: ChapterSpan) -> Iterator[RecordEntry]:
    """Yield the markers of a span; no record is read."""
    timeline, journal = span.chapter.timeline, span.chapter.journal
    live = span.live
    counts = journal.segment_counts()
    at = span.first_number(span.start + 1)
    for segment in range(span.start + 1, min(span.last, timeline.present) + 1):
        at += counts[segment - 1]
        yield RecordEntry(segment, segment in live, journal.markers[segment - 1].marker, at)
        at += 1
