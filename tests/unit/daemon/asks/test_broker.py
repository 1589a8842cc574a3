"""The broker with real processes and a real trio; the device loop is a thread that asks."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from yolofs.access.answers import Answer, Lifetime
from yolofs.access.asks import Ask, Ended, Outcome
from yolofs.access.questions import Decision, Operation, Question
from yolofs.audit.audit import AskNote, AuditLog, read_audit
from yolofs.daemon.asks import broker as broker_module
from yolofs.daemon.asks.auditor import Auditor
from yolofs.daemon.asks.broker import Answered, Broker
from yolofs.errors import AskError, UsageError
from yolofs.rules import PathRule, Rule, RuleBook, RuleSet, RuleState, SuffixRule
from yolofs.system.requesters import Commands, Requester, wants_no_answer

ALLOW = Answer(Decision.ALLOW)
DENY = Answer(Decision.DENY)


def question(path: bytes, operation: Operation = Operation.READ, state: RuleState = RuleState.ASK) -> Question:
    return Question(path, operation, state, None)


class Driver:
    """A broker, somebody who asks it from another thread, and a watcher."""

    def __init__(self, *, timeout_s: float = 30.0, default: Decision = Decision.DENY) -> None:
        self.book = RuleBook()
        self.installed: list[tuple[PathRule, bool]] = []
        self.broker = Broker(self.book, self.install, timeout_s=timeout_s, default=default)
        self.answers: dict[bytes, list[Decision]] = {}
        self.shown: list[Ask] = []
        self.ends: list[Ended] = []
        self.warnings: list[tuple[str, ...]] = []
        self.before_install: Callable[[], None] = lambda: None

    def install(self, rules: Sequence[PathRule], *, lasting: bool) -> None:
        self.before_install()
        self.installed += [(rule, lasting) for rule in rules]
        self.book.replace(RuleSet(tuple(rule for rule, _ in self.installed)))

    def asked(self, ask: Ask) -> None:
        self.shown.append(ask)

    def ended(self, ended: Ended) -> None:
        self.ends.append(ended)

    def warned(self, warnings: tuple[str, ...]) -> None:
        self.warnings.append(warnings)

    def attends(self, run: int) -> bool:
        del run
        return True

    def ask(self, *questions: Question, pid: int | None = None) -> None:
        """Ask on another thread, as the device loop does."""

        def run() -> None:
            for one in questions:
                answers = self.answers.setdefault(one.path, [])
                self.broker.ask(one, os.getpid() if pid is None else pid, answers.append)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    async def until(self, condition: Callable[[], object], what: str) -> None:
        with trio.move_on_after(60):
            while not condition():
                await trio.sleep(0.005)
        assert condition(), what

    async def asks(self, *paths: bytes, pid: int | None = None, operation: Operation = Operation.READ) -> list[Ask]:
        """Ask about some paths and return the asks, once they are shown."""
        self.ask(*(question(path, operation) for path in paths), pid=pid)
        await self.until(lambda: {ask.question.path for ask in self.shown} >= set(paths), "shown")
        return [ask for ask in self.broker.waiting if ask.question.path in paths]


def run(test: Callable[[Driver], Awaitable[None]], **options: Any) -> Driver:
    async def main() -> Driver:
        driver = Driver(**options)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.broker.run)
            with trio.fail_after(90), driver.broker.watched_by(driver):
                await test(driver)
            nursery.cancel_scope.cancel()
        return driver

    return trio.run(main)


@contextlib.contextmanager
def process(*setup: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that has done ``setup`` and sleeps."""
    code = "; ".join(["import os, signal, sys, time", *setup, "print(flush=True)", "time.sleep(60)"])
    with subprocess.Popen([sys.executable, "-c", code, "an argument"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


def test_an_answer_reaches_who_asked_and_everybody_sees_it() -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a")
        assert (await driver.broker.answer(ask.id, ALLOW, by="me")).ids == [ask.id]
        assert driver.answers == {b"/a": [Decision.ALLOW]}
        assert [(end.ask, end.outcome, end.by) for end in driver.ends] == [(ask, Outcome.ALLOWED, "me")]
        assert driver.broker.waiting == []

    run(test)


def test_an_ask_tells_who_asks_and_who_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "_COMMANDS_S", 30)  # on a busy machine it may take longer than one waits for

    async def test(driver: Driver) -> None:
        with process() as child:
            (ask,) = await driver.asks(b"/a", pid=child.pid)
            (waiter,) = ask.waiters
            assert (waiter.requester.pid, waiter.requester.parent) == (child.pid, os.getpid())
            assert waiter.requester.name == Path(f"/proc/{child.pid}/comm").read_bytes().rstrip(b"\n")
            assert waiter.commands.own[0] == os.fsencode(sys.executable)
            assert waiter.commands.own[-1] == b"an argument"
            assert waiter.commands.parent[0] == Path("/proc/self/cmdline").read_bytes().split(b"\0")[0]

    run(test)


@pytest.mark.parametrize("pid", [0, 2**22 - 1])
def test_who_cannot_be_seen_is_asked_about_all_the_same_and_waits(pid: int) -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a", pid=pid)
        assert ask.waiters[0].requester == Requester(pid)
        await trio.sleep(1)
        assert driver.broker.waiting == [ask]
        await driver.broker.answer(ask.id, DENY, by="me")

    assert run(test).answers == {b"/a": [Decision.DENY]}


def test_a_process_that_lets_nobody_read_its_command_line_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()

    def hang(requester: Requester) -> Commands:
        never.wait(60)
        return Commands()

    monkeypatch.setattr(broker_module, "read_commands", hang)

    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a")
        assert ask.waiters[0].commands == Commands()
        (other,) = await driver.asks(b"/b")
        await driver.broker.answer(other.id, DENY, only=True, by="me")
        await driver.broker.answer(ask.id, ALLOW, by="me")
        never.set()

    assert run(test).answers == {b"/a": [Decision.ALLOW], b"/b": [Decision.DENY]}


def test_a_thread_is_shown_as_its_process() -> None:
    async def test(driver: Driver) -> None:
        thread = await trio.to_thread.run_sync(threading.get_native_id)
        (ask,) = await driver.asks(b"/a", pid=thread)
        assert ask.waiters[0].requester[:2] == (thread, os.getpid())
        await driver.broker.answer(ask.id, DENY, by="me")

    run(test)


def test_identical_asks_share_one_and_all_get_the_answer() -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a")
        driver.ask(question(b"/a"), question(b"/a", Operation.WRITE))
        await driver.until(lambda: len(driver.shown) == 3, "the ask again, and the one to write")
        assert [one.question.operation for one in driver.broker.waiting] == [Operation.READ, Operation.WRITE]
        await driver.broker.answer(ask.id, ALLOW, by="me")
        assert driver.answers == {b"/a": [Decision.ALLOW] * 2}

    assert run(test).answers == {b"/a": [Decision.ALLOW, Decision.ALLOW, Decision.DENY]}


def test_leave_for_one_kind_of_change_is_none_for_another() -> None:
    """Only what was shown has been answered."""

    async def test(driver: Driver) -> None:
        operations = [Operation.METADATA, Operation.DELETE, Operation.WRITE]
        with contextlib.ExitStack() as stack:
            for operation in operations:
                driver.ask(question(b"/a", operation), pid=stack.enter_context(process()).pid)
            await driver.until(lambda: len(driver.shown) == 3, "three asks")
            asks = driver.broker.waiting
            assert [ask.question.operation for ask in asks] == operations
            await driver.broker.answer(asks[0].id, ALLOW, by="me")
            assert driver.broker.waiting == asks[1:]
            assert driver.answers == {b"/a": [Decision.ALLOW]}

    run(test)


def test_what_one_process_asks_below_one_directory_is_one_group() -> None:
    async def test(driver: Driver) -> None:
        with process() as other:
            asks = await driver.asks(b"/d/a", b"/d/b", b"/d/e/c", b"/x/a")
            (foreign,) = await driver.asks(b"/d/z", pid=other.pid)
            (write,) = await driver.asks(b"/d/w", operation=Operation.WRITE)
            assert [ask.group for ask in asks] == [1, 1, 1, 4]
            assert (foreign.group, write.group) == (foreign.id, write.id)
            assert (await driver.broker.answer(asks[1].id, ALLOW, seen=asks[1].id, by="me")).ids == [1, 2]
            assert (await driver.broker.answer(asks[2].id, DENY, by="me")).ids == [3]
            assert len(driver.broker.waiting) == 3

    run(test)


@pytest.mark.parametrize(
    ("rule", "paths", "groups"),
    [
        (PathRule(b"/h/s", RuleState.ASK, "x"), (b"/h/s/0/f", b"/h/s/1/f", b"/h/s/2/t/f", b"/h/s/f"), [1, 1, 1, 1]),
        (PathRule(b"/", RuleState.ASK, "x"), (b"/h/s/0/f", b"/h/t", b"/x/s/1/f"), [1, 1, 3]),
        (None, (b"/h/s/0/f", b"/h/t", b"/x/s/1/f"), [1, 1, 3]),
        (SuffixRule(b".key", RuleState.ASK, "x"), (b"/h/a/s.key", b"/h/b/s.key", b"/x/s.key"), [1, 1, 3]),
        (PathRule(b"/h/s/f", RuleState.ASK, "x"), (b"/h/s/f",), [1]),
        (None, (b"/f", b"/g"), [1, 1]),
    ],
)
def test_siblings_are_one_group_as_far_as_one_rule_is_why_they_are_asked(
    rule: Rule | None, paths: Sequence[bytes], groups: list[int]
) -> None:
    async def test(driver: Driver) -> None:
        driver.ask(*(Question(path, Operation.READ, RuleState.ASK, rule) for path in paths))
        await driver.until(lambda: len(driver.shown) == len(paths), "shown")
        assert [ask.group for ask in driver.broker.waiting] == groups

    run(test)


def test_two_rules_beside_each_other_make_two_groups() -> None:
    async def test(driver: Driver) -> None:
        one, two = (PathRule(path, RuleState.ASK, "x") for path in (b"/h/s", b"/h/t"))
        driver.ask(*(Question(rule.path + b"/f", Operation.READ, RuleState.ASK, rule) for rule in (one, two)))
        await driver.until(lambda: len(driver.shown) == 2, "shown")
        assert [ask.group for ask in driver.broker.waiting] == [1, 2]

    run(test)


def test_only_the_one_of_a_group_can_be_answered() -> None:
    async def test(driver: Driver) -> None:
        asks = await driver.asks(b"/d/a", b"/d/b")
        assert (await driver.broker.answer(asks[0].id, ALLOW, only=True, by="me")).ids == [1]
        (later,) = await driver.asks(b"/d/c")
        assert (asks[1].group, later.group) == (1, 1)

    run(test)


def test_the_first_answer_wins_and_the_second_is_told() -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a")
        await driver.broker.answer(ask.id, ALLOW, by="one")
        with pytest.raises(AskError, match="ask 1 has ended: allowed by one"):
            await driver.broker.answer(ask.id, DENY, by="two")
        with pytest.raises(AskError, match="there is no ask 7"):
            await driver.broker.answer(7, DENY, by="two")

    assert run(test).answers == {b"/a": [Decision.ALLOW]}


def test_while_an_answer_makes_its_rule_no_other_one_counts() -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/d/a")
        installing, go_on = threading.Event(), threading.Event()

        def before_install() -> None:
            installing.set()
            go_on.wait(60)

        driver.before_install = before_install
        async with trio.open_nursery() as nursery:

            async def first() -> None:
                await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.ALWAYS), by="one")

            nursery.start_soon(first)
            await driver.until(installing.is_set, "installing")
            with pytest.raises(AskError, match="ask 1 is being answered by somebody else"):
                await driver.broker.answer(ask.id, DENY, by="two")
            go_on.set()

    driver = run(test)
    assert driver.answers == {b"/d/a": [Decision.AGAIN]}
    assert driver.installed == [(PathRule(b"/d/a", RuleState.WRITE_ASK, "rules.toml"), True)]


def test_a_rule_that_cannot_be_written_leaves_the_ask_waiting() -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a")

        def fail() -> None:
            raise UsageError("cannot be written")

        driver.before_install = fail
        with pytest.raises(UsageError):
            await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.SESSION), by="me")
        assert driver.answers == {b"/a": []}
        await driver.broker.answer(ask.id, ALLOW, by="me")

    assert run(test).answers == {b"/a": [Decision.ALLOW]}


def test_an_answer_for_a_directory_has_all_below_it_judged_anew() -> None:
    async def test(driver: Driver) -> None:
        asks = await driver.asks(b"/d/a", b"/d/e/b", b"/e/c")
        answer = Answer(Decision.ALLOW, Lifetime.SESSION, b"/d", RuleState.READ_ONLY)
        assert (await driver.broker.answer(asks[0].id, answer, only=True, by="me")).ids == [1]
        assert driver.installed == [(PathRule(b"/d", RuleState.READ_ONLY, "an answer in this session"), False)]
        assert driver.answers == {b"/d/a": [Decision.AGAIN], b"/d/e/b": [Decision.AGAIN], b"/e/c": []}
        assert [(end.ask.id, end.outcome) for end in driver.ends] == [(1, Outcome.ALLOWED), (2, Outcome.RULE)]

    run(test)


def test_a_rule_from_elsewhere_has_all_that_waits_judged_anew() -> None:
    async def test(driver: Driver) -> None:
        await driver.asks(b"/d/a", b"/e/a")
        await driver.asks(b"/d/w", operation=Operation.WRITE)
        driver.book.replace(RuleSet((PathRule(b"/d", RuleState.WRITE_ASK, "elsewhere"),)))
        driver.broker.rules_changed()
        await driver.until(lambda: driver.ends, "judged")
        assert driver.answers == {b"/d/a": [Decision.AGAIN], b"/e/a": [], b"/d/w": []}

    run(test)


def test_a_rule_that_would_settle_nothing_as_a_nearer_one_asks_is_not_made() -> None:
    """It would change what nobody has asked about, and the next access would be asked about
    again.
    """

    async def test(driver: Driver) -> None:
        driver.install([PathRule(b"/d/s", RuleState.ASK, ".yolofs.toml:3")], lasting=False)
        (ask,) = await driver.asks(b"/d/s/a")
        with pytest.raises(UsageError, match=r'rule for /d would settle nothing .*: /d/s is "ask" \(.yolofs.toml:3\)'):
            await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d"), by="me")
        assert driver.broker.waiting == [ask]
        await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d/s/a"), by="me")

    driver = run(test)
    assert [rule.path for rule, _ in driver.installed] == [b"/d/s", b"/d/s/a"]
    assert driver.answers == {b"/d/s/a": [Decision.AGAIN]}


def test_what_a_rule_for_a_group_leaves_open_is_told() -> None:
    async def test(driver: Driver) -> None:
        driver.install([PathRule(b"/d/s", RuleState.ASK, ".yolofs.toml:3")], lasting=False)
        asks = await driver.asks(b"/d/s", b"/d/a")
        assert {ask.group for ask in asks} == {asks[0].group}
        answered = await driver.broker.answer(
            asks[0].group, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d"), by="me, process 7"
        )
        assert answered == Answered([1, 2], [1], [])

    driver = run(test)
    assert driver.answers == {b"/d/s": [Decision.ALLOW], b"/d/a": [Decision.AGAIN]}
    assert [(end.ask.question.path, end.by) for end in driver.ends] == [
        (b"/d/s", "me, process 7, just once"),
        (b"/d/a", "me, process 7"),
    ]


@pytest.mark.parametrize(
    ("rule", "about", "why", "hint"),
    [
        (PathRule(b"/d/s", RuleState.ASK, "x"), RuleState.ASK, '/d/s is "ask"', "about, or a directory"),
        (SuffixRule(b".key", RuleState.ASK, "x"), RuleState.ASK, r'\*\*/\*.key is "ask"', "about$"),
        (PathRule(b"/d", RuleState.ALLOW, "x"), RuleState.WRITE_ASK, "other names .* not found", "about$"),
    ],
)
def test_why_a_rule_would_settle_nothing_is_said(rule: Rule, about: RuleState, why: str, hint: str) -> None:
    async def test(driver: Driver) -> None:
        driver.book.replace(RuleSet((rule,)))
        driver.ask(Question(b"/d/s/a.key", Operation.WRITE, about, rule))
        await driver.until(lambda: driver.shown, "shown")
        with pytest.raises(UsageError, match=f"^a rule for /d would settle nothing .*{why}") as refused:
            await driver.broker.answer(1, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d"), by="me")
        assert re.search(hint, refused.value.hint)

    run(test)


def test_what_a_nearer_rule_asks_about_is_allowed_once_where_the_rule_settles_others_of_the_group() -> None:
    async def test(driver: Driver) -> None:
        driver.install([PathRule(b"/d/.env", RuleState.ASK, "preset")], lasting=False)
        (ask, _) = await driver.asks(b"/d/.env", b"/d/a")
        await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d"), by="me")

    assert run(test).answers == {b"/d/.env": [Decision.ALLOW], b"/d/a": [Decision.AGAIN]}


@pytest.mark.parametrize(
    ("operation", "state", "decision", "made"),
    [
        (Operation.READ, RuleState.ASK, Decision.ALLOW, RuleState.WRITE_ASK),
        (Operation.READ, RuleState.ASK, Decision.DENY, RuleState.DENY),
        (Operation.WRITE, RuleState.ASK, Decision.ALLOW, RuleState.ALLOW),
        (Operation.WRITE, RuleState.ASK, Decision.DENY, RuleState.DENY),
        (Operation.DELETE, RuleState.WRITE_ASK, Decision.DENY, RuleState.READ_ONLY),
    ],
)
def test_without_a_state_the_rule_settles_no_more_than_was_asked(
    operation: Operation, state: RuleState, decision: Decision, made: RuleState
) -> None:
    async def test(driver: Driver) -> None:
        driver.ask(question(b"/a", operation, state))
        await driver.until(lambda: driver.shown, "shown")
        await driver.broker.answer(1, Answer(decision, Lifetime.SESSION), by="me")

    assert [rule.state for rule, _ in run(test).installed] == [made]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(Decision.ALLOW, Lifetime.ALWAYS, b"/d/a/b"), "/d/a/b is neither /d/a nor above it"),
        (Answer(Decision.ALLOW, Lifetime.ALWAYS, b"/e"), "/e is neither /d/a nor above it"),
        (Answer(Decision.ALLOW, Lifetime.ALWAYS, None, RuleState.HIDDEN), '"hidden" does not allow what is asked'),
        (Answer(Decision.ALLOW, Lifetime.ALWAYS, None, RuleState.ASK), '"ask" does not allow what is asked'),
        (Answer(Decision.DENY, Lifetime.ALWAYS, None, RuleState.READ_ONLY), '"read-only" does not deny'),
        (Answer(None, Lifetime.ALWAYS), "only allow and deny can hold"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_ask_waits_on(answer: Answer, said: str) -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/d/a")
        with pytest.raises(UsageError, match=said):
            await driver.broker.answer(ask.id, answer, by="me")
        assert driver.broker.waiting == [ask]

    driver = run(test)
    assert driver.installed == []


@pytest.mark.parametrize("default", [Decision.DENY, Decision.ALLOW])
def test_nobody_in_time_means_the_default(default: Decision) -> None:
    async def test(driver: Driver) -> None:
        driver.ask(question(b"/a"))
        await driver.until(lambda: driver.answers[b"/a"], "answered")

    driver = run(test, timeout_s=0.05, default=default)
    assert driver.answers == {b"/a": [default]}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_who_is_killed_is_let_go_within_a_second(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 * broker_module._POLL_S < 1
    looks: list[int] = []

    def looked(thread: int) -> bool:
        looks.append(thread)
        return wants_no_answer(thread)

    monkeypatch.setattr(broker_module, "wants_no_answer", looked)

    async def test(driver: Driver) -> None:
        with process() as child:
            await driver.asks(b"/a", pid=child.pid)
            child.send_signal(number)
            await trio.to_thread.run_sync(os.waitid, os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            looks.clear()
            await driver.until(lambda: driver.answers[b"/a"], "let go")
            assert len(looks) <= 2

    driver = run(test)
    assert driver.answers == {b"/a": [Decision.INTERRUPTED]}
    assert [end.outcome for end in driver.ends] == [Outcome.INTERRUPTED]


def test_signals_that_are_blocked_or_ignored_interrupt_nobody() -> None:
    async def test(driver: Driver) -> None:
        setup = (
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
            "signal.signal(signal.SIGUSR2, signal.SIG_IGN)",
        )
        with process(*setup) as child:
            (ask,) = await driver.asks(b"/a", pid=child.pid)
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGWINCH):
                child.send_signal(number)
            await trio.sleep(1.2)
            assert driver.broker.waiting == [ask]

    run(test)


def test_of_two_who_share_an_ask_one_may_go_and_the_other_gets_its_answer() -> None:
    async def test(driver: Driver) -> None:
        with process() as child:
            driver.ask(question(b"/a"), pid=child.pid)
            driver.ask(question(b"/a"))
            await driver.until(lambda: driver.shown, "shown")
            child.kill()
            await driver.until(lambda: driver.answers[b"/a"], "let go")
            await driver.broker.answer(1, ALLOW, by="me")

    assert run(test).answers == {b"/a": [Decision.INTERRUPTED, Decision.ALLOW]}


def test_the_end_answers_all_with_no_and_so_is_what_comes_later() -> None:
    async def test(driver: Driver) -> None:
        await driver.asks(b"/a", b"/b")
        driver.broker.close()
        driver.broker.close()
        driver.ask(question(b"/c"))

    assert run(test).answers == {b"/a": [Decision.DENY], b"/b": [Decision.DENY], b"/c": [Decision.DENY]}


def test_asks_from_before_the_broker_runs_are_not_lost() -> None:
    driver = Driver()
    driver.ask(question(b"/a"))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.broker.run)
            await driver.until(lambda: driver.broker.waiting, "waits")
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert driver.answers == {b"/a": [Decision.DENY]}


def test_a_thousand_wait_and_each_is_answered_once() -> None:
    paths = [b"/d/%d" % number for number in range(1000)]

    async def test(driver: Driver) -> None:
        await driver.asks(*paths)
        assert len(driver.broker.waiting) == 1000
        await trio.sleep(1)
        assert len((await driver.broker.answer(1000, ALLOW, by="me")).ids) == 1000

    driver = run(test)
    assert driver.answers == {path: [Decision.ALLOW] for path in paths}
    assert len(driver.ends) == 1000


@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
def test_an_ask_is_noted_with_the_records_from_before_its_answer(tmp_path: Path, decision: Decision) -> None:
    records = [b"one", b"two"]
    auditor = Auditor(AuditLog(os.fsencode(tmp_path)), lambda _: 0, lambda: len(records))

    async def main() -> None:
        broker = Broker(RuleBook(), lambda *_, **__: None, auditor, timeout_s=30, default=Decision.DENY)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run)
            broker.ask(question(b"/a"), os.getpid(), lambda _: records.append(b"what was asked about"))
            with trio.fail_after(10):
                while not broker.waiting:
                    await trio.sleep(0.005)
                await broker.answer(1, Answer(decision), by="me")
            nursery.cancel_scope.cancel()

    trio.run(main)
    auditor.close()
    (note,) = read_audit(os.fsencode(tmp_path))
    assert isinstance(note, AskNote)
    assert (note.records, len(records)) == (2, 3)


def test_watchers_are_told_what_should_be_known_of_the_rules_once_for_each_change() -> None:
    async def test(driver: Driver) -> None:
        driver.broker.warn(())
        for warnings in (("a is broken",), ("a is broken",), ()):
            driver.broker.warn(warnings)
        driver.broker.warn(("b is broken",))
        with driver.broker.watched_by(late):
            pass

    late = Driver()
    driver = run(test)
    assert driver.warnings == [("a is broken",), (), ("b is broken",)]
    assert late.warnings == [("b is broken",)]


def test_a_process_that_asks_and_is_killed_while_others_are_looked_at_is_let_go(tmp_path: Path) -> None:
    """The device loop goes on meanwhile; if the kill got lost, the process could not end."""
    answers: dict[bytes, list[Decision]] = {b"/1": [], b"/2": [], b"/3": []}
    answered_by = {path: given.append for path, given in answers.items()}

    def ask(path: bytes) -> None:
        broker.ask(question(path), os.getpid(), answered_by[path])

    def second_asks() -> None:
        broker.withdraw(answered_by[b"/1"])
        ask(b"/2")

    def third_asks_and_is_killed() -> None:
        ask(b"/3")
        broker.withdraw(answered_by[b"/3"])

    meanwhile = iter((second_asks, third_asks_and_is_killed))

    def run_of(_: int) -> int:
        """Tell which run a process is in: what a broker looks at for each that has asked."""
        next(meanwhile, lambda: None)()
        return 0

    auditor = Auditor(AuditLog(os.fsencode(tmp_path)), run_of, lambda: 0)
    broker = Broker(
        RuleBook(),
        lambda *_, **__: None,
        auditor,
        timeout_s=60,
        default=Decision.DENY,
        hears_of_interrupts=True,
    )

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run)
            await trio.testing.wait_all_tasks_blocked()
            ask(b"/1")
            with trio.fail_after(10):
                while [waiting.question.path for waiting in broker.waiting] != [b"/2"]:
                    await trio.sleep(0.005)
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert [answers[path] for path in (b"/1", b"/3")] == [[Decision.INTERRUPTED]] * 2


def test_who_is_killed_before_the_broker_runs_is_let_go() -> None:
    answers: list[Decision] = []
    answered_by = answers.append
    broker = Broker(RuleBook(), lambda *_, **__: None, timeout_s=60, default=Decision.DENY, hears_of_interrupts=True)
    broker.ask(question(b"/a"), os.getpid(), answered_by)
    broker.withdraw(answered_by)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run)
            with trio.fail_after(10):
                while not answers:
                    await trio.sleep(0.005)
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert answers == [Decision.INTERRUPTED]
