"""``yolofs rule test``: what the rules make of the accesses that this session recorded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from yolofs.audit import AskNote, RefusalNote, read_audit
from yolofs.cli.output import emit, say
from yolofs.explain import explain
from yolofs.paths import display
from yolofs.questions import Operation
from yolofs.replay import Access, Suggestion, asked, suggest, tally, with_rules
from yolofs.rules import RuleBook, spell

_SHOWN = 10
_ANSWERS = {"allowed": True, "denied": False}


def read_accesses(directory: bytes) -> list[Access]:
    """Return what the session in ``directory`` (its ``.yolofs``) recorded as asked or refused, alike ones together."""
    counts: Counter[tuple[bytes, Operation, bool | None]] = Counter()
    for path, operation, answer, count in _recorded(directory):
        counts[path, operation, answer] += count
    return [Access(path, operation, count, answer) for (path, operation, answer), count in counts.items()]


def _recorded(directory: bytes) -> Iterator[tuple[bytes, Operation, bool | None, int]]:
    for note in read_audit(directory):
        if isinstance(note, AskNote):
            answer = _ANSWERS.get(note.outcome)
            yield unquote_to_bytes(note.path), Operation(note.operation), answer, note.requesters
        elif isinstance(note, RefusalNote):
            yield unquote_to_bytes(note.path), Operation(note.operation), None, note.count


def suggestions(book: RuleBook, accesses: Sequence[Access], project: bytes) -> list[Suggestion]:
    """Return rules that would have spared questions; none about home, the project or what is above them."""
    return suggest(book, accesses, [project, os.path.expanduser(b"~")])


def emit_replay(book: RuleBook, accesses: Sequence[Access], project: bytes) -> None:
    """Write what the rules make of some accesses, and which rules would have spared questions."""
    total = sum(access.count for access in accesses)
    if not total:
        say("nothing was asked or refused in this session")
        return
    now = tally(book, accesses)
    emit(f"{total} accesses were asked or refused; by the rules as they are now")
    emit(f"{now.allowed:>6} are allowed")
    emit(f"{now.asks:>6} are asked")
    emit(f"{now.refused:>6} are refused")
    questions = sorted(asked(book, accesses), key=lambda access: -access.count)
    if not questions:
        return
    emit()
    emit("asked:")
    for access in questions[:_SHOWN]:
        rule = explain(book, access.path).rule
        why = f"{spell(rule, project)}, {rule.source}" if rule is not None else "no rule"
        emit(f"{access.count:>6}  {access.operation.value} {display(access.path)}  ({why})")
    if len(questions) > _SHOWN:
        emit(f"        … and {len(questions) - _SHOWN} more")
    found = suggestions(book, accesses, project)
    if not found:
        return
    emit()
    emit("these rules would have spared most questions:")
    for one in found[:_SHOWN]:
        emit(f"  yolofs rule {one.rule.state.value} {display(one.rule.path)}")
        emit(f"      {_evidence(one)}")
    left = tally(with_rules(book, [one.rule for one in found[:_SHOWN]]), accesses)
    emit(f"with them {left.asks} of {now.asks} would be asked")


def replay_document(book: RuleBook, accesses: Sequence[Access], project: bytes) -> dict[str, Any]:
    """Return the same for ``--json``."""
    now = tally(book, accesses)
    found = suggestions(book, accesses, project)
    left = tally(with_rules(book, [one.rule for one in found]), accesses)
    return {
        "accesses": sum(access.count for access in accesses),
        "allowed": now.allowed,
        "asked": now.asks,
        "refused": now.refused,
        "suggestions": [
            {
                "key": spell(one.rule),
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
