"""Requests that are sent back, so that they wait for an answer where nothing is locked."""

from __future__ import annotations

import stat
from dataclasses import dataclass

import pytest

from yolofs.access.questions import Decision, Operation, Question
from yolofs.fuse.ask_unlocked import Detours
from yolofs.rules import RuleState


@dataclass
class Context:
    pid: int


def question(path: bytes) -> Question:
    return Question(path, Operation.CREATE, RuleState.ASK, None)


NEW, OTHER = question(b"/d/new"), question(b"/d/other")
ARGS = (3, b"new", 0o644, 0, Context(7))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settled() -> set[Question]:
    """What the rules leave nobody to be asked any more."""
    return set()


@pytest.fixture
def detours(clock: Clock, settled: set[Question]) -> Detours:
    return Detours(lambda question: question not in settled, clock)


def sent_back(detours: Detours, *questions: Question) -> None:
    assert detours.arrived("create", ARGS) is None
    assert detours.send_back("create", ARGS, questions or [NEW]) == [3]


WAYS = pytest.mark.parametrize("name", [(1, b"d"), None], ids=["look-up", "attributes"])


@WAYS
@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
def test_it_is_asked_once_on_the_way_and_arrives_with_the_answer(
    detours: Detours, decision: Decision, name: tuple[int, bytes] | None
) -> None:
    sent_back(detours)
    assert detours.on_the_way(8, name) is None  # somebody else
    assert detours.on_the_way(7, name) is NEW
    detours.answered(7, decision)
    assert detours.on_the_way(7, name) is None
    assert detours.arrived("create", ARGS) == {NEW.key: decision}
    assert not detours.coming


def test_all_questions_are_asked_on_the_way(detours: Detours) -> None:
    sent_back(detours, NEW, OTHER)
    for asked in (NEW, OTHER):
        assert detours.on_the_way(7) is asked
        detours.answered(7, Decision.ALLOW)
    assert detours.on_the_way(7) is None
    assert detours.arrived("create", ARGS) == {NEW.key: Decision.ALLOW, OTHER.key: Decision.ALLOW}


def test_after_a_no_nothing_more_is_asked(detours: Detours) -> None:
    sent_back(detours, NEW, OTHER)
    detours.on_the_way(7)
    detours.answered(7, Decision.DENY)
    assert detours.on_the_way(7) is None


def test_what_rules_settle_meanwhile_is_asked_no_more(detours: Detours, settled: set[Question]) -> None:
    sent_back(detours, NEW, OTHER)
    detours.on_the_way(7)
    settled.add(OTHER)
    detours.answered(7, Decision.ALLOW)
    assert detours.on_the_way(7) is None


@pytest.mark.parametrize("is_settled", [False, True])
def test_what_is_to_be_judged_anew_is_asked_again_if_it_is_open(
    detours: Detours, settled: set[Question], *, is_settled: bool
) -> None:
    sent_back(detours, NEW, OTHER)
    detours.on_the_way(7)
    if is_settled:
        settled.add(NEW)
    detours.answered(7, Decision.AGAIN)
    assert detours.on_the_way(7) is (OTHER if is_settled else NEW)


def test_the_directory_is_not_to_be_remembered_for_a_while(detours: Detours, clock: Clock) -> None:
    assert detours.is_settled(3)
    assert detours.send_back("rename", (3, b"old", 4, b"new", 0, Context(7)), [OTHER, NEW]) == [3, 4]
    assert [detours.is_settled(number) for number in (3, 4, 5)] == [False, False, True]
    clock.now += 4  # a busy machine may keep the thread from coming for that long
    assert not detours.is_settled(3)
    clock.now += 2
    assert detours.is_settled(3)
    assert detours.is_settled(4)


def test_what_nobody_asked_on_the_way_is_asked_on_arrival_and_not_sent_back_again(detours: Detours) -> None:
    sent_back(detours)
    assert detours.arrived("create", ARGS) == {}


def test_a_name_with_nothing_on_its_way_is_asked_about_on_arrival_alone(detours: Detours) -> None:
    """Else the thread would be asked about it when it looks up something else, if it does not come again."""
    sent_back(detours)
    assert detours.on_the_way(7, (3, b"new")) is None
    assert detours.on_the_way(7, (1, b"d")) is None
    assert detours.arrived("create", ARGS) == {}


def test_what_does_not_come_soon_is_not_asked_about(detours: Detours, clock: Clock) -> None:
    sent_back(detours)
    clock.now += 6
    assert detours.on_the_way(7, (1, b"d")) is None


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("create", (3, b"other", 0o644, 0, Context(7))),
        ("create", (4, b"new", 0o644, 0, Context(7))),
        ("create", (3, b"new", 0o600, 0, Context(7))),
    ],
)
def test_an_answer_is_for_what_was_asked_alone(detours: Detours, kind: str, args: tuple[object, ...]) -> None:
    """Another link on the way, and it is the same system call for all that."""
    sent_back(detours)
    detours.on_the_way(7, (1, b"d"))
    detours.answered(7, Decision.ALLOW)
    assert detours.arrived(kind, args) == {}
    assert not detours.coming


@pytest.mark.parametrize(
    ("asked", "kind", "args"),
    [
        ("create", "unlink", (3, b"new", Context(7))),
        ("create", "rename", (3, b"new", 3, b"old", 0, Context(7))),
        ("mkdir", "rmdir", (3, b"new", Context(7))),
        ("mkdir", "mkdir", (3, b"other", 0o755, Context(7))),
    ],
)
def test_what_did_not_come_leaves_no_answer_for_the_next_system_call(
    detours: Detours, asked: str, kind: str, args: tuple[object, ...]
) -> None:
    """Somebody else had made the name; what is asked next waits where nothing is locked, too."""
    assert detours.send_back(asked, ARGS, [NEW])
    detours.on_the_way(7, (1, b"d"))
    detours.answered(7, Decision.ALLOW)
    assert detours.arrived(kind, args) is None
    assert not detours.coming


def test_a_rename_that_may_replace_is_not_the_one_that_may_not(detours: Detours) -> None:
    assert detours.send_back("rename", (3, b"old", 3, b"new", 1, Context(7)), [OTHER, NEW])
    for _ in range(2):
        assert detours.on_the_way(7)
        detours.answered(7, Decision.ALLOW)
    assert detours.arrived("rename", (3, b"old", 3, b"new", 0, Context(7))) == {}


def test_an_answer_does_not_last(detours: Detours, clock: Clock) -> None:
    sent_back(detours)
    detours.on_the_way(7, (1, b"d"))
    detours.answered(7, Decision.ALLOW)
    clock.now += 6
    assert detours.arrived("create", ARGS) == {}


def test_who_was_interrupted_does_not_come_again(detours: Detours) -> None:
    sent_back(detours)
    detours.on_the_way(7, (1, b"d"))
    detours.answered(7, Decision.INTERRUPTED)
    assert detours.arrived("create", ARGS) is None


def test_who_was_told_it_already_waits_where_it_is(detours: Detours) -> None:
    """The kernel tries again but once."""
    detours.told_stale(7)
    assert not detours.send_back("create", ARGS, [NEW])
    assert detours.send_back("create", ARGS, [NEW])  # by now that is another system call


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
    assert not detours.send_back(kind, args, [NEW])
    assert not detours.coming


def test_not_all_threads_are_remembered_for_ever(detours: Detours) -> None:
    for thread in range(1, 70_000):
        assert detours.send_back("create", (*ARGS[:-1], Context(thread)), [NEW])
        detours.told_stale(-thread)
    assert len(detours.coming) < 66_000
    assert len(detours._were_told) < 66_000
