"""How an ask ends that nobody answers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.unit.daemon.asks.broker_driver import ALLOW, Driver, process, question, run
from yolofs.access.asks import AskOutcome
from yolofs.access.questions import Decision
from yolofs.audit.audit import AuditLog
from yolofs.daemon.asks import broker as broker_module
from yolofs.daemon.asks.auditor import Auditor
from yolofs.daemon.asks.broker import Broker
from yolofs.rules import RuleBook
from yolofs.system.requesters import wants_no_answer


@pytest.mark.parametrize("default", [Decision.DENY, Decision.ALLOW])
def test_an_ask_that_nobody_answers_in_time_gets_the_default(default: Decision) -> None:
    async def test(driver: Driver) -> None:
        driver.ask(question(b"/a"))
        await driver.until(lambda: driver.answers[b"/a"], "answered")

    driver = run(test, timeout_s=0.05, default=default)
    assert driver.answers == {b"/a": [default]}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_requester_that_is_killed_is_let_go_within_a_second(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert [end.outcome for end in driver.ends] == [AskOutcome.INTERRUPTED]


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
            await trio.sleep(1.2)  # in which each requester is looked at three times
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


def test_closing_the_broker_denies_all_asks_and_those_that_come_later() -> None:
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
        """Tell the run of a process, as the broker asks for each new question."""
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


def test_whoever_is_killed_before_the_broker_runs_is_let_go() -> None:
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
