"""Asks and answers as they go over the control socket (``docs/reference/rpc.md``).

Paths, names and command lines are bytes that anybody may have chosen: they travel percent-encoded.
"""

from __future__ import annotations

import os
import time

import msgspec

from yolofs.access.answers import Answer, Lifetime
from yolofs.access.asks import Ask, EndedAsk, Waiter
from yolofs.access.questions import Decision
from yolofs.access.scopes import widest_scope
from yolofs.daemon.rpc.protocol import quote, unquote
from yolofs.errors import UsageError
from yolofs.rules import Rule, RuleState, spell_rule


class ProcessInfo(msgspec.Struct, frozen=True):
    """A process; ``pid`` is 0 where it cannot be seen."""

    pid: int
    name: str
    command: tuple[str, ...]
    """Its arguments, percent-encoded; none if they cannot be read.  ``%E2%80%A6`` at the end: there
    was more.
    """


class RuleInfo(msgspec.Struct, frozen=True):
    """A rule: what it is about, its state, and where it is written."""

    key: str
    """As one would write it, with an absolute path; percent-encoded."""
    state: RuleState
    source: str


class AskInfo(msgspec.Struct, frozen=True):
    """An ask that waits."""

    id: int
    group: int
    """The number of the first ask of its group, which may have ended."""
    path: str
    operation: str
    state: RuleState
    rule: RuleInfo | None
    size: int | None
    process: ProcessInfo
    parent: ProcessInfo
    requesters: int
    """How many wait for the same answer; ``process`` is the first of them."""
    since_ns: int
    """When it was asked, in nanoseconds since 1970."""
    left_ms: int
    """How long it will still wait, in milliseconds."""
    widest: str = "/"
    """The highest path for which a rule would settle it; percent-encoded."""
    run: int = 0
    """The run that ``process`` belongs to, 0 for none."""
    is_started_by_run: bool = False
    """Whether ``parent`` is the first process of that run's sandbox, which is bubblewrap's."""


class EndedInfo(msgspec.Struct, frozen=True):
    """What became of an ask; ``outcome`` is a value of :class:`yolofs.access.asks.AskOutcome`."""

    id: int
    outcome: str
    by: str
    """Who or what ended it, in words."""
    waited_ms: int


class PingInfo(msgspec.Struct, frozen=True):
    """The daemon wants to know whether the watcher goes on; the answer is ``here``."""


class WarningsInfo(msgspec.Struct, frozen=True):
    """What the user should know now, as in ``info``."""

    warnings: tuple[str, ...]


class AsksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``asks``: the number behind which to go on, and whether the user gets to
    see what is told.
    """

    after: int = 0
    to_user: bool = False


class AsksResult(msgspec.Struct, frozen=True):
    """The result of ``asks``, oldest first; ``more`` if not all fit into a message."""

    asks: tuple[AskInfo, ...]
    more: bool


class AnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``answer``; see :meth:`yolofs.daemon.asks.broker.Broker.answer`."""

    id: int
    decision: str
    """``allow``, ``deny``, or ``default`` for what nobody's answer would be."""
    lifetime: Lifetime = Lifetime.ONCE
    scope: str | None = None
    state: RuleState | None = None
    seen: int | None = None
    listed: bool = False
    only: bool = False
    by: str = ""
    """What the one who answers is called."""


class AnswerResult(msgspec.Struct, frozen=True):
    """The result of ``answer``: the numbers of the asks that it answered."""

    answered: tuple[int, ...]
    left: tuple[int, ...] = ()
    """Those of them that the rules which it made leave open, as nearer ones decide: it held for
    them just once.
    """
    unseen: tuple[int, ...] = ()
    """Others of the group, which wait on, as nobody who answers can have seen them."""


_DECISIONS = {"allow": Decision.ALLOW, "deny": Decision.DENY, "default": None}


def answer_of(params: AnswerParams) -> Answer:
    """Return the answer that a client gives.

    Raises:
        UsageError: it makes no sense.
    """
    if params.decision not in _DECISIONS:
        raise UsageError(f"expected allow, deny or default, got {params.decision!r}")
    scope = unquote(params.scope) if params.scope is not None else None
    if scope is not None and (not scope.startswith(b"/") or os.path.normpath(scope) != scope):
        raise UsageError("a scope is an absolute path without . or ..")
    if params.lifetime is Lifetime.ONCE and (scope is not None or params.state is not None):
        raise UsageError("an answer that holds once has neither scope nor state", hint="--session or --always")
    return Answer(_DECISIONS[params.decision], params.lifetime, scope, params.state)


def ask_info(ask: Ask) -> AskInfo:
    """Return an ask in the form in which it travels."""
    question, first = ask.question, ask.waiters[0]
    return AskInfo(
        ask.id,
        ask.group,
        quote(question.path),
        question.operation.value,
        question.state,
        _rule_info(question.rule) if question.rule is not None else None,
        question.size,
        _process_info(first),
        ProcessInfo(
            first.requester.parent, quote(first.commands.parent_name), tuple(map(quote, first.commands.parent))
        ),
        len(ask.waiters),
        ask.since_ns,
        max(round((ask.deadline - time.monotonic()) * 1000), 0),
        quote(widest_scope(question)),
        first.requester.run,
        first.commands.is_started_by_run,
    )


def ended_info(ended: EndedAsk) -> EndedInfo:
    """Return what became of an ask in the form in which it travels."""
    return EndedInfo(ended.ask.id, ended.outcome.value, ended.by, max(ended.waited_ns, 0) // 1_000_000)


def _rule_info(rule: Rule) -> RuleInfo:
    return RuleInfo(quote(os.fsencode(spell_rule(rule))), rule.state, rule.source)


def _process_info(waiter: Waiter) -> ProcessInfo:
    requester = waiter.requester
    return ProcessInfo(requester.pid, quote(requester.name), tuple(map(quote, waiter.commands.own)))
