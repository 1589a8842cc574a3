"""Judges recorded accesses by other rules, and suggests the rules that would have spared most
questions.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from yolofs.access.explain import AccessOutcome, find_deciding, outcome
from yolofs.access.questions import Operation
from yolofs.paths import is_in, with_ancestors
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState

K = TypeVar("K")

MIN_PATHS = 3
"""How many paths somebody has to have been asked about before a rule for their directory is
suggested.
"""


@dataclass(frozen=True, slots=True)
class RecordedAccess:
    """An access that was recorded, or several that are alike."""

    path: bytes
    """Absolute."""
    operation: Operation
    count: int
    was_allowed: bool | None
    """What somebody answered; None where nobody did."""
    was_free: bool = False
    """Whether a rule allowed it, so that nobody was asked."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many accesses have which outcome."""

    allowed: int
    asks: int
    refused: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule, and what speaks for it: the accesses that are asked without it and settled by it."""

    rule: PathRule
    asks: int
    """How many questions it would have spared."""
    paths: int
    """About how many different paths."""
    answered: int
    """How many of the questions somebody answered so; nobody answered the others."""


def tally(book: RuleBook, accesses: Iterable[RecordedAccess]) -> Tally:
    """Count what the rules make of some accesses."""
    counts = dict.fromkeys(AccessOutcome, 0)
    for access in accesses:
        counts[_outcome(book, access)] += access.count
    return Tally(
        counts[AccessOutcome.ALLOWED],
        counts[AccessOutcome.ASKS],
        counts[AccessOutcome.REFUSED] + counts[AccessOutcome.ABSENT],
    )


def asked(book: RuleBook, accesses: Iterable[RecordedAccess]) -> list[RecordedAccess]:
    """Return the accesses that would be asked."""
    return [access for access in accesses if _outcome(book, access) is AccessOutcome.ASKS]


def with_rules(book: RuleBook, rules: Iterable[PathRule]) -> RuleBook:
    """Return the rules of ``book`` with nearer ones before them."""
    return RuleBook(RuleSet(tuple(rules)), *book.sources)


def suggest(book: RuleBook, accesses: Iterable[RecordedAccess], never: Iterable[bytes]) -> list[Suggestion]:
    """Return rules that would have settled the most questions: those that refuse first, then by
    their number.

    Each gives the answer that somebody gave about a path, or about at least :data:`MIN_PATHS` of
    them in a directory, and contradicts no other answer.  None is about one of the directories
    ``never`` or one above them.
    """
    excluded = {b"/"}.union(*map(with_ancestors, never))
    places = _places([_Replayed(book, access) for access in accesses], excluded)
    found: dict[bytes, Suggestion] = {}
    changed = set(places)
    suggestions: list[Suggestion] = []
    while True:
        for path in changed:  # only these: there may be thousands, and as many suggestions
            candidate = _candidate(path, places[path])
            if candidate is not None:
                found[path] = candidate
            else:
                found.pop(path, None)
        if not found:
            return suggestions
        best = max((found[path] for path in sorted(found)), key=_worth)
        suggestions.append(best)
        changed = _take_up(best.rule, places)


def _worth(found: Suggestion) -> tuple[bool, int, int]:
    """Return the sort key.  Denials come first: without them the rest of a directory may have one
    answer.
    """
    return found.rule.state is RuleState.DENY, found.asks, len(found.rule.path)


class _Replayed:
    """An access with what the rules make of it, and the path that the deciding rule is about."""

    def __init__(self, book: RuleBook, access: RecordedAccess) -> None:
        verdict, self.place, _ = find_deciding(book, access.path)
        self.access = access
        self.outcome = outcome(verdict.state, access.operation)

    def is_decided_by(self, rule: PathRule) -> bool:
        """Tell whether a further, nearest rule would decide over it."""
        return is_in(self.access.path, rule.path) and is_in(rule.path, self.place)

    def becomes(self, rule: PathRule) -> AccessOutcome:
        """Return what a further, nearest rule would make of it."""
        return outcome(rule.state, self.access.operation) if self.is_decided_by(rule) else self.outcome


class _AnsweredPath:
    """A path at or below which somebody has answered something, with all accesses there."""

    def __init__(self) -> None:
        self.inside: list[_Replayed] = []
        self._answers: dict[bool, int] = {}
        self._paths: dict[bytes, int] = {}
        """Of those accesses that are asked: what was answered, and their paths, with the number of
        each.
        """

    def count(self, one: _Replayed, by: int) -> None:
        """Count an access that is asked (``by`` = 1), or is not any more (-1)."""
        if one.access.was_allowed is not None:
            _add(self._answers, one.access.was_allowed, by)
        _add(self._paths, one.access.path, by)

    def may_have_rule(self, path: bytes) -> bool:
        """Tell whether all answers here agree, and are about just this ``path`` or about enough of
        them.
        """
        return len(self._answers) == 1 and (len(self._paths) >= MIN_PATHS or list(self._paths) == [path])


def _add(counts: dict[K, int], key: K, by: int) -> None:
    counts[key] = counts.get(key, 0) + by
    if not counts[key]:
        del counts[key]


def _places(replayed: Sequence[_Replayed], excluded: set[bytes]) -> dict[bytes, _AnsweredPath]:
    """Return the paths at and above those about which somebody has answered something."""
    answered = {one.access.path for one in replayed if one.access.was_allowed is not None}
    places = {above: _AnsweredPath() for path in answered for above in with_ancestors(path) if above not in excluded}
    for one in replayed:
        for above in places.keys() & with_ancestors(one.access.path):
            places[above].inside.append(one)
            if one.outcome is AccessOutcome.ASKS:
                places[above].count(one, 1)
    return places


def _take_up(rule: PathRule, places: dict[bytes, _AnsweredPath]) -> set[bytes]:
    """Take a further rule into account; return where something is another now."""
    changed: set[bytes] = set()
    for one in places[rule.path].inside:
        if not one.is_decided_by(rule):
            continue
        was_asked = one.outcome is AccessOutcome.ASKS
        one.outcome, one.place = one.becomes(rule), rule.path
        is_asked = one.outcome is AccessOutcome.ASKS
        above = places.keys() & with_ancestors(one.access.path)
        changed |= above
        for path in above if was_asked is not is_asked else ():
            places[path].count(one, is_asked - was_asked)
    return changed


def _candidate(path: bytes, there: _AnsweredPath) -> Suggestion | None:
    """Return a rule for a path that would have spared some questions and contradicts nothing, None
    if there is none.
    """
    if not there.may_have_rule(path):
        return None
    below = [one for one in there.inside if one.outcome is AccessOutcome.ASKS]
    is_allowed = any(one.access.was_allowed for one in below)
    rule = PathRule(path, _state([one.access for one in below], is_allowed=is_allowed), "a suggestion")
    settled = [one.access for one in below if one.becomes(rule) is not AccessOutcome.ASKS]
    if not settled or not all(_agrees(one.becomes(rule), one.access) for one in there.inside):
        return None
    return Suggestion(
        rule,
        sum(access.count for access in settled),
        len({access.path for access in settled}),
        sum(access.count for access in settled if access.was_allowed is not None),
    )


def _state(accesses: Sequence[RecordedAccess], *, is_allowed: bool) -> RuleState:
    """Return the state that gives this answer and opens as little as possible."""
    if not is_allowed:
        return RuleState.DENY
    is_changed = any(access.operation.is_change and access.was_allowed for access in accesses)
    return RuleState.ALLOW if is_changed else RuleState.WRITE_ASK


def _agrees(found: AccessOutcome, access: RecordedAccess) -> bool:
    """Tell whether an outcome does not contradict what somebody answered, or what a rule
    allowed.
    """
    if access.was_free:
        return found in (AccessOutcome.ALLOWED, AccessOutcome.ASKS)
    return found is AccessOutcome.ASKS or access.was_allowed in (None, found is AccessOutcome.ALLOWED)


def _outcome(book: RuleBook, access: RecordedAccess) -> AccessOutcome:
    return outcome(book.at(access.path).state, access.operation)
