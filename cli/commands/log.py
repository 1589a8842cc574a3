"""``yolofs log``."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, assert_never

import click

from yolofs.audit.audit import Note, RunEnd, RunStart, records_before
from yolofs.audit.runs import find_run, run_of
from yolofs.cli.completing import generations
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json_list, local_time, paint
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.ranges import PathsCommand, parse_range, paths_given
from yolofs.cli.records_seen import may_show, paths_of
from yolofs.cli.show.audit_lines import comes_before, note_fields, note_text, note_word, notes_between
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import Place, say_left_out
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, absolute, display, is_below
from yolofs.session.session import Session
from yolofs.state.regions import Region, Regions


class Entry(NamedTuple):
    """One record and where it stands."""

    generation: int
    """The one that its segment leads to, or that it starts if it is a marker."""
    is_live: bool
    record: Record
    records: int
    """How many the journal has before it."""


@click.command(cls=PathsCommand)
@click.argument("range_text", metavar="[RANGE]", default="all", shell_complete=generations)
@click.option("--run", "run", type=int, metavar="N", help="Only what run N did.")
@click.option("--scratch", is_flag=True, help="Also what was done in scratch directories.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(range_text: str, run: int | None, scratch: bool, as_json: bool) -> None:
    """Print what happened: records, runs, asks, refusals, rules.

    Oldest first. RANGE is as in `yolofs diff`; here it means the time between two generations. What lies on a branch
    that a travel has left is marked as dead. Equal refusals are counted. Records about scratch directories are left
    out unless PATH names them.
    """
    with reading(find_project()) as session:
        if run is not None:
            find_run(session.directory, run)
        start, end = parse_range(session.timeline, range_text)
        paths = relative_paths(session, paths_given())
        entries = _entries(session, start, end, paths)
        notes = notes_between(session, start, end, [session.base.path(path) for path in paths])
        root = session.base.root
        if options().guard is not None:
            entries = (entry for entry in entries if may_show(entry.record, root))
            notes = iter(())  # which are about what others may have wanted
        if run is not None:
            entries = (entry for entry in entries if run_of(entry.record) == run)
            notes = (note for note in notes if isinstance(note, RunStart | RunEnd) and note.run == run)
        left_out = _LeftOut(session.regions)
        if not (scratch or paths):
            entries = filter(left_out.shows, entries)
        if as_json:
            emit_json_list("records", (_any_fields(item, root) for item in _in_place(entries, notes)))
            return
        place = Place(root, session.base.relative(session.project))
        width = len(str(session.timeline.present + 1))
        for item in _in_place(entries, notes):
            if isinstance(item, Entry):
                line = _line(item, place, width)
                emit(line if item.is_live else paint(f"{line}  [dead]", "dim"))
            else:
                emit(f"{local_time(item.time_ns)}  {'':>{width}}  {note_word(item):<8}  {note_text(item)}")
        say_left_out(left_out.count, "record")


class _LeftOut:
    """Leaves out the records that are about scratch directories alone, and counts them."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self.count = 0

    def shows(self, entry: Entry) -> bool:
        paths = paths_of(entry.record)
        if not paths or self._regions.of_all(paths) is not Region.SCRATCH:
            return True
        self.count += 1
        return False


def _in_place(entries: Iterable[Entry], notes: Iterable[Note]) -> Iterator[Entry | Note]:
    """Yield records in their order, and each note before the first record that is later.

    Notes that tell how many records were before them have that order.  Their times count among those with the same
    number, and for the others.
    """
    by_time = sorted(notes, key=_time_ns)
    counted = deque(sorted((note for note in by_time if records_before(note) is not None), key=_records))
    timed = deque(note for note in by_time if records_before(note) is None)
    for entry in entries:
        yield from heapq.merge(_take_due(counted, entry), _take_due(timed, entry), key=_time_ns)
        yield entry
    yield from heapq.merge(counted, timed, key=_time_ns)


def _take_due(notes: deque[Note], entry: Entry) -> Iterator[Note]:
    """Take the first of some notes as long as they are from before a record."""
    while notes and comes_before(notes[0], entry.records, entry.record.time_ns):
        yield notes.popleft()


def _time_ns(note: Note) -> int:
    return note.time_ns


def _records(note: Note) -> int:
    return records_before(note) or 0


def _any_fields(item: Entry | Note, root: bytes) -> dict[str, Any]:
    return _fields(item, root) if isinstance(item, Entry) else note_fields(item)


def _entries(session: Session, start: Generation, end: Generation | None, paths: Sequence[RelPath]) -> Iterator[Entry]:
    """Yield the records between two generations, or only those that touch ``paths``, without markers then."""
    timeline, journal = session.timeline, session.journal
    live_segments = set(timeline.live_segments)
    live_generations = {node.number for node in timeline.nodes() if node.is_live}
    last = end if end is not None else timeline.present + 1
    counts = journal.segment_counts()
    at = sum(counts[:start]) + start
    for segment in range(start + 1, last + 1):
        for number, record in enumerate(journal.read_segment(segment), at):
            if not paths or _touches(record, paths):
                yield Entry(segment, segment in live_segments, record, number)
        at += counts[segment - 1]
        if segment <= timeline.present and not paths:
            yield Entry(segment, segment in live_generations, journal.markers[segment - 1].marker, at)
        at += 1


def _touches(record: Record, paths: Sequence[RelPath]) -> bool:
    touched = paths_of(record)
    return any(is_below(one, path) for one in touched for path in paths)


def _word(record: Record) -> str:
    match record:
        case Stage():
            return "stage"
        case Delete():
            return "delete"
        case Rename():
            return "exchange" if record.exchange else "rename"
        case Keep():
            return "keep"
        case Snapshot():
            return "snapshot"
        case Travel():
            return "travel"
        case _:
            assert_never(record)


def _line(entry: Entry, place: Place, width: int) -> str:
    record = entry.record
    head = f"{local_time(record.time_ns)}  {entry.generation:>{width}}  {_word(record):<8}"
    run = run_of(record)
    return f"{head}  {_what(record, place)}".rstrip() + (f"  [run {run}]" if run else "")


def _what(record: Record, place: Place) -> str:
    match record:
        case Stage():
            how = ", metadata only" if record.origin is not None else ""
            how = f"copied up{how}" if record.base is not None else how.removeprefix(", ")
            how += ", known by no name" if record.is_nameless else ""
            return place.show_path(record.path) + (f"  ({how})" if how else "")
        case Delete():
            return place.show_path(record.path)
        case Keep():
            return f"{place.show_path(record.path)}  ({_kept_as(record, place)})"
        case Rename():
            arrow = "<->" if record.exchange else "->"
            return f"{place.show_path(record.src)} {arrow} {place.show_path(record.dst)}"
        case Snapshot():
            return display(record.name)
        case Travel():
            return f"to {record.generation}" + (f" ({display(record.name)})" if record.name else "")
        case _:
            assert_never(record)


def _kept_as(record: Keep, place: Place) -> str:
    if record.ino is not None:
        return "staged, metadata only" if record.origin is not None else "staged"
    return f"from {place.show_path(record.source)}" if record.source is not None else "deleted"


def _fields(entry: Entry, root: bytes) -> dict[str, Any]:
    record = entry.record
    fields: dict[str, Any] = {
        "kind": _word(record),
        "time_ns": record.time_ns,
        "generation": entry.generation,
        "live": entry.is_live,
    }
    run = run_of(record)
    if run:
        fields["run"] = run
    match record:
        case Stage():
            fields |= text_fields("path", absolute(root, record.path))
            fields |= {"ino": record.ino, "copied_up": record.base is not None}
            if record.origin is not None:
                fields |= text_fields("origin", absolute(root, record.origin))
        case Delete():
            fields |= text_fields("path", absolute(root, record.path))
        case Keep():
            fields |= text_fields("path", absolute(root, record.path)) | {"ino": record.ino}
            source = record.source if record.source is not None else record.origin
            if source is not None:
                fields |= text_fields("origin", absolute(root, source))
        case Rename():
            fields |= text_fields("path", absolute(root, record.dst))
            fields |= text_fields("old_path", absolute(root, record.src))
        case Snapshot():
            fields |= text_fields("name", record.name)
        case Travel():
            fields |= text_fields("name", record.name)
            fields["target"] = record.generation
        case _:
            assert_never(record)
    return fields
