"""Requests that are sent back, so that they wait for an answer where nothing is locked."""

from __future__ import annotations

import stat
from dataclasses import dataclass

import pytest

from yolofs.fuse.detours import Detours
from yolofs.questions import Decision, Operation, Question
from yolofs.rules import RuleState


@dataclass
class Context:
    pid: int


def question(path: bytes) -> Question:
    return Question(path, Operation.CREATE, RuleState.ASK, None)


NEW = question(b"/d/new")
ARGS = (3, b"new", 0o644, 0, Context(7))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def detours(clock: Clock) -> Detours:
    return Detours(clock)


def sent_back(detours: Detours) -> None:
    assert detours.arrived("create", ARGS, NEW) is None
    assert detours.send_back("create", ARGS, NEW)


@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY, Decision.AGAIN])
def test_it_is_asked_once_on_the_way_and_arrives_with_the_answer(detours: Detours, decision: Decision) -> None:
    sent_back(detours)
    assert detours.on_the_way(8, 1, b"d") is None  # somebody else
    assert detours.on_the_way(7, 1, b"d") is NEW
    assert detours.on_the_way(7, 1, b"d") is None
    detours.answered(7, decision)
    assert detours.arrived("create", ARGS, NEW) is decision
    assert not detours.coming


def test_what_nobody_asked_on_the_way_is_asked_on_arrival_and_not_sent_back_again(detours: Detours) -> None:
    sent_back(detours)
    assert detours.arrived("create", ARGS, NEW) is Decision.AGAIN


def test_a_name_with_nothing_on_its_way_is_asked_about_on_arrival_alone(detours: Detours) -> None:
    """Else the thread would be asked about it when it looks up something else, if it does not come again."""
    sent_back(detours)
    assert detours.on_the_way(7, 3, b"new") is None
    assert detours.on_the_way(7, 1, b"d") is None
    assert detours.arrived("create", ARGS, NEW) is Decision.AGAIN


def test_what_does_not_come_soon_is_not_asked_about(detours: Detours, clock: Clock) -> None:
    sent_back(detours)
    clock.now += 6
    assert detours.on_the_way(7, 1, b"d") is None


@pytest.mark.parametrize(
    ("kind", "args", "asked"),
    [
        ("create", (3, b"other", 0o644, 0, Context(7)), NEW),
        ("create", (4, b"new", 0o644, 0, Context(7)), NEW),
        ("create", ARGS, question(b"/moved/new")),
        ("rename", (3, b"new", 3, b"old", 0, Context(7)), NEW),
    ],
)
def test_an_answer_is_for_what_was_asked_alone(
    detours: Detours, kind: str, args: tuple[object, ...], asked: Question
) -> None:
    sent_back(detours)
    detours.on_the_way(7, 1, b"d")
    detours.answered(7, Decision.ALLOW)
    assert detours.arrived(kind, args, asked) is Decision.AGAIN
    assert not detours.coming


def test_an_answer_does_not_last(detours: Detours, clock: Clock) -> None:
    sent_back(detours)
    detours.on_the_way(7, 1, b"d")
    detours.answered(7, Decision.ALLOW)
    clock.now += 6
    assert detours.arrived("create", ARGS, NEW) is Decision.AGAIN


def test_who_was_interrupted_does_not_come_again(detours: Detours) -> None:
    sent_back(detours)
    detours.on_the_way(7, 1, b"d")
    detours.answered(7, Decision.INTERRUPTED)
    assert detours.arrived("create", ARGS, NEW) is None


def test_who_was_told_it_already_waits_where_it_is(detours: Detours) -> None:
    """The kernel tries again but once."""
    detours.told_stale(7)
    assert not detours.send_back("create", ARGS, NEW)
    assert detours.send_back("create", ARGS, NEW)  # by now that is another system call


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("mknod", (3, b"new", stat.S_IFSOCK | 0o755, 0, Context(7))),
        ("open", (3, 0, Context(7))),
        ("setattr", (3, None, None, None, Context(7))),
        ("create", (3, b"new", 0o644, 0, Context(0))),
    ],
)
def test_what_would_not_come_again_or_could_not_be_known_waits_where_it_is(
    detours: Detours, kind: str, args: tuple[object, ...]
) -> None:
    assert not detours.send_back(kind, args, NEW)
    assert not detours.coming


def test_not_all_threads_are_remembered_for_ever(detours: Detours) -> None:
    for thread in range(1, 70_000):
        assert detours.send_back("create", (*ARGS[:-1], Context(thread)), NEW)
        detours.told_stale(-thread)
    assert len(detours.coming) < 66_000
    assert len(detours._were_told) < 66_000
