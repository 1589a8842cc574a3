"""What the rules make of accesses that were recorded, and which rules would have spared most questions.  Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from yolofs.explain import Outcome, explain, outcome
from yolofs.questions import Operation
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState

MIN_PATHS = 3
"""How many paths somebody has to have been asked about before a rule for their directory is suggested."""


@dataclass(frozen=True, slots=True)
class Access:
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
    """How many accesses come to what."""

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


def tally(book: RuleBook, accesses: Iterable[Access]) -> Tally:
    """Count what the rules make of some accesses."""
    counts = dict.fromkeys(Outcome, 0)
    for access in accesses:
        counts[_outcome(book, access)] += access.count
    return Tally(counts[Outcome.ALLOWED], counts[Outcome.ASKS], counts[Outcome.REFUSED] + counts[Outcome.ABSENT])


def asked(book: RuleBook, accesses: Iterable[Access]) -> list[Access]:
    """Return the accesses that would be asked."""
    return [access for access in accesses if _outcome(book, access) is Outcome.ASKS]


def with_rules(book: RuleBook, rules: Iterable[PathRule]) -> RuleBook:
    """Return the rules of ``book`` with nearer ones before them."""
    return RuleBook(RuleSet(tuple(rules)), *book.sources)


def suggest(book: RuleBook, accesses: Iterable[Access], never: Iterable[bytes]) -> list[Suggestion]:
    """Return rules that would have settled the most questions: those that refuse first, then by their number.

    Each gives the answer that somebody gave about a path, or about at least :data:`MIN_PATHS` of them in a directory,
    and contradicts no other answer.  None is about one of the directories ``never`` or one above them.
    """
    excluded = {b"/"}.union(*(_up(directory) for directory in never))
    replayed = [_Replayed(book, access) for access in accesses]
    suggestions: list[Suggestion] = []
    while candidates := list(_candidates(replayed, excluded)):
        best = max(candidates, key=_worth)
        suggestions.append(best)
        for one in replayed:
            one.judge(best.rule)
    return suggestions


def _worth(found: Suggestion) -> tuple[bool, int, int]:
    """Return what is compared: denials come first, as then the rest of a directory may be of one mind."""
    return found.rule.state is RuleState.DENY, found.asks, len(found.rule.path)


class _Replayed:
    """An access with what the rules make of it, and the path that the deciding rule is about."""

    def __init__(self, book: RuleBook, access: Access) -> None:
        found = explain(book, access.path)
        self.access = access
        self.place = found.place
        self.outcome = outcome(found.state, access.operation)

    def becomes(self, rule: PathRule) -> Outcome:
        """Return what a further, nearest rule would make of it."""
        decides = is_at_or_below(self.access.path, rule.path) and is_at_or_below(rule.path, self.place)
        return outcome(rule.state, self.access.operation) if decides else self.outcome

    def judge(self, rule: PathRule) -> None:
        """Take a further rule into account."""
        if is_at_or_below(self.access.path, rule.path) and is_at_or_below(rule.path, self.place):
            self.outcome, self.place = outcome(rule.state, self.access.operation), rule.path


def _candidates(replayed: Sequence[_Replayed], excluded: set[bytes]) -> Iterator[Suggestion]:
    """Yield a rule for each path above an answered question that would have spared some."""
    left = [one for one in replayed if one.outcome is Outcome.ASKS]
    places = {above for one in left if one.access.was_allowed is not None for above in _up(one.access.path)}
    for path in sorted(places - excluded):
        below = [one for one in left if is_at_or_below(one.access.path, path)]
        paths = {one.access.path for one in below}
        answers = {one.access.was_allowed for one in below} - {None}
        if len(answers) != 1 or (paths != {path} and len(paths) < MIN_PATHS):
            continue
        rule = PathRule(path, _state([one.access for one in below], is_allowed=True in answers), "a suggestion")
        settled = [one.access for one in below if one.becomes(rule) is not Outcome.ASKS]
        inside = [one for one in replayed if is_at_or_below(one.access.path, path)]
        if settled and all(_agrees(one.becomes(rule), one.access) for one in inside):
            yield Suggestion(
                rule,
                sum(access.count for access in settled),
                len({access.path for access in settled}),
                sum(access.count for access in settled if access.was_allowed is not None),
            )


def _state(accesses: Sequence[Access], *, is_allowed: bool) -> RuleState:
    """Return the state that gives this answer and opens as little as possible."""
    if not is_allowed:
        return RuleState.DENY
    is_changed = any(access.operation.is_change and access.was_allowed for access in accesses)
    return RuleState.ALLOW if is_changed else RuleState.WRITE_ASK


def _agrees(found: Outcome, access: Access) -> bool:
    """Tell whether an outcome does not contradict what somebody answered, or what a rule allowed."""
    if access.was_free:
        return found in (Outcome.ALLOWED, Outcome.ASKS)
    return found is Outcome.ASKS or access.was_allowed in (None, found is Outcome.ALLOWED)


def is_at_or_below(path: bytes, directory: bytes) -> bool:
    """Tell whether an absolute path is another one or lies below it."""
    return directory in (path, b"/") or path.startswith(directory + b"/")


def _outcome(book: RuleBook, access: Access) -> Outcome:
    return outcome(book.at(access.path).state, access.operation)


def _up(path: bytes) -> set[bytes]:
    """Return a path and all above it."""
    found = {path}
    while path != b"/":
        path = os.path.dirname(path)
        found.add(path)
    return found
