"""The queue of asks: which questions share an ask, which asks form a group, and how each ends.  No
threads, no clock.

An *ask* is one operation on one path, with all who wait for the same answer.  A *group* is what one
process asks at a time below one directory (:func:`yolofs.access.scopes.group_directory`): a person
sees it as one card.  It has the number of its first ask.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple, assert_never

from yolofs.access.questions import Decision, Operation, Question
from yolofs.access.scopes import group_directory
from yolofs.system.requesters import Commands, Requester

_REMEMBERED = 1000
"""How many asks that have ended are remembered, to tell those who answer too late."""


class AskOutcome(enum.Enum):
    """How an ask ended; the value is its name in messages, JSON and the audit."""

    ALLOWED = "allowed"
    DENIED = "denied"
    RULE = "rule"
    """A rule was made or changed, and the access is judged by it."""
    TIMEOUT = "timeout"
    """Nobody answered; the default was given."""
    INTERRUPTED = "interrupted"
    """All who waited were interrupted or killed."""
    ENDED = "ended"
    """The mount was about to end."""


def how_it_ended(name: str, by: str, *, is_allowed: bool = False) -> str:
    """Return how an ask ended, in words: by the name of its outcome, also one of a later version;
    ``is_allowed`` says what became of one that nobody answered.

    ``by`` is who or what ended it, "nobody" with the reason where there is one.
    """
    try:
        outcome = AskOutcome(name)
    except ValueError:
        return f"{name} by {by}"
    match outcome:
        case AskOutcome.ALLOWED | AskOutcome.DENIED:
            return f"{outcome.value} by {by}"
        case AskOutcome.RULE:
            return f"settled by {by}"
        case AskOutcome.TIMEOUT:
            why = by.partition(", ")[2]
            so = ", so allowed" if is_allowed else ""
            return f"not answered, {why}{so}" if why else f"not answered in time{so}"
        case AskOutcome.INTERRUPTED:
            return "given up by its program"
        case AskOutcome.ENDED:
            return "ended with the mount"
        case _:
            assert_never(outcome)


class Waiter:
    """A request of the kernel's that waits for the answer of an ask."""

    __slots__ = ("_answer", "commands", "is_suspect", "requester")

    def __init__(self, requester: Requester, answer: Callable[[Decision], None]) -> None:
        self.requester = requester
        self.commands = Commands()
        self.is_suspect = False
        """Whether it looked at the last poll as if it wanted no answer."""
        self._answer: Callable[[Decision], None] | None = answer

    @property
    def is_waiting(self) -> bool:
        """Whether it has not been answered yet."""
        return self._answer is not None

    def is_answered_by(self, answers: Container[Callable[[Decision], None]]) -> bool:
        """Tell whether what it will be answered by is one of these."""
        return self._answer is not None and self._answer in answers

    def answer(self, decision: Decision) -> None:
        """Answer it, once."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(decision)


class Ask:
    """A question with those who wait for its answer."""

    __slots__ = (
        "deadline",
        "full_deadline",
        "group",
        "group_key",
        "id",
        "is_claimed",
        "is_listed",
        "is_shown",
        "question",
        "since_ns",
        "waiters",
    )

    def __init__(self, ask_id: int, question: Question, since_ns: int, deadline: float) -> None:
        self.id = ask_id
        self.group = ask_id
        self.group_key: tuple[int, bool, bytes] | None = None
        """Process, kind of access and directory that it is grouped by; None if the process is not
        known.
        """
        self.question = question
        self.since_ns = since_ns
        """When it was first asked, in nanoseconds since 1970."""
        self.deadline = deadline
        """When nobody will have answered, by the caller's clock."""
        self.full_deadline = deadline
        """The same where somebody watches."""
        self.waiters: list[Waiter] = []
        self.is_claimed = False
        """Whether an answer is being carried out, so that no other one counts."""
        self.is_listed = False
        """Whether ``yolofs asks`` has told the user of it."""
        self.is_shown = False
        """Whether watchers know of it."""


class EndedAsk(NamedTuple):
    """What became of an ask."""

    ask: Ask
    outcome: AskOutcome
    decision: Decision
    by: str
    """Who or what ended it, in words."""
    waited_ns: int
    records: int | None
    """How many records the journal had just before those who asked were answered; None if nobody
    could tell.
    """


class Queue:
    """All asks that wait.  ``on_end`` is called for each that ends, after its requesters were
    answered.

    ``last_id``: the highest number that an ask has had before.
    """

    def __init__(self, on_end: Callable[[EndedAsk], None], last_id: int = 0) -> None:
        self._on_end = on_end
        self._asks: dict[int, Ask] = {}
        self._by_access: dict[tuple[bytes, Operation], Ask] = {}
        self._groups: dict[tuple[int, bool, bytes], list[Ask]] = {}
        self._ended: dict[int, EndedAsk] = {}
        self._last_id = last_id

    def __len__(self) -> int:
        return len(self._asks)

    def __iter__(self) -> Iterator[Ask]:
        """Yield the asks, oldest first; they may end meanwhile."""
        return iter(list(self._asks.values()))

    def waiters(self) -> list[tuple[Ask, Waiter]]:
        """Return all who wait."""
        return [(ask, waiter) for ask in self._asks.values() for waiter in ask.waiters]

    def get(self, ask_id: int) -> Ask | None:
        """Return an ask that waits."""
        return self._asks.get(ask_id)

    def ended(self, ask_id: int) -> EndedAsk | None:
        """Return what became of an ask, if that is remembered."""
        return self._ended.get(ask_id)

    def group(self, ask: Ask) -> list[Ask]:
        """Return the asks of an ask's group, itself among them, oldest first."""
        return list(self._groups[ask.group_key]) if ask.group_key is not None else [ask]

    @property
    def next_deadline(self) -> float:
        """When the first of them runs out; infinity if none waits."""
        return min((ask.deadline for ask in self._asks.values() if not ask.is_claimed), default=math.inf)

    # ---- coming

    def add(self, question: Question, waiter: Waiter, *, now_ns: int, deadline: float) -> Ask:
        """Queue a question, or have it share the ask of one that waits already."""
        access = question.path, question.operation  # to allow one operation is not to allow another
        ask = self._by_access.get(access)
        if ask is None:
            self._last_id += 1
            ask = Ask(self._last_id, question, now_ns, deadline)
            self._asks[ask.id] = ask
            self._by_access[access] = ask
            self._join_group(ask, waiter.requester.pid)
        ask.waiters.append(waiter)
        return ask

    def _join_group(self, ask: Ask, pid: int) -> None:
        if pid <= 0:
            return
        path, is_change = ask.question.key
        for ancestor in _ancestors(path.rpartition(b"/")[0]):
            members = self._groups.get((pid, is_change, ancestor))
            if members is not None:
                ask.group, ask.group_key = members[0].group, members[0].group_key
                members.append(ask)
                return
        ask.group_key = pid, is_change, group_directory(ask.question)
        self._groups[ask.group_key] = [ask]

    # ---- going

    def end(
        self, ask: Ask, outcome: AskOutcome, decision: Decision, *, by: str, now_ns: int, records: int | None
    ) -> None:
        """Answer all who wait for an ask; nothing happens if it has ended already."""
        if self._asks.get(ask.id) is not ask:
            return
        del self._asks[ask.id]
        del self._by_access[ask.question.path, ask.question.operation]
        self._leave_group(ask)
        for waiter in ask.waiters:
            waiter.answer(decision)
        ended = EndedAsk(ask, outcome, decision, by, now_ns - ask.since_ns, records)
        self._ended[ask.id] = ended
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        self._on_end(ended)

    def withdraw(self, ask: Ask, waiter: Waiter, *, now_ns: int, records: int | None) -> None:
        """Drop a waiter that wants no answer any more; with the last one the ask ends."""
        if len(ask.waiters) == 1:
            self.end(ask, AskOutcome.INTERRUPTED, Decision.INTERRUPTED, by="a signal", now_ns=now_ns, records=records)
        else:
            ask.waiters.remove(waiter)
            waiter.answer(Decision.INTERRUPTED)

    def _leave_group(self, ask: Ask) -> None:
        if ask.group_key is not None:
            members = self._groups[ask.group_key]
            members.remove(ask)
            if not members:
                del self._groups[ask.group_key]


def _ancestors(directory: bytes) -> Iterator[bytes]:
    """Yield a directory and all above it but ``/``; of ``/`` (which is empty here) itself."""
    yield directory
    while directory := directory.rpartition(b"/")[0]:
        yield directory
