"""Why a path is allowed, asked or refused: which rule decides, where it is written, and what it comes before."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from yolofs.questions import Operation
from yolofs.rules import Rule, RuleBook, RuleSet, RuleState, subject


class Outcome(enum.Enum):
    """What becomes of an access; the value is its name in JSON."""

    ALLOWED = "allowed"
    ASKS = "asks"
    REFUSED = "refused"
    """It fails with EACCES."""
    ABSENT = "absent"
    """It fails with ENOENT."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the rules say of a path."""

    path: bytes
    """Absolute."""
    state: RuleState
    rule: Rule | None
    """The rule that decides, None where there is none."""
    place: bytes
    """The path or the directory above it that the rule is about; the root where there is none."""
    is_way: bool
    """Whether this is a hidden directory that can be passed and listed, as something below it is open."""
    overridden: tuple[Rule, ...]
    """Rules about the same as :attr:`rule` from sources that come after it, nearest first."""

    def outcome(self, operation: Operation) -> Outcome:
        """Return what becomes of an access to the path."""
        if self.is_way and operation is Operation.LIST:
            return Outcome.ALLOWED
        return outcome(self.state, operation)


def explain(book: RuleBook, path: bytes) -> Explanation:
    """Return what the rules say of an absolute path."""
    verdict = book.at(b"/")
    place = passed = b"/"
    for name in path.split(b"/"):
        if name:
            passed = passed.rstrip(b"/") + b"/" + name
            below = book.below(verdict, name)
            if below.rule is not verdict.rule:
                place = passed
            verdict = below
    return Explanation(
        path, verdict.state, verdict.rule, place, verdict.is_way, _overridden(book.sources, verdict.rule)
    )


def outcome(state: RuleState, operation: Operation) -> Outcome:
    """Return what a state makes of an operation."""
    if state.is_hidden:
        return Outcome.REFUSED if operation is Operation.CREATE else Outcome.ABSENT
    if operation is Operation.LIST:
        return Outcome.ALLOWED if state.may_list else Outcome.REFUSED
    may, asks = (state.may_write, state.asks_to_write) if operation.is_change else (state.may_read, state.asks_to_read)
    return Outcome.ALLOWED if may else Outcome.ASKS if asks else Outcome.REFUSED


def _overridden(sources: Sequence[RuleSet], rule: Rule | None) -> tuple[Rule, ...]:
    if rule is None:
        return ()
    same = (one for source in sources for one in source.rules if subject(one) == subject(rule))
    return tuple(one for one in same if one is not rule)
