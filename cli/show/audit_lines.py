"""The notes of the audit, in words and as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, assert_never

import msgspec

from yolofs.access.asks import how_it_ended
from yolofs.audit.audit import (
    AskNote,
    JournalEnd,
    Note,
    Process,
    RefusalNote,
    RuleChange,
    RuleNote,
    RunEnd,
    RunStart,
    records_before,
)
from yolofs.cli.show.ask_lines import UNKNOWN_NAMES
from yolofs.cli.show.json_forms import command_fields, text_fields
from yolofs.cli.show.run_lines import command_line
from yolofs.journal.journal import Journal
from yolofs.paths import Generation, display, is_in
from yolofs.rules import RuleState
from yolofs.session.history.chapters import Chapter
from yolofs.text.percent import unquote_to_bytes

_MOST_ALIKE = 3
"""More refusals than that in one directory, or in several, are told in one line where lists are
short.
"""


def notes_between(
    chapter: Chapter, start: Generation, end: Generation | None, paths: Sequence[bytes]
) -> Iterator[Note]:
    """Yield the notes from the time between two generations, or only those about ``paths`` and what
    is below.

    They come in the order in which they were noted, which may differ from the order of the events.
    """
    places = marker_places(chapter.journal)
    for note in chapter.notes:
        is_wanted = not (start and comes_before(note, *places[start - 1]))
        is_wanted = is_wanted and (not end or comes_before(note, *places[end - 1]))
        if is_wanted and is_about_any(note, paths):
            yield note


def is_about_any(note: Note, paths: Sequence[bytes]) -> bool:
    """Tell whether a note is about one of some paths or what is below; without paths any is."""
    return not paths or any(_is_about(note, path) for path in paths)


def _is_about(note: Note, path: bytes) -> bool:
    """Tell whether a note is about a path or what is below it, or may count it among others."""
    if isinstance(note, RefusalNote) and note.below:
        below = unquote_to_bytes(note.below)
        return is_in(below, path) or is_in(path, below)
    return is_in(_path(note), path)


def marker_places(journal: Journal) -> list[tuple[int, int]]:
    """Return of each marker how many records are before it, and its time."""
    places = []
    count = 0
    for records, at in zip(journal.segment_counts(), journal.markers, strict=False):
        count += records
        places.append((count, at.marker.time_ns))
        count += 1
    return places


def comes_before(note: Note, records: int, time_ns: int) -> bool:
    """Tell whether something was noted before a record was made that had so many records before it.

    Where that is not known the times tell.  Records have the kernel's coarse time, which moves by
    ticks of some milliseconds: within one, a note may come late.
    """
    count = records_before(note)
    return count <= records if count is not None else note.time_ns <= time_ns


def note_word(note: Note) -> str:
    """Return what kind of note it is."""
    match note:
        case AskNote():
            return "ask"
        case RefusalNote():
            return "refusal"
        case RuleChange():
            return "rule"
        case JournalEnd():
            return "journal"
        case RunStart():
            return "run"
        case RunEnd():
            return "run-end"
        case _:
            assert_never(note)


def note_text(note: Note) -> str:
    """Return a note in words."""
    match note:
        case AskNote():
            size = f" ({note.size} byte{'s' if note.size != 1 else ''})" if note.size is not None else ""
            how = how_it_ended(note.outcome, display(note.by.encode()), is_allowed=note.is_allowed)
            how += f" ({note.waited_ms / 1000:.1f} s)"
            others = f" and {note.requesters - 1} more" if note.requesters > 1 else ""
            return f"{_verb(note)} {_shown(note.path)}{size}, {_process_text(note.process)}{others}: {how}"
        case RefusalNote():
            why = f": {_reason(note.rule, note.state)}" if note.rule is not None else ""
            if note.below:
                by = _process_text(note.process)
                return f"{_verb(note)}, {note.count} refused below {_shown(note.below)}, {by}{why}"
            times = f" ({note.count} times)" if note.count > 1 else ""
            return f"{_verb(note)} {_shown(note.path)}, {_process_text(note.process)}{times}{why}"
        case RuleChange():
            change = f"{note.before or 'no rule'} -> {note.state or 'no rule'}"
            return f"{_shown(note.key)}: {change} ({note.source})"
        case JournalEnd():
            return "ended by a commit" if note.is_commit else "ended by an abort"
        case RunStart():
            return f"{note.run}: {command_line(map(unquote_to_bytes, note.command))}  (in {_shown(note.directory)})"
        case RunEnd():
            return f"{note.run}: " + (f"exit {note.code}" if note.code is not None else "killed")
        case _:
            assert_never(note)


def refusals_folded(notes: Iterable[Note]) -> list[Note]:
    """Return notes with refusals that are alike as one: those at one path; many of one directory;
    and many of several.
    """
    by_path = _merged(notes, lambda note: (note.below or note.path, bool(note.below)), most=0)
    by_directory = _merged(by_path, lambda note: note.below or _directory(note), most=_MOST_ALIKE)
    return _merged(by_directory, lambda _: "", most=_MOST_ALIKE)


def _merged(notes: Iterable[Note], place_of: Callable[[RefusalNote], object], *, most: int) -> list[Note]:
    """Return notes with one in place of more than ``most`` refusals with the same place, operation,
    rule and run: at the first of them.
    """
    found: dict[object, list[Note]] = {}
    for note in notes:
        key: object = id(note)
        if isinstance(note, RefusalNote):
            key = place_of(note), note.operation, note.rule, note.process.run
        found.setdefault(key, []).append(note)
    kept: list[Note] = []
    for alike in found.values():
        refusals = [note for note in alike if isinstance(note, RefusalNote)]
        kept += [_one_of(refusals)] if len(refusals) > max(most, 1) else alike
    return kept


def _one_of(alike: Sequence[RefusalNote]) -> RefusalNote:
    paths = {note.path for note in alike}
    below = ""
    if len(paths) > 1 or any(note.below for note in alike):
        below = os.path.commonpath([note.below or _directory(note) for note in alike])
    return msgspec.structs.replace(alike[-1], count=sum(note.count for note in alike), path=alike[0].path, below=below)


def _directory(note: RefusalNote) -> str:
    return os.path.dirname(note.path)


def note_fields(note: Note) -> dict[str, Any]:
    """Return a note as JSON."""
    fields: dict[str, Any] = {"kind": note_word(note), "time_ns": note.time_ns}
    match note:
        case AskNote():
            fields |= {"id": note.id, **_access_fields(note), "size": note.size, "requesters": note.requesters}
            return fields | {
                "outcome": note.outcome,
                "by": note.by,
                "waited_ms": note.waited_ms,
                "allowed": note.is_allowed,
            }
        case RefusalNote():
            below = text_fields("below", unquote_to_bytes(note.below)) if note.below else {"below": None}
            return fields | _access_fields(note) | {"count": note.count, **below}
        case RuleChange():
            key = text_fields("key", unquote_to_bytes(note.key))
            return fields | key | {"state": note.state, "before": note.before, "source": note.source}
        case JournalEnd():
            return fields | {"commit": note.is_commit}
        case RunStart():
            directory = text_fields("directory", unquote_to_bytes(note.directory))
            words = command_fields("command", map(unquote_to_bytes, note.command))
            return fields | {"run": note.run, **words, **directory, "before": note.before.generation}
        case RunEnd():
            after = note.after.generation if note.after is not None else None
            return fields | {"run": note.run, "code": note.code, "after": after}
        case _:
            assert_never(note)


def _access_fields(note: AskNote | RefusalNote) -> dict[str, Any]:
    process, rule = note.process, note.rule
    return {
        **text_fields("path", unquote_to_bytes(note.path)),
        "operation": note.operation,
        "state": note.state,
        "rule": {**text_fields("key", unquote_to_bytes(rule.key)), "source": rule.source} if rule else None,
        "process": {
            "pid": process.pid,
            **text_fields("name", unquote_to_bytes(process.name)),
            **command_fields("command", map(unquote_to_bytes, process.command)),
            "run": process.run or None,
        },
        "parent": {
            "pid": process.parent,
            **command_fields("command", map(unquote_to_bytes, process.parent_command)),
        },
    }


def _path(note: Note) -> bytes:
    match note:
        case AskNote(path=path) | RefusalNote(path=path) | RuleChange(key=path):
            return unquote_to_bytes(path)
        case RunStart(directory=path):
            return unquote_to_bytes(path)
        case JournalEnd() | RunEnd():
            return b""
        case _:
            assert_never(note)


def _verb(note: AskNote | RefusalNote) -> str:
    """Return what was to be done to the path."""
    return "change metadata of" if note.operation == "metadata" else note.operation


def _shown(quoted: str) -> str:
    return display(unquote_to_bytes(quoted))


def _process_text(process: Process) -> str:
    return f"{_shown(process.name) or '?'} {process.pid}" if process.pid else "a process that could not be seen"


def _reason(rule: RuleNote, state: str) -> str:
    """Return why a rule refused something, or rather the state that was in force."""
    if RuleState(rule.state).may_write and state != rule.state:
        return f"the file has {UNKNOWN_NAMES}"
    return f'{_shown(rule.key)} is "{rule.state}" ({rule.source})'
