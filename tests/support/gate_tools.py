"""What the tests of rules on a mounted view share: a book, an asker that keeps account, system
calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.in_process import MountedView
from yolofs.access.questions import Decision, Question
from yolofs.rules import PathRule, Rule, RuleBook, RuleIndex, RuleSet, RuleState

Mounter = Callable[..., MountedView]
LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
EXCHANGE = 2


class Answers:
    """An asker for which the test answers, at once, and which keeps account."""

    def __init__(self, decision: Decision = Decision.DENY) -> None:
        self.decision = decision
        self.asked: list[Question] = []
        self.refusals: list[Question] = []

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        assert pid > 0
        self.asked.append(question)
        answer(self.decision)

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        raise AssertionError(f"nobody waits for {answer}")

    def refused(self, question: Question, pid: int) -> None:
        assert pid > 0
        self.refusals.append(question)


def at(view: MountedView, path: str) -> str:
    """Return a path of the view as the system knows it."""
    return os.path.join(os.fsdecode(view.mountpoint), path)


def path_rule(base: Path, path: str, state: RuleState) -> PathRule:
    """Return a rule for a path of base."""
    return PathRule(os.path.normpath(os.fsencode(base / path)), state, "test:1")


def book(base: Path, *rules: Rule) -> RuleBook:
    """Return a book with some rules, and all else in base allowed."""
    return RuleBook(rule_set(base, *rules))


def rule_set(base: Path, *rules: Rule) -> RuleSet:
    """Return some rules, and one that allows all else in base."""
    return RuleSet((*rules, path_rule(base, ".", RuleState.ALLOW)))


def replace_rules(view: MountedView, *rules: Rule) -> None:
    """Put other rules in force while mounted, as the daemon does; all else in base is allowed."""
    gate = view.mount.gate
    stale = view.mount.call(lambda: gate.replace_rules(RuleIndex(rule_set(Path(os.fsdecode(view.base)), *rules))))
    view.mount.invalidate(stale())


def renameat2(source: str, target: str, flags: int) -> None:
    """Rename, as renameat2(2)."""
    if LIBC.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def refused(number: int = errno.EACCES) -> contextlib.AbstractContextManager[object]:
    """Expect a system call to fail with ``number``."""
    return pytest.raises(OSError, check=lambda error: error.errno == number)


@contextlib.contextmanager
def path_to(path: str) -> Iterator[int]:
    """Hold a path as a working directory does, without opening what is there."""
    fd = os.open(path, os.O_PATH)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def working_in(path: str) -> Iterator[None]:
    """Make ``path`` the working directory."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
