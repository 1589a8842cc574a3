"""What a run changed, said on stderr so that a person or an agent can act on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from yolofs.audit import AskNote, Note, Point, RefusalNote, read_audit
from yolofs.changes import Change, Kind, compare
from yolofs.cli.auditform import note_fields, note_text, note_word
from yolofs.cli.jsonform import change_fields
from yolofs.cli.listing import Place, change_line, counts, summary, without_scratch
from yolofs.cli.output import progress, say
from yolofs.paths import Generation, RelPath, is_below
from yolofs.regions import Region, Regions
from yolofs.runs import generation_of
from yolofs.session import Access, Session

_SHOWN = 40
"""How many lines each part has; how many more there are is always said."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended."""

    number: int
    command: tuple[bytes, ...]
    code: int
    before: Point
    after: Generation | None
    """The snapshot that holds what it changed; None if nothing had changed, or none was wanted."""
    has_changes: bool
    """Whether anything may have changed."""
    started_ns: int
    """In nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The changes of a run, in the order in which they matter."""

    deleted: list[Change]
    """In the project."""
    outside: list[Change]
    """Outside the project, deletions first."""
    others: list[Change]


def summarise(project: bytes, ended: Ended, *, as_json: bool) -> None:
    """Say what a run changed."""
    with Session.open(project, Access.READ) as session:
        if generation_of(ended.before, session.journal) is None:
            say(f"yolofs: run {ended.number}: what was staged has been committed or dropped meanwhile; yolofs status")
            return
        changes = _changes(session, ended) if ended.has_changes else []
        notes = [note for note in read_audit(session.directory) if _is_of(note, ended)]
        place = Place(session.base.root, session.base.relative(session.project))
        regions = session.regions
    if as_json:
        say(msgspec.json.encode(_document(ended, changes, notes, place, regions)).decode())
        return
    shown = without_scratch(changes, regions)
    changes, left_out = shown, len(changes) - len(shown)
    if changes:
        for line in _lines(ended, changes, place, left_out):
            say(line)
    for line in _note_lines(ended, notes):
        say(line)


def sort(changes: Iterable[Change], place: Place) -> Parts:
    """Return the changes of a run part by part."""
    parts = Parts([], [], [])
    for change in changes:
        if not place.holds(change):
            parts.outside.append(change)
        elif change.kind is Kind.DELETED:
            parts.deleted.append(change)
        else:
            parts.others.append(change)
    parts.outside.sort(key=lambda change: change.kind is not Kind.DELETED)  # stable: by path otherwise
    return parts


def fold(changes: Sequence[Change]) -> list[tuple[Change, int]]:
    """Return changes without those in a directory that was itself added or deleted, which is told how many it holds."""
    folded: list[tuple[Change, int]] = []
    holders: list[tuple[RelPath, Kind, int]] = []
    for change in sorted(changes, key=lambda change: change.path.split(b"/")):
        while holders and not is_below(change.path, holders[-1][0]):
            holders.pop()
        if holders and holders[-1][1] is change.kind:
            at = holders[-1][2]
            folded[at] = (folded[at][0], folded[at][1] + 1)
            continue
        if change.kind in (Kind.ADDED, Kind.DELETED):
            holders.append((change.path, change.kind, len(folded)))
        folded.append((change, 0))
    return folded


def _changes(session: Session, ended: Ended) -> list[Change]:
    with progress("comparing") as update:
        return compare(
            session.state(Generation(ended.before.generation)),
            session.state(ended.after),
            session.base,
            session.store,
            progress=update,
        )


def _is_of(note: Note, ended: Ended) -> bool:
    """Tell whether a note is about an access that was asked for or refused while a run went on."""
    return isinstance(note, AskNote | RefusalNote) and note.time_ns >= ended.started_ns


def _note_lines(ended: Ended, notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    lines = [f"yolofs: while run {ended.number} went on, asked or refused:"]
    lines += [f"  {note_word(note)}  {note_text(note)}" for note in notes[:_SHOWN]]
    if len(notes) > _SHOWN:
        lines.append(f"  … and {len(notes) - _SHOWN} more: yolofs log")
    return lines


def _lines(ended: Ended, changes: Sequence[Change], place: Place, left_out: int) -> list[str]:
    parts = sort(changes, place)
    where = (
        f"generation {ended.after}" if ended.after is not None else f"staged since generation {ended.before.generation}"
    )
    lines = [f"yolofs: run {ended.number}: {summary(changes)}; {where}"]
    see = f"yolofs diff {_range(ended)}"
    for title, some, inside in (
        ("deleted:", parts.deleted, True),
        ("outside the project:", parts.outside, False),
        ("in the project:", parts.others, True),
    ):
        if some:
            lines.append(title)
            lines += _listed(some, place, inside=inside, see=see)
    if left_out:
        lines.append(f"and {left_out} in scratch directories: {see} --scratch")
    lines.append(f"see it: {see}        undo it: yolofs travel {ended.before.generation}")
    return lines


def _listed(changes: Sequence[Change], place: Place, *, inside: bool, see: str) -> list[str]:
    """Return the lines of one part; an outside one keeps its deletions first."""
    folded = fold(changes)
    folded.sort(key=lambda found: found[0].kind is not Kind.DELETED)
    lines = []
    for change, count in folded[:_SHOWN]:
        lines.append(f"  {change_line(change, place, inside=inside)}" + (f"  (and {count} in it)" if count else ""))
    more = len(folded) - _SHOWN
    if more > 0:
        lines.append(f"  … and {summary(change for change, _ in folded[_SHOWN:])} in {more} more lines: {see} --list")
    return lines


def _range(ended: Ended) -> str:
    before = ended.before.generation
    if ended.after is None:
        return f"{before}.."
    return str(ended.after) if ended.after == before + 1 else f"{before}..{ended.after}"


def _document(ended: Ended, changes: Sequence[Change], notes: Sequence[Note], place: Place, regions: Regions) -> object:
    parts = sort(changes, place)
    is_outside = [regions.of_all(change.paths) is Region.OUTSIDE for change in parts.outside]
    return {
        "run": ended.number,
        "command": [word.decode(errors="replace") for word in ended.command],
        "code": ended.code,
        "before": ended.before.generation,
        "after": ended.after,
        "counts": counts(changes),
        "outside": sum(is_outside),
        "changes": [
            change_fields(change, place.root, regions)
            for part in (parts.deleted, parts.outside, parts.others)
            for change in part
        ],
        "notes": [note_fields(note) for note in notes],
        "undo": f"yolofs travel {ended.before.generation}",
    }
