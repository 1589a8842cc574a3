"""A broker of asks, and those who ask it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import trio
import trio.testing

from yolofs.access.answers import Answer
from yolofs.access.asks import Ask, EndedAsk
from yolofs.access.questions import Decision, Operation, Question
from yolofs.daemon.asks.broker import Broker
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState

ALLOW = Answer(Decision.ALLOW)


DENY = Answer(Decision.DENY)


def question(path: bytes, operation: Operation = Operation.READ, state: RuleState = RuleState.ASK) -> Question:
    return Question(path, operation, state, None)


class Driver:
    """A broker, somebody who asks it from another thread, and a watcher."""

    def __init__(self, *, timeout_s: float = 120.0, default: Decision = Decision.DENY) -> None:
        self.book = RuleBook()
        self.installed: list[tuple[PathRule, bool]] = []
        self.broker = Broker(self.book, self.install, timeout_s=timeout_s, default=default)
        self.answers: dict[bytes, list[Decision]] = {}
        self.shown: list[Ask] = []
        self.ends: list[EndedAsk] = []
        self.warnings: list[tuple[str, ...]] = []
        self.before_install: Callable[[], None] = lambda: None

    def install(self, rules: Sequence[PathRule], *, lasting: bool) -> None:
        self.before_install()
        self.installed += [(rule, lasting) for rule in rules]
        self.book.replace(RuleSet(tuple(rule for rule, _ in self.installed)))

    def asked(self, ask: Ask) -> None:
        self.shown.append(ask)

    def ended(self, ended: EndedAsk) -> None:
        self.ends.append(ended)

    def warned(self, warnings: tuple[str, ...]) -> None:
        self.warnings.append(warnings)

    def check(self) -> bool:
        return False

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
