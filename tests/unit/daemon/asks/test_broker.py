"""The broker with real processes and a real trio; the device loop is a thread that asks."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.unit.daemon.asks.broker_driver import ALLOW, DENY, Driver, process, question, run
from yolofs.access.answers import Answer, Lifetime
from yolofs.access.asks import AskOutcome
from yolofs.access.questions import Decision, Operation, Question
from yolofs.audit.audit import AskNote, AuditLog, read_audit
from yolofs.daemon.asks import broker as broker_module
from yolofs.daemon.asks.auditor import Auditor
from yolofs.daemon.asks.broker import Broker
from yolofs.errors import AskError, UsageError
from yolofs.rules import PathRule, Rule, RuleBook, RuleState, SuffixRule
from yolofs.system.requesters import Commands, Requester


def test_an_answer_reaches_the_process_that_asked_and_everybody_sees_it() -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a")
        assert (await driver.broker.answer(ask.id, ALLOW, by="me")).ids == [ask.id]
        assert driver.answers == {b"/a": [Decision.ALLOW]}
        assert [(end.ask, end.outcome, end.by) for end in driver.ends] == [(ask, AskOutcome.ALLOWED, "me")]
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
def test_a_process_that_cannot_be_seen_is_asked_about_and_waits(pid: int) -> None:
    async def test(driver: Driver) -> None:
        (ask,) = await driver.asks(b"/a", pid=pid)
        assert ask.waiters[0].requester == Requester(pid)
        await trio.sleep(1)  # in which each requester is looked at twice
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


def test_asks_of_one_process_below_one_directory_are_one_group() -> None:
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


def test_an_answer_with_only_ends_one_ask_of_a_group() -> None:
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


def test_one_answer_ends_a_thousand_asks_of_a_group_once_each() -> None:
    paths = [b"/d/%d" % number for number in range(1000)]

    async def test(driver: Driver) -> None:
        await driver.asks(*paths)
        assert len(driver.broker.waiting) == 1000
        await trio.sleep(1)  # in which each requester is looked at twice
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
