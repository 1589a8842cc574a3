"""What an ask can be answered, and the rules that an answer makes.  Pure."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence

import msgspec

from yolofs.access.asks import Ask
from yolofs.access.questions import Decision, Question
from yolofs.access.scopes import common_directory
from yolofs.errors import UsageError
from yolofs.paths import display, is_in
from yolofs.rules import PathRule, Rule, RuleBook, RuleSet, RuleState, spell_rule

JUST_ONCE = ", just once"
"""A suffix of the answerer's name: the answer's rules leave the ask open, so it counts once only.
"""


class Lifetime(enum.Enum):
    """How long an answer holds."""

    ONCE = "once"
    SESSION = "session"
    """As a rule that is forgotten when the mount ends."""
    ALWAYS = "always"
    """As a rule in ``rules.toml``."""


class Answer(msgspec.Struct, frozen=True):
    """An answer to an ask."""

    decision: Decision | None
    """ALLOW or DENY; None for what would be given if nobody answered."""
    lifetime: Lifetime = Lifetime.ONCE
    scope: bytes | None = None
    """The path of the rule: the asked one or a directory above it; None for the asked path (of a
    group, each).
    """
    state: RuleState | None = None
    """The state of the rule; None for :func:`least_state`."""


def settles(state: RuleState, question: Question) -> Decision | None:
    """Return what a state says to a question, None if it asks."""
    is_change = question.operation.is_change
    if state.asks_to_write if is_change else state.asks_to_read:
        return None
    return Decision.ALLOW if (state.may_write if is_change else state.may_read) else Decision.DENY


def least_state(question: Question, decision: Decision) -> RuleState:
    """Return the state that gives this answer to a question and else changes as little as
    possible.
    """
    if question.operation.is_change:
        if decision is Decision.ALLOW:
            return RuleState.ALLOW
        return RuleState.READ_ONLY if question.state.may_read else RuleState.DENY
    return RuleState.WRITE_ASK if decision is Decision.ALLOW else RuleState.DENY


def rules_of(answer: Answer, asks: Sequence[Ask]) -> list[PathRule]:
    """Return the rules that an answer to some asks makes.

    Raises:
        UsageError: the scope does not hold all asked paths, or the state gives another answer.
    """
    if answer.decision is None:
        raise UsageError("only allow and deny can hold longer than once", hint="yolofs answer --help")
    source = "rules.toml" if answer.lifetime is Lifetime.ALWAYS else "an answer in this session"
    rules: dict[bytes, PathRule] = {}
    for ask in asks:
        state = answer.state or least_state(ask.question, answer.decision)
        if settles(state, ask.question) is not answer.decision:
            raise UsageError(
                f'the state "{state.value}" does not {answer.decision.value} what is asked: '
                f"{ask.question.operation.value} {display(ask.question.path)}",
                hint="name another state, or leave out --state",
            )
        path = ask.question.path if answer.scope is None else answer.scope
        if not is_in(ask.question.path, path):
            nearest = common_directory(ask.question.path for ask in asks)
            raise UsageError(
                f"{display(path)} is neither {display(ask.question.path)} nor above it",
                hint=f"the nearest directory that holds all is {display(nearest)}",
            )
        rules[path] = PathRule(path, state, source)
    return list(rules.values())


def check_settles_some(rules: Sequence[PathRule], asks: Sequence[Ask], book: RuleBook) -> None:
    """Check that the rules that an answer makes would settle at least one of its asks, if they were
    in force above all sources of a book.

    Raises:
        UsageError: nearer rules decide over all that is asked; these would change what nobody has
            asked about.
    """
    tried = RuleBook(RuleSet(tuple(rules)), *book.sources)
    verdicts = [tried.at(ask.question.path) for ask in asks]
    if all(ask.question.is_still_asked_under(verdict) for ask, verdict in zip(asks, verdicts, strict=True)):
        why, hint = _why_left(asks[0].question, verdicts[0].rule)
        wanted = display(rules[0].path)
        raise UsageError(f"a rule for {wanted} would not settle what is asked, as {why}", hint=hint)


def _why_left(question: Question, nearer: Rule | None) -> tuple[str, str]:
    """Return why an answer's rule does not settle a question, over which ``nearer`` decides, and
    what to do.
    """
    hint = "choose just what is asked about"
    if nearer is None or question.is_about_other_names:
        return "the file has other names (hard links) that were not found", hint
    if isinstance(nearer, PathRule):
        hint = f"{hint}, or a directory no higher than that rule"
    spelled = display(os.fsencode(spell_rule(nearer)))
    return (
        f'the nearest rule decides: {spelled} is "{nearer.state.value}" ({nearer.source})',
        hint,
    )
