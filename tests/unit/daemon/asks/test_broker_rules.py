"""An answer may make a rule: the other asks that it settles, and those that it cannot."""

from __future__ import annotations

import re
import threading

import pytest
import trio
import trio.testing

from tests.unit.daemon.asks.broker_driver import ALLOW, DENY, Driver, question, run
from yolofs.access.answers import Answer, Lifetime
from yolofs.access.asks import AskOutcome
from yolofs.access.questions import Decision, Operation, Question
from yolofs.daemon.asks.broker import AnsweredAsks
from yolofs.errors import AskError, UsageError
from yolofs.rules import PathRule, Rule, RuleSet, RuleState, SuffixRule


def test_an_ask_takes_no_second_answer_while_the_first_makes_its_rule() -> None:
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
        assert [(end.ask.id, end.outcome) for end in driver.ends] == [(1, AskOutcome.ALLOWED), (2, AskOutcome.RULE)]

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
        with pytest.raises(
            UsageError, match=r'rule for /d would not settle what is asked, .*: /d/s is "ask" \(.yolofs.toml:3\)'
        ):
            await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d"), by="me")
        assert driver.broker.waiting == [ask]
        await driver.broker.answer(ask.id, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d/s/a"), by="me")

    driver = run(test)
    assert [rule.path for rule, _ in driver.installed] == [b"/d/s", b"/d/s/a"]
    assert driver.answers == {b"/d/s/a": [Decision.AGAIN]}


def test_asks_that_a_rule_for_a_group_leaves_open_are_told() -> None:
    async def test(driver: Driver) -> None:
        driver.install([PathRule(b"/d/s", RuleState.ASK, ".yolofs.toml:3")], lasting=False)
        asks = await driver.asks(b"/d/s", b"/d/a")
        assert {ask.group for ask in asks} == {asks[0].group}
        answered = await driver.broker.answer(
            asks[0].group, Answer(Decision.ALLOW, Lifetime.SESSION, b"/d"), by="me, process 7"
        )
        assert answered == AnsweredAsks([1, 2], [1], [])

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
def test_a_rule_that_would_settle_nothing_is_refused_with_the_reason(
    rule: Rule, about: RuleState, why: str, hint: str
) -> None:
    async def test(driver: Driver) -> None:
        driver.book.replace(RuleSet((rule,)))
        driver.ask(Question(b"/d/s/a.key", Operation.WRITE, about, rule))
        await driver.until(lambda: driver.shown, "shown")
        with pytest.raises(UsageError, match=f"^a rule for /d would not settle what is asked, .*{why}") as refused:
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
