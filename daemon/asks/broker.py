"""The ask broker: takes questions from the device loop, and gets each of them answered.

:meth:`Broker.ask` and :meth:`Broker.refused` belong to the device loop,
:meth:`Broker.rules_changed` to anybody.  All else happens on trio's thread, most of it in the tasks
of :meth:`Broker.run`.  Nothing there awaits between looking at the queue and changing it, except an
answer that makes a rule: that ask is claimed meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import trio

from yolofs.access.answers import JUST_ONCE, Answer, Lifetime, check_settles_some, rules_of
from yolofs.access.asks import Ask, AskOutcome, EndedAsk, Queue, Waiter, how_it_ended
from yolofs.access.questions import Decision, Question
from yolofs.audit.audit import UNATTENDED
from yolofs.daemon.asks.auditor import Auditor
from yolofs.daemon.asks.watchers import Watcher, Watchers
from yolofs.errors import AskError
from yolofs.paths import display
from yolofs.rules import PathRule, Rule, RuleBook, spell_rule
from yolofs.system.requesters import read_commands, read_requester, wants_no_answer

log = logging.getLogger("yolofs.daemon")

_POLL_S = 0.35
"""How often every requester is looked at; what was seen twice counts, so two of these stay well
below a second.
"""
_SLICE = 50
"""How many requesters are looked at in one go: about a millisecond."""
_COMMANDS_S = 0.5
"""How long command lines may take to read before an ask is shown without them."""
_CHECK_S = 1.0
"""How often watchers are checked while something waits."""
_COUNT_S = 60.0
"""How often refusals of a kind that was seen before are noted, with their number."""


class Install(Protocol):
    """Puts rules in force; with ``lasting`` they are written down, else they hold for this session
    only.

    Called in a worker thread.
    """

    def __call__(self, rules: Sequence[PathRule], *, lasting: bool) -> None:
        """Put ``rules`` in force, each in the place of an earlier one for the same path.

        Raises:
            YolofsError: they cannot be written.
        """
        ...


class AnsweredAsks(NamedTuple):
    """What an answer was for, by the numbers of asks."""

    ids: list[int]
    left: Sequence[int] = ()
    """Those of them that the rules which the answer made leave open: it held for them just once."""
    unseen: Sequence[int] = ()
    """Others of the group, which wait on."""


class Broker:
    """The :class:`yolofs.access.questions.Asker` of a mount.

    Questions may come before :meth:`run` is called, and wait for it.
    """

    def __init__(
        self,
        book: RuleBook,
        install: Install,
        auditor: Auditor | None = None,
        *,
        timeout_s: float,
        default: Decision,
        unattended_s: float = math.inf,
        last_id: int = 0,
        hears_of_interrupts: bool = False,
    ) -> None:
        """``last_id``: the highest number that an ask has had in this session.
        ``hears_of_interrupts``: whether :meth:`withdraw` is called for everybody who is interrupted
        or killed.
        """
        self._hears_of_interrupts = hears_of_interrupts
        self.unattended_s = unattended_s
        """How long what a run asks waits where nobody watches."""
        self.timeout_s = timeout_s
        """How long an ask waits for an answer."""
        self.default = default
        """The answer then."""
        self._book = book
        self._install = install
        self._auditor = auditor
        self._queue = Queue(self._on_end, last_id)
        self._watchers = Watchers()
        self._undescribed: list[tuple[Ask, Waiter]] = []
        self._arrived = trio.Event()
        self._came = trio.Event()
        """Set for :meth:`_poll` when somebody asks."""
        self._deadline_changed = trio.Event()
        self._waits = trio.Event()
        """Set for :meth:`_check_watchers` when somebody asks."""
        self._lock = threading.Lock()
        """Guards what follows, which other threads use too."""
        self._inbox: deque[tuple[Question, int, Callable[[Decision], None]]] = deque()
        self._withdrawn: list[Callable[[Decision], None]] = []
        self._token: trio.lowlevel.TrioToken | None = None
        self._is_closed = False

    # ---- from other threads

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        """Queue a question; see :class:`yolofs.access.questions.Asker`.  After :meth:`close` the
        answer is no.
        """
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._inbox.append((question, pid, answer))
                self._wake(self._take_inbox)
        if is_closed:
            answer(Decision.DENY)

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        """Drop the waiter of an answer that is no longer wanted; see
        :class:`yolofs.access.questions.Asker`.
        """
        with self._lock:
            self._withdrawn.append(answer)
            self._wake(self._let_go)

    def refused(self, question: Question, pid: int) -> None:
        """Note a refusal; see :class:`yolofs.access.questions.Asker`."""
        if self._auditor is not None and self._auditor.refused(question, pid):
            with self._lock:
                self._wake(self._auditor.write)

    def settings_changed(self, timeout_s: float, default: Decision, unattended_s: float) -> None:
        """Set how long asks that come from now on wait; ``default`` is also for those that wait
        already.  From any thread.
        """
        self.timeout_s, self.default, self.unattended_s = timeout_s, default, unattended_s
        with self._lock:
            self._wake(self.attention_changed)

    def rules_changed(self) -> None:
        """Judge all that waits anew: the rule book has changed.  May be called from any thread."""
        with self._lock:
            self._wake(self._rejudge)

    def _wake(self, function: Callable[[], None]) -> None:
        """Have a function called on trio's thread; the lock is held."""
        if self._token is not None:
            self._token.run_sync_soon(function, idempotent=True)

    # ---- on trio's thread

    async def run(self) -> None:
        """Serve until cancelled."""
        with self._lock:
            self._token = trio.lowlevel.current_trio_token()
        try:
            self._let_go()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._describe_arrivals)
                nursery.start_soon(self._end_overdue)
                nursery.start_soon(self._poll)
                nursery.start_soon(self._count_refusals)
                nursery.start_soon(self._check_watchers)
        finally:
            with self._lock:
                self._token = None
            self.close()

    @property
    def waiting(self) -> list[Ask]:
        """The asks that wait, oldest first."""
        return list(self._queue)

    @contextlib.contextmanager
    def watched_by(self, watcher: Watcher) -> Iterator[None]:
        """Have a watcher hear of all that waits, and of all that happens in the block."""
        try:
            with self._watchers.with_one_more(watcher):
                self.attention_changed()
                self._watchers.bring_up_to_date(watcher, self._queue)
                yield
        finally:
            self.attention_changed()

    def attention_changed(self) -> None:
        """Give each ask the deadline for its present watchers, and tell them of each that has
        changed.
        """
        self._watchers.forget_attended()
        now = time.monotonic()
        for ask in self._queue:
            before = ask.deadline
            if self._watchers.is_seen(ask):
                ask.deadline = ask.full_deadline
            elif ask.deadline == ask.full_deadline:
                ask.deadline = min(ask.full_deadline, now + self.unattended_s)
            if ask.deadline != before and ask.is_shown:
                self._watchers.asked(ask)
        self._deadline_changed.set()

    def warn(self, warnings: tuple[str, ...]) -> None:
        """Tell watchers what the user should know now, if that is something else than before."""
        self._watchers.warn(warnings)

    def close(self) -> int:
        """Answer all that waits, and whatever comes from now on, with no; return how many waited.

        Twice does no harm.
        """
        with self._lock:
            self._is_closed = True
        return self.release_all()

    def release_all(self) -> int:
        """Answer everything that waits with no, for the mount is about to end; return how many that
        were.
        """
        self._take_inbox()
        asks = list(self._queue)
        for ask in asks:
            self._end(ask, AskOutcome.ENDED, Decision.DENY, by="the end of the mount")
        return len(asks)

    def find(self, ask_id: int) -> Ask:
        """Return an ask that waits.

        Raises:
            AskError: it has ended, is being answered, or there never was one.
        """
        ask = self._queue.get(ask_id)
        if ask is None:
            ended = self._queue.ended(ask_id)
            if ended is None:
                raise AskError(f"there is no ask {ask_id}", hint="yolofs asks")
            raise AskError(f"ask {ask_id} has ended: {how_it_ended(ended.outcome.value, ended.by)}", hint="yolofs asks")
        if ask.is_claimed:
            raise AskError(f"ask {ask_id} is being answered by somebody else", hint="yolofs asks")
        return ask

    async def answer(
        self,
        ask_id: int,
        answer: Answer,
        *,
        seen: int | None = None,
        listed: bool = False,
        only: bool = False,
        by: str,
    ) -> AnsweredAsks:
        """Answer an ask and, unless ``only``, its group; return which were answered.

        Only those asks of the group count whose number is not above ``seen``, and with ``listed``
        those that ``yolofs asks`` has told the user of.  Nobody has looked at those that joined
        later.  An answer that makes rules has them judge all else that waits, too.

        Raises:
            AskError: somebody was faster, or the process that asked is gone.
            UsageError: the answer does not fit the question.
            YolofsError: a rule cannot be written; the asks wait on.
        """
        asked = self.find(ask_id)
        group = [asked] if only else [ask for ask in self._queue.group(asked) if not ask.is_claimed]
        limit = math.inf if seen is None else seen
        members = [ask for ask in group if ask is asked or (ask.id <= limit and (ask.is_listed or not listed))]
        unseen = [ask.id for ask in group if ask not in members]
        decision = answer.decision if answer.decision is not None else self.default
        if answer.lifetime is not Lifetime.ONCE:
            rules = rules_of(answer, members)
            with self._claimed(members):
                await trio.to_thread.run_sync(lambda: self._make_rules(rules, answer.lifetime, members))
        outcome = AskOutcome.ALLOWED if decision is Decision.ALLOW else AskOutcome.DENIED
        settled = {ask.id for ask in members if self._is_settled(ask)}
        makes_rules = answer.lifetime is not Lifetime.ONCE
        for ask in members:
            if ask.id in settled:
                self._end(ask, outcome, Decision.AGAIN, by=by)
            else:
                self._end(ask, outcome, decision, by=f"{by}{JUST_ONCE}" if makes_rules else by)
        if makes_rules:
            self._rejudge()
        self.attention_changed()  # there is somebody who answers
        ids = [ask.id for ask in members]
        waiting = [number for number in unseen if self._queue.get(number) is not None]
        return AnsweredAsks(ids, [one for one in ids if one not in settled] if makes_rules else (), waiting)

    def _make_rules(self, rules: Sequence[PathRule], lifetime: Lifetime, asks: Sequence[Ask]) -> None:
        """Put the rules that an answer to some asks makes in force, from another thread.

        Raises:
            UsageError: as :func:`yolofs.access.answers.check_settles_some`.
            YolofsError: they cannot be written.
        """
        check_settles_some(rules, asks, self._book)
        self._install(rules, lasting=lifetime is Lifetime.ALWAYS)

    @contextlib.contextmanager
    def _claimed(self, asks: Sequence[Ask]) -> Iterator[None]:
        for ask in asks:
            ask.is_claimed = True
        try:
            yield
        finally:
            for ask in asks:
                ask.is_claimed = False
            self._deadline_changed.set()

    def _rejudge(self) -> None:
        """End the asks that the rules have settled."""
        for ask in self._queue:
            if not ask.is_claimed and self._is_settled(ask):
                self._end(ask, AskOutcome.RULE, Decision.AGAIN, by=_rule_text(self._book.at(ask.question.path).rule))

    def _is_settled(self, ask: Ask) -> bool:
        return not ask.question.is_still_asked_under(self._book.at(ask.question.path))

    def _end(self, ask: Ask, outcome: AskOutcome, decision: Decision, *, by: str) -> None:
        self._queue.end(ask, outcome, decision, by=by, now_ns=time.time_ns(), records=self._record_count())

    def _record_count(self) -> int | None:
        """Return how many records the journal has: read before the answer, which may add one."""
        return self._auditor.record_count() if self._auditor is not None else None

    def _on_end(self, ended: EndedAsk) -> None:
        if self._auditor is not None:
            self._auditor.ended(ended)
        if ended.ask.is_shown:
            self._watchers.ended(ended)

    # ---- tasks

    def _take_inbox(self) -> None:
        with self._lock:
            arrived = list(self._inbox)
            self._inbox.clear()
        for question, pid, answer in arrived:
            requester = self._auditor.requester(pid) if self._auditor is not None else read_requester(pid)
            if self._watchers.have_left_alone(question.path, requester.run):
                self._answer_again(question, pid, answer)
                continue
            waiter = Waiter(requester, answer)
            now = time.monotonic()
            ask = self._queue.add(question, waiter, now_ns=time.time_ns(), deadline=now + self.timeout_s)
            is_seen = self._watchers.is_seen(ask)
            ask.deadline = ask.full_deadline if is_seen else min(ask.deadline, now + self.unattended_s)
            self._undescribed.append((ask, waiter))
        if arrived:
            self._arrived.set()
            self._came.set()
            self._waits.set()
            self._deadline_changed.set()

    def _answer_again(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        """Give the default at once to a question that got it before because nobody watched."""
        if self.default is Decision.DENY and self._auditor is not None and self._auditor.refused(question, pid):
            self._auditor.write()
        answer(self.default)

    async def _describe_arrivals(self) -> None:
        """Read the command lines of those who ask, then show their asks."""
        while True:
            await self._arrived.wait()
            self._arrived = trio.Event()
            batch, self._undescribed = self._undescribed, []
            await _describe([waiter for _, waiter in batch])
            for ask in dict.fromkeys(ask for ask, _ in batch):
                if self._queue.get(ask.id) is ask:
                    self._show(ask)

    def _show(self, ask: Ask) -> None:
        ask.is_shown = True
        self._watchers.asked(ask)

    async def _end_overdue(self) -> None:
        """Give the default to waiters that nobody answers in time."""
        while True:
            left = self._queue.next_deadline - time.monotonic()
            with trio.move_on_after(max(left, 0)) if left < math.inf else contextlib.nullcontext():
                await self._deadline_changed.wait()
            self._deadline_changed = trio.Event()
            now = time.monotonic()
            for ask in self._queue:
                if ask.deadline <= now and not ask.is_claimed:
                    self._give_default(ask)

    def _give_default(self, ask: Ask) -> None:
        """Give all waiters of an ask the default.  If nobody watches, or nobody who was told
        answers, the run does not have to wait for that path again.
        """
        runs = {waiter.requester.run for waiter in ask.waiters}
        is_attended = ask.deadline == ask.full_deadline
        self._end(ask, AskOutcome.TIMEOUT, self.default, by="nobody" if is_attended else UNATTENDED)
        if self._watchers.leave_alone(ask.question.path, runs) and is_attended:
            self.attention_changed()

    async def _count_refusals(self) -> None:
        """Write notes about repeated refusals at intervals."""
        while self._auditor is not None:
            await trio.sleep(_COUNT_S)
            await trio.to_thread.run_sync(self._auditor.count)

    async def _check_watchers(self) -> None:
        """Notice watchers that have stopped, while something waits for them."""
        while True:
            if not any(self._queue):  # an idle daemon sleeps
                self._waits = trio.Event()
                await self._waits.wait()
            if self._watchers.have_stopped():
                self.attention_changed()
            await trio.sleep(_CHECK_S)

    def _let_go(self) -> None:
        """Drop waiters that want no answer any more."""
        with self._lock:
            withdrawn, self._withdrawn = frozenset(self._withdrawn), []
        self._take_inbox()  # danger: not before that, or a process that asks and goes meanwhile would wait for ever
        if not withdrawn:
            return
        for ask, waiter in self._queue.waiters():
            if waiter.is_answered_by(withdrawn):
                self._withdraw(ask, waiter)

    async def _poll(self) -> None:
        """Drop waiters that were interrupted or killed, where the transport cannot tell."""
        while not self._hears_of_interrupts:
            waiters = [(ask, waiter) for ask, waiter in self._queue.waiters() if waiter.requester.pid]
            if not waiters:  # an idle daemon sleeps
                self._came = trio.Event()
                await self._came.wait()
                continue
            slices = [waiters[start : start + _SLICE] for start in range(0, len(waiters), _SLICE)]
            for some in slices:
                for ask, waiter in some:
                    self._look_at(ask, waiter)
                await trio.sleep(_POLL_S / len(slices))

    def _look_at(self, ask: Ask, waiter: Waiter) -> None:
        if not waiter.is_waiting:
            return
        was_suspect, waiter.is_suspect = waiter.is_suspect, wants_no_answer(waiter.requester.thread)
        if was_suspect and waiter.is_suspect:
            self._withdraw(ask, waiter)

    def _withdraw(self, ask: Ask, waiter: Waiter) -> None:
        self._queue.withdraw(ask, waiter, now_ns=time.time_ns(), records=self._record_count())
        if self._queue.get(ask.id) is ask:  # others wait for it still
            self._show(ask)


async def _describe(waiters: Sequence[Waiter]) -> None:
    """Read command lines; gives up on a process that makes us wait for its own."""

    def read() -> None:
        for waiter in waiters:
            waiter.commands = read_commands(waiter.requester)

    with trio.move_on_after(_COMMANDS_S):
        await trio.to_thread.run_sync(read, abandon_on_cancel=True)


def _rule_text(rule: Rule | None) -> str:
    if rule is None:
        return "the rules, none of which is about it any more"
    return f"the rule {display(os.fsencode(spell_rule(rule)))} = {rule.state.value} ({rule.source})"
