"""The records of a journal as lines for people and as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_never

from yolofs.audit.runs import run_of, runs_in
from yolofs.cli.output import local_time
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import absolute, display


class RecordEntry(NamedTuple):
    """One record and where it stands."""

    generation: int
    """The one that its segment leads to, or that it starts if it is a marker."""
    is_live: bool
    record: Record
    records: int
    """How many the journal has before it."""


def record_word(record: Record) -> str:
    """Return what a record does, in a word."""
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


def record_line(entry: RecordEntry, path_display: PathDisplay, width: int, time_ns: int) -> str:
    """Return a record in one line; ``width`` is that of the column of generations, ``time_ns`` when
    it counts as made.
    """
    record = entry.record
    head = f"{local_time(time_ns)}  {entry.generation:>{width}}  {record_word(record):<8}"
    runs = sorted(runs_in(record) - {0})
    by = f"  [run{'s' if len(runs) > 1 else ''} {', '.join(map(str, runs))}]" if runs else ""
    return f"{head}  {_record_text(record, path_display)}".rstrip() + by


def _record_text(record: Record, path_display: PathDisplay) -> str:
    match record:
        case Stage():
            how = ", metadata only" if record.origin is not None else ""
            how = f"copied up{how}" if record.base is not None else how.removeprefix(", ")
            how += ", known by no name" if record.is_nameless else ""
            return path_display.show_path(record.path) + (f"  ({how})" if how else "")
        case Delete():
            return path_display.show_path(record.path)
        case Keep():
            path = record.had if record.had is not None else record.path
            return f"{path_display.show_path(path)}  ({_kept_as(record, path_display)})"
        case Rename():
            arrow = "<->" if record.exchange else "->"
            return f"{path_display.show_path(record.src)} {arrow} {path_display.show_path(record.dst)}"
        case Snapshot():
            return display(record.name)
        case Travel() if record.is_anew:
            return f"to {record.generation}, from where all is written anew"
        case Travel():
            return f"to {record.generation}" + (f" ({display(record.name)})" if record.name else "")
        case _:
            assert_never(record)


def _kept_as(record: Keep, path_display: PathDisplay) -> str:
    if record.had is not None:
        return "what base had"
    if record.ino is not None:
        return "staged, metadata only" if record.origin is not None else "staged"
    if record.source == record.path:
        return "as in base"
    return f"from {path_display.show_path(record.source)}" if record.source is not None else "deleted"


def record_fields(entry: RecordEntry, root: bytes) -> dict[str, Any]:
    """Return a record for a JSON document, with absolute paths."""
    record = entry.record
    fields: dict[str, Any] = {
        "kind": record_word(record),
        "time_ns": record.time_ns,
        "generation": entry.generation,
        "live": entry.is_live,
    }
    run = run_of(record)
    if run:
        fields["run"] = run
    if also := sorted(runs_in(record) - {0, run}):
        fields["also"] = also
    match record:
        case Stage():
            fields |= text_fields("path", absolute(root, record.path))
            fields |= {"ino": record.ino, "copied_up": record.base is not None}
            if record.origin is not None:
                fields |= text_fields("origin", absolute(root, record.origin))
        case Delete():
            fields |= text_fields("path", absolute(root, record.path))
        case Keep():
            path = record.had if record.had is not None else record.path
            fields |= text_fields("path", absolute(root, path))
            fields |= {"ino": record.ino, "base_had": record.had is not None}
            source = record.source if record.source is not None else record.origin
            if source is not None and record.had is None:
                fields |= text_fields("origin", absolute(root, source))
        case Rename():
            fields |= text_fields("path", absolute(root, record.dst))
            fields |= text_fields("old_path", absolute(root, record.src))
        case Snapshot():
            fields |= text_fields("name", record.name)
        case Travel():
            fields |= text_fields("name", record.name)
            fields |= {"target": record.generation, "anew": record.is_anew}
        case _:
            assert_never(record)
    return fields
