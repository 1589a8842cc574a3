"""What a run changed, said on stderr so that a person or an agent can act on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yolofs.access.asks import AskOutcome
from yolofs.access.questions import Operation
from yolofs.audit.audit import UNATTENDED, AskNote, Note, Point, RefusalNote, read_audit
from yolofs.audit.runs import Run, generation_of, read_runs
from yolofs.changes.changes import Change, ChangeKind, compare
from yolofs.changes.counting import counts
from yolofs.cli.output import progress, say, terminal_width
from yolofs.cli.project.which_project import session_directory
from yolofs.cli.rules.hidden_tracked import untracked_lines
from yolofs.cli.run.changes_of_others import ChangesByRun, divide_by_run, meanwhile, meanwhile_fields, other_runs_text
from yolofs.cli.run.early_summary import EarlySummary
from yolofs.cli.show.audit_lines import note_fields, note_text, note_word, refusals_folded
from yolofs.cli.show.folding import ChangeLine
from yolofs.cli.show.json_forms import change_fields, command_fields, text_fields
from yolofs.cli.show.listing import (
    PathDisplay,
    counts_text,
    group_lines,
    has_mark,
    line_text,
    summary,
    without_scratch,
)
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener
from yolofs.journal.timeline import BASE
from yolofs.paths import Generation, display, in_shell, is_below
from yolofs.rules.preset import SOURCE
from yolofs.rules.preset_table import GOVERNING, HISTORIES, INSTALLED
from yolofs.rules.rule_states import RuleState
from yolofs.session.attribution import attribute
from yolofs.session.session import Session, SessionAccess
from yolofs.state.regions import Region, Regions
from yolofs.state.tree import Tree
from yolofs.store.readers import reading_store
from yolofs.text.json_text import encode_json
from yolofs.text.percent import unquote_to_bytes

if TYPE_CHECKING:
    from yolofs.cli.run.read_only_places import ReadOnlyPlace
    from yolofs.hostcode.mark import Marks

_SHOWN_OF_NOTE = 40
"""How many lines each section shows at most of what matters most: what is marked or deleted.

How many more there are is always said.
"""
_SHOWN = 10
"""How many lines each part has with those of the rest."""
_LEAST_OF_REST = 3
"""How many of these lines are of the rest in any case."""
_COMMANDS = 5
"""How many commands are told that would allow something, for each reason why it was not."""
_NOTES_FOR_A_COMMAND = 2
"""How many notes there may be for each of these."""
_MOST_ROWS = 23
"""If a summary takes more rows, less is told of what is new, asked and refused: what matters would
be off the screen of a terminal with 24.
"""
_LOCK = b".lock"
_BESIDE_PACKAGES: Mapping[bytes, tuple[bytes, ...]] = {
    b".local/lib": (b".local/bin", b".local/share/man"),
    b".local/share/uv": (b".local/bin",),
    b".local/share/pipx": (b".local/bin", b".local/share/man"),
    b".local/pipx": (b".local/bin", b".local/share/man"),
    b".local/.crates.toml": (b".local/.crates2.json", b".local/bin"),
    b".cargo/.crates.toml": (b".cargo/.crates2.json", b".cargo/bin"),
}
"""Where pip, uv, pipx and cargo put packages or lists of them in a home, and where they put the
rest of a package.
"""
_ASKING = frozenset(state.value for state in RuleState if state.may_ask)
_LOOKING = frozenset({Operation.READ.value, Operation.LIST.value, Operation.EXECUTE.value})
"""What a rule that lets nothing be changed allows, too."""
_ORDER = (
    ChangeKind.DELETED,
    ChangeKind.TYPE,
    ChangeKind.MODIFIED,
    ChangeKind.RENAMED,
    ChangeKind.METADATA,
    ChangeKind.ADDED,
)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended."""

    number: int
    command: tuple[bytes, ...]
    code: int
    before: Point
    after: Generation | None
    """The generation that holds what it changed; None if nothing had changed, or none was
    wanted.
    """
    has_changes: bool
    """Whether anything may have changed."""
    started_ns: int
    """In nanoseconds since 1970."""
    going_on: tuple[int, ...] = ()
    """The runs that still go on."""
    read_only: Sequence[ReadOnlyPlace] = ()
    """Read-only places that the command line names for writing, if the command may have failed
    there.
    """


@dataclass(frozen=True, slots=True)
class RunSpan:
    """The generations between which a run lies."""

    before: Generation
    after: Generation | None
    """None: up to now."""

    @property
    def text(self) -> str:
        """The range as `yolofs diff` takes it."""
        if self.after is None:
            return f"{self.before}.."
        return str(self.after) if self.after == self.before + 1 else f"{self.before}..{self.after}"


@dataclass(frozen=True, slots=True)
class Sections:
    """The changes of a run, in the order in which they matter."""

    deleted: list[ChangeLine]
    """In the project."""
    emptied: list[ChangeLine]
    """Files in the project that had content, and have none."""
    outside: list[ChangeLine]
    """Outside the project."""
    others: list[ChangeLine]


def summarise(project: bytes, ended: EndedRun, early: EarlySummary | None, *, as_json: bool) -> None:
    """Say what a run changed, and separately what others did meanwhile; ``early`` is the part
    already read.
    """
    with reading_store(session_directory(project)):
        _summarise(project, ended, early, as_json=as_json)


def _summarise(project: bytes, ended: EndedRun, early: EarlySummary | None, *, as_json: bool) -> None:
    opened, before = early.take() if early is not None else (None, None)
    with opened if opened is not None else Session.open(project, SessionAccess.READ) as session:
        known = generation_of(ended.before, session.journal)
        span = RunSpan(known if known is not None else BASE, ended.after)
        if early is None or span.before != early.generation:
            before = None
        changes = _changes(session, span, before) if ended.has_changes else []
        work = divide_by_run(
            changes, ended.number, attribute(session.timeline, session.journal, span.before, span.after)
        )
        if known is None:  # what a commit has left staged may be older than the run
            work = work.without(run.number for run in read_runs(session.directory) if _ended_before(run, ended))
        notes = [note for note in read_audit(session.directory) if _is_of(note, ended)]
        path_display = PathDisplay(session.base.root, session.base.relative(session.project))
        marks = marks_of(session, changes)
        if as_json:
            say(encode_json(_document(ended, span, work, notes, path_display, session.regions, marks)).decode())
            return
        lines: list[str] = []
        lines_with = _lines_with(session, ended, span, work, path_display, marks)
        for most in range(_SHOWN, _LEAST_OF_REST - 1, -1):
            lines = lines_with(most)
            lines += _note_lines(ended, notes, project, room=_MOST_ROWS - _rows(lines))
            if _rows(lines) <= _MOST_ROWS:
                break
    if known is None:
        say(f"yolofs: run {ended.number}: what was staged has been committed or dropped meanwhile; yolofs status")
    for line in lines:
        say(line)


def sort(lines: Iterable[ChangeLine], path_display: PathDisplay) -> Sections:
    """Return the changes of a run, section by section."""
    sections = Sections([], [], [], [])
    for line in lines:
        if not path_display.holds(line.change):
            sections.outside.append(line)
        elif line.deletes:
            sections.deleted.append(line)
        elif line.change.is_emptied:
            sections.emptied.append(line)
        else:
            sections.others.append(line)
    return sections


def _changes(session: Session, span: RunSpan, before: Tree | None) -> list[Change]:
    with progress("comparing") as update:
        if before is None:
            before = session.state(span.before)
        after = session.state_after(before, span.before, span.after)
        return compare(before, after, session.base, session.store, progress=update)


def _ended_before(run: Run, ended: EndedRun) -> bool:
    return run.end is not None and run.end.time_ns < ended.started_ns


def _is_of(note: Note, ended: EndedRun) -> bool:
    """Tell whether a note is about an access of a run; a process that could not be seen may be one
    of it.
    """
    if not isinstance(note, AskNote | RefusalNote) or note.time_ns < ended.started_ns:
        return False
    return note.process.run == ended.number or not (note.process.run or note.process.pid)


def _is_history(note: Note) -> bool:
    """Tell whether a program was refused to keep what was typed at it: each time that it runs, and
    it goes on.
    """
    if not isinstance(note, RefusalNote) or note.rule is None:
        return False
    return note.rule.source == SOURCE + HISTORIES and note.operation == Operation.CREATE.value


def _note_lines(ended: EndedRun, notes: Sequence[Note], project: bytes, *, room: int) -> list[str]:
    """Return what was asked and refused, and what allows it the next time: as much of it as has
    room in so many rows, and something of each kind in any case.
    """
    kept = [note for note in notes if not _is_history(note)]
    notes = refusals_folded(kept)
    lines: list[str] = []
    for most in range(_COMMANDS, 0, -1) if notes else ():
        shown = notes[: most * _NOTES_FOR_A_COMMAND]
        lines = [f"yolofs: while run {ended.number} went on, asked or refused:"]
        lines += [f"  {note_word(note)}  {note_text(note)}" for note in shown]
        if len(notes) > len(shown):
            lines.append(f"  … and {len(notes) - len(shown)} more: yolofs log --run {ended.number}")
        lines += _refused_lines(notes, most) + _link_lines(notes, project, most) + _unanswered_lines(kept, most)
        lines += _other_refusal_lines(notes, most)
        if _rows(lines) <= room:
            break
    return lines


def _rows(lines: Sequence[str]) -> int:
    """Return how many rows lines take on the terminal that stderr is; without one, their number."""
    columns = terminal_width(sys.stderr)
    if not columns:
        return len(lines)
    from yolofs.cli.show.text_width import width_of  # for terminals alone

    return sum(max(1, -(-width_of(line) // columns)) for line in lines)


def _refused_lines(notes: Sequence[Note], most: int) -> list[str]:
    """Return what allows the next time what a rule let only be read."""
    commands: dict[str, None] = {}
    for note in notes:
        if isinstance(note, RefusalNote) and _may_be_allowed(note):
            commands[f"  yolofs rule allow {' '.join(map(in_shell, _to_allow_together(note)))}"] = None
    return ["to allow next time what was refused:", *_first(list(commands), most)] if commands else []


def _to_allow_together(note: RefusalNote) -> list[bytes]:
    """Return the paths that the program needs, given what it was refused first."""
    path = unquote_to_bytes(note.below or note.path)
    if path.endswith(_LOCK):
        return [path.removesuffix(_LOCK), path]  # it takes the place of that
    if note.rule is not None and note.rule.source == SOURCE + INSTALLED:
        whole = unquote_to_bytes(note.rule.key).removesuffix(b"/**")
        for name, beside in _BESIDE_PACKAGES.items():
            if whole.endswith(b"/" + name):
                return [whole, *(whole.removesuffix(name) + one for one in beside)]
    return [path]


def _link_lines(notes: Sequence[Note], project: bytes, most: int) -> list[str]:
    """Return the lines that say how to allow symbolic links which were refused at the very path of
    a rule.

    Nothing else is refused where writing is allowed: the rule would follow the link.

    Outside the project no command is offered: the directory may be all of somebody's home.
    """
    commands: dict[str, None] = {}
    for note in notes:
        if isinstance(note, RefusalNote) and _is_link_at_rule(note):
            path = unquote_to_bytes(note.path)
            directory = os.path.dirname(path)
            if is_below(directory, project):
                commands[f"  yolofs rule unset {in_shell(path)} && yolofs rule allow {in_shell(directory)}"] = None
            else:
                commands[f"  {display(path)}"] = None
    why = "no link may be put at the very path of a rule: the rule would follow it; a rule for its directory allows it:"
    return [why, *_first(list(commands), most)] if commands else []


def _other_refusal_lines(notes: Sequence[Note], most: int) -> list[str]:
    """Return what tells more of a refusal that no command is offered to lift: what the rule hides
    or denies is a secret, perhaps, or governs yolofs.
    """
    commands: dict[str, None] = {}
    for note in notes:
        if not isinstance(note, RefusalNote) or note.state in _ASKING:  # the unanswered ask has its command
            continue
        if not (_may_be_allowed(note) or _is_link_at_rule(note)):
            commands[f"  yolofs rule explain {in_shell(unquote_to_bytes(note.path))}"] = None
    return ["to see which rule decides there:", *_first(list(commands), most)] if commands else []


def _may_be_allowed(note: RefusalNote) -> bool:
    """Tell whether a path may only be read by a rule that a person may want to change: not what
    governs yolofs.
    """
    is_governing = note.rule is None or note.rule.source == SOURCE + GOVERNING
    return note.state == RuleState.READ_ONLY.value and not is_governing


def _is_link_at_rule(note: RefusalNote) -> bool:
    """Tell whether a symbolic link was refused at the very path of a rule."""
    is_creation = note.operation == Operation.CREATE.value
    return is_creation and note.state == RuleState.ALLOW.value and note.rule is not None and note.rule.key == note.path


def _first(commands: Sequence[str], most: int) -> list[str]:
    more = [f"  … and {len(commands) - most} more"] if len(commands) > most else []
    return [*commands[:most], *more]


def _unanswered_lines(notes: Sequence[Note], most: int) -> list[str]:
    """Return what was answered as nobody watched, or nobody did in time, and what allows it the
    next time.
    """
    unanswered = [note for note in notes if isinstance(note, AskNote) and note.outcome == AskOutcome.TIMEOUT.value]
    alone = [note for note in unanswered if note.by == UNATTENDED]
    late = [note for note in unanswered if note.by != UNATTENDED]
    changed = {note.path for note in notes if isinstance(note, RefusalNote) and note.operation not in _LOOKING}
    lines: list[str] = []
    for some, why in ((alone, "nobody watches, so {} had no answer"), (late, "{} had no answer in time")):
        lines += _to_allow([note for note in some if not note.is_allowed], changed, why, most)
        lines += _to_allow([note for note in some if note.is_allowed], changed, why, most)
    return lines


def _to_allow(notes: Sequence[AskNote], changed: Container[str], why: str, most: int) -> list[str]:
    """Return the commands that allow these asks; those at paths in ``changed`` allow the change as
    well, as a run is asked once about a path and a later try is refused.

    If an ask was allowed, so was what the run did there later, without a note: a rule for reading
    alone would refuse that, and "write-ask" does not.
    """
    commands: dict[bytes, str] = {}
    for note in notes:
        path = unquote_to_bytes(note.path)
        only_reads = note.operation in _LOOKING and note.path not in changed
        reading = "write-ask" if note.is_allowed else "read-only"
        commands[path] = reading if only_reads and commands.get(path) != "allow" else "allow"
    if not commands:
        return []
    count, them, were = (f"{len(commands)} asks", "them", "were") if len(commands) > 1 else ("1 ask", "it", "was")
    so, without = (f" and {were} allowed (ask_default)", " without an ask") if notes[0].is_allowed else ("", "")
    lines = [f"{why.format(count)}{so}; to allow {them}{without} next time:"]
    return [*lines, *_first([f"  yolofs rule {state} {in_shell(path)}" for path, state in commands.items()], most)]


def _lines_with(
    session: Session, ended: EndedRun, span: RunSpan, work: ChangesByRun, path_display: PathDisplay, marks: Marks
) -> Callable[[int], list[str]]:
    """Return what gives the lines about a run's changes, at most so many of each section.

    What takes long, such as asking git, is done here, once.
    """
    own = without_scratch(work.own, session.regions)
    others = meanwhile(work, ended.going_on, session.regions, span.text)
    if not own:
        # of runs that go on there is nothing to say, unless somebody changed something
        told = [f"yolofs: run {ended.number}: no changes; meanwhile:", *others] if work.others and others else []
        return lambda _: [*told]
    where = f"generation {span.after}" if span.after is not None else f"staged since generation {span.before}"
    first = f"yolofs: run {ended.number}: {summary(own)}; {where}"
    see = f"yolofs diff --run {ended.number}"  # a commit leaves it true: generations are numbered anew then
    shortener = Shortener(session, path_display, f"{see} --list")
    short = shortener.fold(own, lambda _: False, marks)
    sections, groups = sort(short.lines, path_display), group_lines(short.groups, shortener, path_display)
    left_out = len(work.own) - len(own)
    last = [f"and {left_out} in scratch directories: {see} --scratch"] if left_out else []
    last += untracked_lines(session, work.own)
    if others:
        last += ["meanwhile, by others:", *others]
    undo = f"yolofs travel {span.before}" + (" (what others did since goes, too)" if others or work.also else "")
    last.append(f"see it: {see}        undo it: {undo}")

    def lines_with(most: int) -> list[str]:
        lines = [first]
        for title, some, inside in (
            ("deleted:", sections.deleted, True),
            ("emptied:", sections.emptied, True),
            ("outside the project:", sections.outside, False),
            ("in the project:", sections.others, True),
        ):
            folded = groups if some is sections.others else []
            if some or folded:
                lines.append(title)
                lines += _listed(some, path_display, work, marks, inside=inside, see=see, most=most)
                lines += [f"  {line}" for line in folded]
        return lines + last

    return lines_with


def _listed(
    some: Sequence[ChangeLine],
    path_display: PathDisplay,
    work: ChangesByRun,
    marks: Marks,
    *,
    inside: bool,
    see: str,
    most: int,
) -> list[str]:
    """Return the lines of one section, by kind, ``most`` at most.  Marked changes come first, so
    that all of them are shown; however many these are, some of the rest is shown, too.
    """

    def matters(line: ChangeLine) -> bool:
        return has_mark(line, marks) or line.deletes or line.change.is_emptied

    def rank(line: ChangeLine) -> tuple[bool, bool, int]:
        is_loss = line.deletes or line.change.is_emptied
        return not has_mark(line, marks), not is_loss, _ORDER.index(line.change.kind)

    some = sorted(some, key=rank)
    of_note = [line for line in some if matters(line)]
    rest = [line for line in some if not matters(line)]
    most = max(most - len(of_note), _LEAST_OF_REST)
    lines = []
    for line in (*of_note[:_SHOWN_OF_NOTE], *rest[:most]):
        text = line_text(line, path_display, marks, f"{see} --list", inside=inside)
        lines.append(f"  {text}" + other_runs_text(work.also.get(id(line.change), ())))
    left = [*of_note[_SHOWN_OF_NOTE:], *rest[most:]]
    if more := len(left):
        left_out = (change for line in left for change in (line.change, *line.inside))
        lines.append(
            f"  … and {more} more line{'s' if more > 1 else ''} ({counts_text(counts(left_out))}): {see} --list"
        )
    return lines


def _document(
    ended: EndedRun,
    span: RunSpan,
    work: ChangesByRun,
    notes: Sequence[Note],
    path_display: PathDisplay,
    regions: Regions,
    marks: Marks,
) -> dict[str, Any]:
    sections = sort((ChangeLine(change, []) for change in work.own), path_display)
    sections.outside.sort(key=lambda line: line.change.kind is not ChangeKind.DELETED)  # stable: by path otherwise
    is_outside = [regions.of_all(line.change.paths) is Region.OUTSIDE for line in sections.outside]
    return {
        "run": ended.number,
        **command_fields("command", ended.command),
        "code": ended.code,
        "before": span.before,
        "after": span.after,
        "counts": counts(work.own),
        "outside": sum(is_outside),
        "changes": [
            change_fields(line.change, path_display.root, regions, marks)
            | {"also_by": [number or None for number in work.also.get(id(line.change), ())]}
            for section in (sections.deleted, sections.emptied, sections.outside, sections.others)
            for line in section
        ],
        "meanwhile": meanwhile_fields(work, ended.going_on),
        "notes": [note_fields(note) for note in notes],
        "read_only": [
            text_fields("path", path_display.path) | {"instead": path_display.advice}
            for path_display in ended.read_only
        ],
        "undo": f"yolofs travel {span.before}",
    }
