"""What becomes of requests while they wait for an answer."""

from __future__ import annotations

import ctypes
import errno
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.gate_tools import (
    EXCHANGE,
    LIBC,
    Answers,
    Mounter,
    at,
    book,
    path_rule,
    refused,
    renameat2,
    replace_rules,
)
from yolofs.access.questions import Decision, Operation, Question
from yolofs.rules import RuleState, SuffixRule

pytestmark = pytest.mark.mount
TIMEOUT_S = 60.0
ASK_X = SuffixRule(b".x", RuleState.ASK, "test:2")


class Asked(NamedTuple):
    question: Question
    answer: Callable[[Decision], None]


class Waiting:
    """An asker that answers when the test says so."""

    def __init__(self) -> None:
        self._asked: queue.Queue[Asked] = queue.Queue()
        self.refusals: list[Question] = []

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        assert pid > 0
        self._asked.put(Asked(question, answer))

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        answer(Decision.INTERRUPTED)

    def refused(self, question: Question, pid: int) -> None:
        self.refusals.append(question)

    def next(self) -> Asked:
        return self._asked.get(timeout=TIMEOUT_S)

    def answer_next(self, path: str | Path, operation: Operation, decision: Decision = Decision.ALLOW) -> None:
        question, answer = self.next()
        assert (question.path, question.operation) == (os.fsencode(path), operation)
        answer(decision)

    @property
    def is_empty(self) -> bool:
        return self._asked.empty()


class Attempt:
    """A system call that may wait, in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._errno: int | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], object]) -> None:
        try:
            call()
            self._errno = 0
        except OSError as error:
            self._errno = error.errno

    @property
    def is_over(self) -> bool:
        return self._errno is not None

    def end(self) -> int:
        """Return the errno of the call, 0 if it worked."""
        self._thread.join(TIMEOUT_S)
        assert self._errno is not None, "still waiting"
        return self._errno


def open_once(path: str, flags: int = os.O_RDONLY) -> None:
    """Open without the retries that Python makes after EINTR."""
    fd = LIBC.open(os.fsencode(path), flags)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open")
    os.close(fd)


@pytest.fixture
def asker() -> Iterator[Waiting]:
    asker = Waiting()
    yield asker
    assert asker.is_empty, f"nobody expected {asker.next().question}"


def test_a_request_is_judged_anew_if_the_rules_changed_while_it_waited(
    base: Path, mounted: Mounter, asker: Waiting
) -> None:
    (base / "f").write_text("x")
    view = mounted(book=book(base, path_rule(base, "f", RuleState.ASK)), asker=asker)
    outcomes = {
        RuleState.ALLOW: 0,
        RuleState.READ_ONLY: 0,
        RuleState.DENY: errno.EACCES,
        RuleState.HIDDEN: errno.ENOENT,
    }
    for decision in (Decision.AGAIN, Decision.ALLOW):
        for state, outcome in outcomes.items():
            asker.refusals.clear()
            replace_rules(view, path_rule(base, "f", RuleState.ASK))
            attempt = Attempt(lambda: open_once(at(view, "f")))
            _, answer = asker.next()
            rule = path_rule(base, "f", state)
            replace_rules(view, rule)
            answer(decision)
            assert attempt.end() == outcome
            is_refusal = outcome and decision is Decision.ALLOW  # else the ask is noted, with what became of it
            expected = [(rule.path, Operation.READ, state, rule)] if is_refusal else []
            assert [(one.path, one.operation, one.state, one.rule) for one in asker.refusals] == expected


def test_a_request_is_asked_again_if_the_rules_still_say_so(base: Path, mounted: Mounter, asker: Waiting) -> None:
    (base / "f").write_text("x")
    view = mounted(book=book(base, path_rule(base, "f", RuleState.ASK)), asker=asker)
    attempt = Attempt(lambda: open_once(at(view, "f")))
    for _ in range(3):
        asker.answer_next(base / "f", Operation.READ, Decision.AGAIN)
    asker.answer_next(base / "f", Operation.READ)
    assert attempt.end() == 0


def test_interrupted_and_denied_have_errnos_of_their_own(base: Path, mounted: Mounter, asker: Waiting) -> None:
    (base / "f").write_text("x")
    view = mounted(book=book(base, path_rule(base, "f", RuleState.ASK)), asker=asker)
    for decision, number in ((Decision.INTERRUPTED, errno.EINTR), (Decision.DENY, errno.EACCES)):
        attempt = Attempt(lambda: open_once(at(view, "f")))
        asker.answer_next(base / "f", Operation.READ, decision)
        assert attempt.end() == number
    assert asker.refusals == []


def test_an_answer_is_for_one_request_one_path_and_one_kind_of_access(
    base: Path, mounted: Mounter, asker: Waiting
) -> None:
    for name in ("f", "g"):
        (base / name).write_text("x")
    ask = [path_rule(base, name, RuleState.ASK) for name in ("f", "g", "h")]
    view = mounted(book=book(base, *ask), asker=asker)
    first, second = (Attempt(lambda: open_once(at(view, "f"))) for _ in range(2))
    asker.answer_next(base / "f", Operation.READ)
    asker.answer_next(base / "f", Operation.READ, Decision.DENY)
    assert sorted((first.end(), second.end())) == [0, errno.EACCES]
    both = Attempt(lambda: open_once(at(view, "f"), os.O_RDWR))
    asker.answer_next(base / "f", Operation.WRITE)
    assert both.end() == 0
    for call in (
        lambda: os.rename(at(view, "f"), at(view, "h")),
        lambda: renameat2(at(view, "h"), at(view, "g"), EXCHANGE),
        lambda: os.link(at(view, "h"), at(view, "f")),
    ):
        for last, number in ((Decision.DENY, errno.EACCES), (Decision.ALLOW, 0)):
            attempt = Attempt(call)
            asked = [asker.next()]
            asked[0].answer(Decision.ALLOW)
            asked.append(asker.next())
            assert not attempt.is_over
            assert len({one.question.path for one in asked}) == 2
            asked[1].answer(last)
            assert attempt.end() == number


def test_other_requests_are_served_while_one_waits_for_an_answer(base: Path, mounted: Mounter, asker: Waiting) -> None:
    for name in ("f.x", "g"):
        (base / name).write_text(name)
    view = mounted(book=book(base, ASK_X), asker=asker)
    attempt = Attempt(lambda: open_once(at(view, "f.x")))
    asked = asker.next()
    assert Path(at(view, "g")).read_text() == "g"
    Path(at(view, "new")).write_text("new")
    os.rename(at(view, "new"), at(view, "newer"))
    assert sorted(os.listdir(at(view, "."))) == ["f.x", "g", "newer"]
    os.stat(at(view, "f.x"))
    assert not attempt.is_over
    asked.answer(Decision.ALLOW)
    assert attempt.end() == 0


def test_a_file_that_the_host_removes_meanwhile_is_gone(base: Path, mounted: Mounter, asker: Waiting) -> None:
    (base / "f").write_text("x")
    view = mounted(book=book(base, path_rule(base, "f", RuleState.ASK)), asker=asker)
    attempt = Attempt(lambda: open_once(at(view, "f")))
    asked = asker.next()
    (base / "f").unlink()
    asked.answer(Decision.ALLOW)
    assert attempt.end() == errno.ENOENT


def test_a_name_that_comes_meanwhile_is_not_replaced(base: Path, mounted: Mounter, asker: Waiting) -> None:
    view = mounted(book=book(base, path_rule(base, "d", RuleState.ASK)), asker=asker)
    attempt = Attempt(lambda: os.mkdir(at(view, "d")))
    asked = asker.next()
    (base / "d").write_text("the host's")
    asked.answer(Decision.ALLOW)
    assert attempt.end() == errno.EEXIST
    assert (base / "d").read_text() == "the host's"


def test_a_file_whose_directory_moves_meanwhile_is_asked_for_anew(base: Path, mounted: Mounter, asker: Waiting) -> None:
    (base / "old").mkdir()
    (base / "old/f.x").write_text("x")
    view = mounted(book=book(base, ASK_X), asker=asker)
    attempt = Attempt(lambda: open_once(at(view, "old/f.x")))
    asked = asker.next()
    os.rename(at(view, "old"), at(view, "new"))
    asked.answer(Decision.ALLOW)
    asker.answer_next(base / "new/f.x", Operation.READ)
    assert attempt.end() == 0


def test_a_travel_while_an_open_waits_is_seen_by_the_open(base: Path, mounted: Mounter, asker: Waiting) -> None:
    view = mounted(book=book(base), asker=asker)
    empty = view.snapshot()
    Path(at(view, "f.x")).write_text("x")
    view.snapshot()
    replace_rules(view, ASK_X)
    attempt = Attempt(lambda: open_once(at(view, "f.x"), os.O_WRONLY))
    asked = asker.next()
    view.travel(empty)
    asked.answer(Decision.ALLOW)
    assert attempt.end() in (0, errno.ENOENT)
    assert os.listdir(at(view, ".")) == []


def test_unmounting_ends_what_waits_and_a_late_answer_does_no_harm(
    base: Path, mounted: Mounter, asker: Waiting
) -> None:
    for number in range(20):
        (base / f"{number}.x").write_text("x")
    view = mounted(book=book(base, ASK_X), asker=asker)
    attempts = [Attempt(partial(open_once, at(view, f"{number}.x"))) for number in range(20)]
    asked = [asker.next() for _ in range(20)]
    view.unmount()
    assert {attempt.end() for attempt in attempts} <= {errno.EINTR, errno.ENOTCONN, errno.ECONNABORTED}
    for one in asked:
        one.answer(Decision.ALLOW)
    view._open()


MAP_AND_WRITE = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
with mmap.mmap(fd, 3) as mapped:
    mapped[:] = b"new"
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("state", [state for state in RuleState if not state.may_write])
def test_writes_that_the_kernel_holds_back_are_flushed_without_asking_anybody(
    base: Path, mounted: Mounter, state: RuleState
) -> None:
    (base / "f").write_text("old")
    answers = Answers()
    view = mounted(book=book(base), asker=answers)
    with subprocess.Popen(
        [sys.executable, "-c", MAP_AND_WRITE, at(view, "f")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        replace_rules(view, path_rule(base, "f", state))
        generation = view.snapshot()
        assert (answers.asked, answers.refusals) == ([], [])
        with refused(errno.ENOENT if state is RuleState.HIDDEN else errno.EACCES):
            open_once(at(view, "f"), os.O_WRONLY)
        process.communicate(timeout=TIMEOUT_S)
    view.travel(0)
    view.travel(generation)
    replace_rules(view)
    assert Path(at(view, "f")).read_text() == "new"
