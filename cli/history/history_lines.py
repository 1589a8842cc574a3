"""A session's history in lines: all of it, or a line for each run, marker, commit and abort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from yolofs.audit.audit import AskNote, Note, RefusalNote, RunEnd, RunStart
from yolofs.audit.runs import Run, generation_of, read_runs
from yolofs.cli.history.chapter_span import ChapterSpan, told_ns
from yolofs.cli.history.history_items import LeftOut, WantedHistory, dropped_notes, items_of, markers_of
from yolofs.cli.history.visible_records import count_since
from yolofs.cli.options import options
from yolofs.cli.output import emit, local_time, paint, say
from yolofs.cli.show.audit_lines import note_fields, note_text, note_word, notes_between
from yolofs.cli.show.listing import PathDisplay
from yolofs.cli.show.record_lines import RecordEntry, record_fields, record_line
from yolofs.cli.show.run_lines import fitting_command, run_result
from yolofs.journal.records import Travel
from yolofs.session.history.chapters import Chapter
from yolofs.session.session import Session


def emit_all(spans: Sequence[ChapterSpan], wanted: WantedHistory, left_out: LeftOut) -> None:
    """Write a line for each record and note."""
    session = wanted.session
    path_display = PathDisplay(session.base.root, session.base.relative(session.project))
    width = _width(spans)
    commit_ns: int | None = None
    for span in spans:
        for dropped, notes in dropped_notes(span, wanted):
            for note in notes:
                emit(paint(_note_line(note, width), "dim"))
            emit(paint(_end_line(dropped.ended_ns, "abort", width), "dim"))
        is_past, is_empty = span.chapter.commit is not None, True
        for item in items_of(span, wanted, left_out):
            is_empty = False
            if isinstance(item, RecordEntry):
                time_ns = told_ns(item.record.time_ns, item.generation, commit_ns)
                line = record_line(item, path_display, width, time_ns) + ("" if item.is_live else "  [dead]")
                emit(paint(line, "dim") if is_past or not item.is_live else line)
            else:
                line = _note_line(item, width)
                emit(paint(line, "dim") if is_past else line)
        if is_past and not (is_empty and (wanted.paths or wanted.run is not None)):
            emit(paint(_commit_line(span.chapter, width), "dim"))
        commit_ns = span.chapter.ended_ns


def documents(spans: Sequence[ChapterSpan], wanted: WantedHistory, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    """Yield records and notes as JSON has them."""
    root = wanted.session.base.root
    for span in spans:
        for dropped, notes in dropped_notes(span, wanted):
            yield from (note_fields(note) | {"aborted": True} for note in notes)
            if not (wanted.paths or wanted.run is not None):
                yield {"kind": "abort", "time_ns": dropped.ended_ns}
        number = span.chapter.commit
        more = {"commit": number} if number is not None else {}
        for item in items_of(span, wanted, left_out):
            yield (record_fields(item, root) if isinstance(item, RecordEntry) else note_fields(item)) | more
        if number is not None and not (wanted.paths or wanted.run is not None):
            yield {"kind": "commit", "time_ns": span.chapter.ended_ns, **more}


def emit_short(spans: Sequence[ChapterSpan], session: Session) -> None:
    """Write a line for each run, marker, commit and abort, and count what is not shown."""
    path_display = PathDisplay(session.base.root, session.base.relative(session.project))
    width = _width(spans)
    hidden: Counter[str] = Counter()
    known = {run.number: run for run in read_runs(session.directory)}
    commit_ns: int | None = None
    for span in spans:
        for dropped in span.dropped:
            of_dropped = dropped.notes if options().guard is None else []
            for run in (known[note.run] for note in of_dropped if isinstance(note, RunStart)):
                emit(paint(_run_line(run, span, of_dropped, width), "dim"))
            emit(paint(_end_line(dropped.ended_ns, "abort", width), "dim"))
        is_past = span.chapter.commit is not None
        notes = list(notes_between(span.chapter, span.start, span.end, ())) if options().guard is None else []
        runs = [known[note.run] for note in notes if isinstance(note, RunStart)]
        made = {run.end.after.marker_ns for run in runs if run.end is not None and run.end.after is not None}
        lines = [(run.start.time_ns, _run_line(run, span, notes, width), True) for run in runs]
        for entry in markers_of(span):
            if isinstance(entry.record, Travel) and entry.record.is_anew:
                continue  # the marker that follows says what was done
            if entry.record.time_ns not in made and entry.generation <= span.chapter.count_seen:
                time_ns = told_ns(entry.record.time_ns, entry.generation, commit_ns)
                text = record_line(entry, path_display, width, time_ns) + ("" if entry.is_live else "  [dead]")
                lines.append((entry.record.time_ns, text, entry.is_live))
        for _, line, is_live in sorted(lines, key=lambda line: line[0]):
            emit(line if is_live and not is_past else paint(line, "dim"))
        if is_past:
            emit(paint(_commit_line(span.chapter, width), "dim"))
        elif span.end is None and (count := count_since(session)):
            emit(f"and {count} record{'s' if count > 1 else ''} since, not snapshotted yet")
        commit_ns = span.chapter.ended_ns
        hidden += _beside(span, notes)
    if hidden and options().guard is None:
        counts = [f"{count} {what}{'s' if count > 1 else ''}" for what, count in hidden.items()]
        say(f"note: {', '.join(counts)} not shown; -v shows them")


def _run_line(run: Run, span: ChapterSpan, notes: Sequence[Note], width: int) -> str:
    """Return a run in one line: the generation that it made, its command, how it ended, what was
    asked and refused.  On a terminal the command is cut where the line would be too wide.
    """
    after = generation_of(run.end.after, span.chapter.journal) if run.end is not None else None
    number = str(after) if after is not None else ""
    mine = [note for note in notes if isinstance(note, AskNote | RefusalNote) and note.process.run == run.number]
    counts = _counted(mine)
    more = [f"{count} {word}{'s' if count > 1 else ''}" for word, count in sorted(counts.items())]
    told = ", ".join(text for text in (*run_result(run), *more) if text)
    head = f"{local_time(run.start.time_ns)}  {number:>{width}}  {'run':<8}  "
    text = fitting_command(note_text(run.start).rpartition("  (in ")[0], len(f"{head}  ({told})"))
    return f"{head}{text}  ({told})"


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


def _note_line(note: Note, width: int) -> str:
    return f"{local_time(note.time_ns)}  {'':>{width}}  {note_word(note):<8}  {note_text(note)}"


def _commit_line(chapter: Chapter, width: int) -> str:
    return f"{_end_line(chapter.ended_ns, 'commit', width):<{31 + width}}  {chapter.commit}"


def _end_line(ended_ns: int | None, word: str, width: int) -> str:
    when = local_time(ended_ns) if ended_ns is not None else ""
    return f"{when:<19}  {'':>{width}}  {word}"


def _width(spans: Sequence[ChapterSpan]) -> int:
    return max(len(str(span.chapter.timeline.present + 1)) for span in spans)
