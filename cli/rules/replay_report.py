"""``yolofs rule test``: what the rules make of the accesses that this session recorded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, assert_never

from yolofs.access.explain import explain
from yolofs.access.questions import Operation
from yolofs.access.replay import RecordedAccess, Suggestion, asked, suggest, tally, with_rules
from yolofs.audit.audit import AskNote, RefusalNote, read_audit
from yolofs.cli.output import emit, say
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import reading, session_directory
from yolofs.cli.rules.rule_lines import key_text
from yolofs.journal.records import Delete, Keep, Rename, Snapshot, Stage, Travel
from yolofs.paths import display, in_shell
from yolofs.rules import RuleBook, spell_rule
from yolofs.session.session import Session
from yolofs.text.percent import unquote_to_bytes

_SHOWN = 10
_ANSWERS = {"allowed": True, "denied": False}


class Recorded(NamedTuple):
    """What a session recorded of accesses, alike ones together."""

    accesses: tuple[RecordedAccess, ...]
    is_whole: bool
    """Whether what rules let be read is all there: it is known while the view is mounted."""


def read_accesses(project: bytes) -> Recorded:
    """Return what was asked and refused since the last commit or abort, and what rules allowed.

    Of what rules allowed, each path counts once for each operation: reads since the mount, and
    changes that are in the journal.
    """
    with connected(project) as client:
        reads, is_full = client.accesses() if client is not None else ([], True)
    with reading(project) as session:  # before the audit, as the daemon notes refusals now
        changes = list(_changes(session))
    counts: Counter[tuple[bytes, Operation, bool | None]] = Counter()
    for path, operation, answer, count in _asked_or_refused(session_directory(project)):
        counts[path, operation, answer] += count
    asked_about = {(path, operation.is_change) for path, operation, _ in counts}
    free = dict.fromkeys(
        (path, operation) for path, operation in (*reads, *changes) if (path, operation.is_change) not in asked_about
    )
    accesses = [RecordedAccess(path, operation, count, answer) for (path, operation, answer), count in counts.items()]
    accesses += [RecordedAccess(path, operation, 1, None, was_free=True) for path, operation in free]
    return Recorded(tuple(accesses), not is_full)


def _asked_or_refused(directory: bytes) -> Iterator[tuple[bytes, Operation, bool | None, int]]:
    for note in read_audit(directory):
        if isinstance(note, AskNote):
            answer = _ANSWERS.get(note.outcome)
            yield unquote_to_bytes(note.path), Operation(note.operation), answer, note.requesters
        elif isinstance(note, RefusalNote):
            yield unquote_to_bytes(note.path), Operation(note.operation), None, note.count


def _changes(session: Session) -> Iterator[tuple[bytes, Operation]]:
    """Yield what the journal tells was changed."""
    for segment in range(1, session.timeline.present + 2):
        for record in session.journal.read_segment(segment):
            match record:
                case Stage(is_nameless=True):
                    continue
                case Stage(path=path):
                    yield session.base.path(path), Operation.CREATE if record.base is None else Operation.WRITE
                case Delete(path=path):
                    yield session.base.path(path), Operation.DELETE
                case Rename(src=src, dst=dst):
                    yield session.base.path(src), Operation.RENAME
                    yield session.base.path(dst), Operation.RENAME
                case Keep(is_nameless=True):
                    continue
                case Keep(path=path, source=source) if source != path:  # else only a name below it came or went
                    yield session.base.path(path), _kept(record)
                case Keep() | Snapshot() | Travel():
                    continue
                case _:
                    assert_never(record)


def _kept(record: Keep) -> Operation:
    """Return what led to what a commit left staged."""
    if record.ino is not None:
        return Operation.CREATE if record.base is None else Operation.WRITE
    return Operation.DELETE if record.source is None else Operation.RENAME


def suggestions(book: RuleBook, accesses: Sequence[RecordedAccess], project: bytes) -> list[Suggestion]:
    """Return rules that would have spared questions; none about home, the project or what is above
    them.
    """
    return suggest(book, accesses, [project, os.path.expanduser(b"~")])


def emit_replay(book: RuleBook, recorded: Recorded, project: bytes) -> None:
    """Write what the rules make of some accesses, and which rules would have spared questions."""
    accesses = recorded.accesses
    total = sum(access.count for access in accesses)
    if not recorded.is_whole:
        say(
            "note: not every access that a rule allowed is known: they are noted only while the view is"
            " mounted, and only up to a number"
        )
    if not total:
        say("nothing was recorded in this session")
        return
    now = tally(book, accesses)
    free = sum(access.count for access in accesses if access.was_free)
    emit(f"{total} accesses were recorded, {free} of which rules allowed; by the rules as they are now")
    emit(f"{now.allowed:>6} are allowed")
    emit(f"{now.asks:>6} are asked")
    emit(f"{now.refused:>6} are refused")
    questions: Counter[tuple[bytes, Operation]] = Counter()
    for access in asked(book, accesses):  # however it was answered
        questions[access.path, access.operation] += access.count
    if not questions:
        return
    emit()
    emit("asked:")
    for (path, operation), count in questions.most_common(_SHOWN):
        rule = explain(book, path).rule
        why = f"{key_text(rule, project)}, {rule.source}" if rule is not None else "no rule"
        emit(f"{count:>6}  {operation.value} {display(path)}  ({why})")
    if len(questions) > _SHOWN:
        emit(f"        … and {len(questions) - _SHOWN} more")
    found = suggestions(book, accesses, project)
    if not found:
        return
    emit()
    emit("these rules would have spared most questions:")
    for one in found[:_SHOWN]:
        emit(f"  yolofs rule {one.rule.state.value} {in_shell(spell_rule(one.rule).encode())}")
        emit(f"      {_evidence(one)}")
    left = tally(with_rules(book, [one.rule for one in found[:_SHOWN]]), accesses)
    emit(f"with them {left.asks} of {now.asks} would be asked")


def replay_document(book: RuleBook, recorded: Recorded, project: bytes) -> dict[str, Any]:
    """Return the JSON document of a replay."""
    accesses = recorded.accesses
    now = tally(book, accesses)
    found = suggestions(book, accesses, project)
    left = tally(with_rules(book, [one.rule for one in found]), accesses)
    return {
        "accesses": sum(access.count for access in accesses),
        "free": sum(access.count for access in accesses if access.was_free),
        "complete": recorded.is_whole,
        "allowed": now.allowed,
        "asked": now.asks,
        "refused": now.refused,
        "suggestions": [
            {
                "key": spell_rule(one.rule),
                "state": one.rule.state.value,
                "asks": one.asks,
                "paths": one.paths,
                "answered": one.answered,
            }
            for one in found
        ],
        "asked_then": left.asks,
    }


def _evidence(one: Suggestion) -> str:
    answer = "denied" if one.rule.state.value == "deny" else "allowed"
    paths = f"{one.paths} path{'s' if one.paths > 1 else ''}"
    return f"{one.asks} asked about {paths}; {one.answered} of them {answer} by somebody, none otherwise"
