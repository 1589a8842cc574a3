"""``yolofs log``."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, assert_never

import click

from yolofs.audit.audit import AskNote, JournalEnd, Note, RefusalNote, RuleChange, RunEnd, RunStart, records_before
from yolofs.audit.runs import Run, find_run, generation_of, read_runs, runs_in
from yolofs.cli.completing import runs
from yolofs.cli.earlier_history import chapters_told
from yolofs.cli.missing_paths import check_somewhere
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json_list, local_time, paint, say
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.ranges import ALL, PathsCommand, paths_given, range_and_paths, ranges_and_paths
from yolofs.cli.show.audit_lines import comes_before, note_fields, note_text, note_word, notes_between
from yolofs.cli.show.listing import Place, say_left_out
from yolofs.cli.show.record_lines import RecordEntry, record_fields, record_line
from yolofs.cli.show.run_lines import run_result
from yolofs.cli.visible_records import count_since, is_about, may_show, paths_of
from yolofs.journal.records import Travel
from yolofs.paths import Generation, RelPath
from yolofs.session.history import Chapter
from yolofs.session.session import Session
from yolofs.state.regions import Region, Regions


class ChapterSpan(NamedTuple):
    """What of a chapter is wanted."""

    chapter: Chapter
    start: Generation
    end: Generation | None

    @property
    def last(self) -> int:
        """The last segment of it."""
        return self.end if self.end is not None else self.chapter.timeline.present + 1


class Wanted(NamedTuple):
    """What of the records and notes is wanted."""

    session: Session
    paths: Sequence[RelPath]
    run: int | None


@click.command(cls=PathsCommand)
@click.argument("words", metavar="[RANGE]", nargs=-1, shell_complete=ranges_and_paths)
@click.option(
    "--run", "run", type=int, metavar="N", shell_complete=runs, help="Print only run N, with asks and refusals."
)
@click.option("--scratch", is_flag=True, help="Include what was done in scratch directories.")
@click.option(
    "-v", "--verbose", "is_verbose", is_flag=True, help="Print each record, ask, refusal and change of a rule, too."
)
@click.option("--json", "as_json", is_flag=True, help="Print all of it as a JSON document.")
def command(words: tuple[str, ...], run: int | None, scratch: bool, is_verbose: bool, as_json: bool) -> None:
    """Print what happened: runs, snapshots, travels, commits.

    It prints a line for each, oldest first. With -v, --scratch, --run or PATH it also prints each
    record, ask, refusal and change of a rule; it counts equal refusals. RANGE is as for `yolofs
    diff`, but means the time between two generations. A branch that a travel has left is marked as
    dead. Without --scratch, log leaves out records about scratch directories unless PATH names
    them.

    Without RANGE it begins with what happened before the commits that are kept (see the setting
    keep_commits), dimmed. Before each commit generations have numbers of their own. You can look at
    these, but not travel to them; `yolofs undo` takes a commit back.
    """
    with reading(find_project()) as session, chapters_told(session) as found:
        if run is not None:
            find_run(session.directory, run)
        range_text, typed = range_and_paths(session, words, paths_given())
        start, end = session.timeline.parse_range(range_text)
        spans = [ChapterSpan(found[-1], start, end)]
        if range_text == ALL:
            spans = [*(ChapterSpan(chapter, start, None) for chapter in found[:-1]), *spans]
        paths = relative_paths(session, typed)
        check_somewhere(session, paths, typed)
        wanted = Wanted(session, paths, run)
        left_out = _LeftOut(session.regions if not (scratch or wanted.paths) else None)
        if as_json:
            emit_json_list("records", _documents(spans, wanted, left_out))
        elif is_verbose or scratch or wanted.paths or run is not None:
            _emit_all(spans, wanted, left_out)
            say_left_out(left_out.count, "record")
        else:
            _emit_short(spans, session)


# ---- all of it


def _emit_all(spans: Sequence[ChapterSpan], wanted: Wanted, left_out: _LeftOut) -> None:
    session = wanted.session
    place = Place(session.base.root, session.base.relative(session.project))
    width = _width(spans)
    for span in spans:
        is_past, is_empty = span.chapter.commit is not None, True
        for item in _items(span, wanted, left_out):
            is_empty = False
            if isinstance(item, RecordEntry):
                line = record_line(item, place, width) + ("" if item.is_live else "  [dead]")
                emit(paint(line, "dim") if is_past or not item.is_live else line)
            else:
                line = f"{local_time(item.time_ns)}  {'':>{width}}  {note_word(item):<8}  {note_text(item)}"
                emit(paint(line, "dim") if is_past else line)
        if is_past and not (is_empty and (wanted.paths or wanted.run is not None)):
            emit(paint(_commit_line(span.chapter, width), "dim"))


def _documents(spans: Sequence[ChapterSpan], wanted: Wanted, left_out: _LeftOut) -> Iterator[dict[str, Any]]:
    root = wanted.session.base.root
    for span in spans:
        number = span.chapter.commit
        more = {"commit": number} if number is not None else {}
        for item in _items(span, wanted, left_out):
            yield (record_fields(item, root) if isinstance(item, RecordEntry) else note_fields(item)) | more
        if number is not None and not (wanted.paths or wanted.run is not None):
            yield {"kind": "commit", "time_ns": span.chapter.ended_ns, **more}


def _items(span: ChapterSpan, wanted: Wanted, left_out: _LeftOut) -> Iterator[RecordEntry | Note]:
    """Yield the records and notes of a chapter that are wanted, in their order."""
    root, paths, run = wanted.session.base.root, wanted.paths, wanted.run
    entries = _entries(span, paths)
    notes = notes_between(span.chapter, span.start, span.end, [wanted.session.base.path(path) for path in paths])
    if options().guard is not None:
        entries = (entry for entry in entries if may_show(entry.record, root))
        notes = iter(())  # which are about what others may have wanted
    if run is not None:
        entries = (entry for entry in entries if run in runs_in(entry.record))
        notes = (note for note in notes if _run_of_note(note) == run)
    return _in_place(filter(left_out.shows, entries), notes)


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


class _LeftOut:
    """Filters out records that are only about scratch directories, and counts them."""

    def __init__(self, regions: Regions | None) -> None:
        """Without ``regions`` none is left out."""
        self._regions = regions
        self.count = 0

    def shows(self, entry: RecordEntry) -> bool:
        paths = paths_of(entry.record)
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


def _entries(span: ChapterSpan, paths: Sequence[RelPath]) -> Iterator[RecordEntry]:
    """Yield the records of a span, or only those that touch ``paths``, without markers then."""
    live = _live(span)
    counts = span.chapter.journal.segment_counts()
    at = sum(counts[: span.start]) + span.start
    markers = {entry.generation: entry for entry in _markers(span)}
    for segment in range(span.start + 1, span.last + 1):
        for number, record in enumerate(span.chapter.journal.read_segment(segment), at):
            if not paths or any(is_about(record, path) for path in paths):
                yield RecordEntry(segment, segment in live, record, number)
        at += counts[segment - 1] + 1
        if segment in markers and not paths:
            yield markers[segment]


def _markers(span: ChapterSpan) -> Iterator[RecordEntry]:
    """Yield the markers of a span; no record is read."""
    timeline, journal = span.chapter.timeline, span.chapter.journal
    live = _live(span)
    counts = journal.segment_counts()
    at = sum(counts[: span.start]) + span.start
    for segment in range(span.start + 1, min(span.last, timeline.present) + 1):
        at += counts[segment - 1]
        yield RecordEntry(segment, segment in live, journal.markers[segment - 1].marker, at)
        at += 1


def _live(span: ChapterSpan) -> set[int]:
    """Return the segments that led to the present, including those before it was written anew."""
    timeline = span.chapter.timeline
    return {int(node.number) for node in timeline.nodes() if node.is_live} | {timeline.present + 1}


# ---- in short


def _emit_short(spans: Sequence[ChapterSpan], session: Session) -> None:
    """Write a line for each run, marker and commit, and count what is not shown."""
    place = Place(session.base.root, session.base.relative(session.project))
    width = _width(spans)
    hidden: Counter[str] = Counter()
    known = {run.number: run for run in read_runs(session.directory)}
    for span in spans:
        is_past = span.chapter.commit is not None
        notes = list(notes_between(span.chapter, span.start, span.end, ())) if options().guard is None else []
        runs = [known[note.run] for note in notes if isinstance(note, RunStart)]
        made = {run.end.after.marker_ns for run in runs if run.end is not None and run.end.after is not None}
        lines = [(run.start.time_ns, _run_line(run, span, notes, width), True) for run in runs]
        for entry in _markers(span):
            if isinstance(entry.record, Travel) and entry.record.is_anew:
                continue  # the marker that follows says what was done
            if entry.record.time_ns not in made and entry.generation <= span.chapter.count_seen:
                text = record_line(entry, place, width) + ("" if entry.is_live else "  [dead]")
                lines.append((entry.record.time_ns, text, entry.is_live))
        for _, line, is_live in sorted(lines, key=lambda line: line[0]):
            emit(line if is_live and not is_past else paint(line, "dim"))
        if is_past:
            emit(paint(_commit_line(span.chapter, width), "dim"))
        elif span.end is None and (count := count_since(session)):
            emit(f"and {count} record{'s' if count > 1 else ''} since, not snapshotted yet")
        hidden += _beside(span, notes)
    if hidden and options().guard is None:
        counts = [f"{count} {what}{'s' if count > 1 else ''}" for what, count in hidden.items()]
        say(f"note: {', '.join(counts)} not shown; -v shows them")


def _run_line(run: Run, span: ChapterSpan, notes: Sequence[Note], width: int) -> str:
    """Return a run in one line: the generation that it made, its command, how it ended, what was
    asked and refused.
    """
    after = generation_of(run.end.after, span.chapter.journal) if run.end is not None else None
    number = str(after) if after is not None else ""
    mine = [note for note in notes if isinstance(note, AskNote | RefusalNote) and note.process.run == run.number]
    counts = _counted(mine)
    more = [f"{count} {word}{'s' if count > 1 else ''}" for word, count in sorted(counts.items())]
    told = ", ".join(text for text in (*run_result(run), *more) if text)
    text = note_text(run.start).rpartition("  (in ")[0]
    return f"{local_time(run.start.time_ns)}  {number:>{width}}  {'run':<8}  {text}  ({told})"


def _beside(span: ChapterSpan, notes: Sequence[Note]) -> Counter[str]:
    """Return how much of a span the short form leaves out, by kind."""
    found = Counter({"record": sum(span.chapter.journal.segment_counts()[span.start : span.last])})
    found.update(_counted(note for note in notes if not isinstance(note, RunStart | RunEnd)))
    return +found


def _counted(notes: Iterable[Note]) -> Counter[str]:
    """Return how many notes of which kind there are; of refusals how often something was
    refused.
    """
    found: Counter[str] = Counter()
    for note in notes:
        found[note_word(note)] += note.count if isinstance(note, RefusalNote) else 1
    return found


def _commit_line(chapter: Chapter, width: int) -> str:
    ended_ns = chapter.ended_ns
    when = local_time(ended_ns) if ended_ns is not None else ""
    return f"{when:<19}  {'':>{width}}  {'commit':<8}  {chapter.commit}"


def _width(spans: Sequence[ChapterSpan]) -> int:
    return max(len(str(span.chapter.timeline.present + 1)) for span in spans)
