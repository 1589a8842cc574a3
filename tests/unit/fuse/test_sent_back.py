"""Requests are sent back, to wait for an answer without a lock."""

from __future__ import annotations

import stat
from dataclasses import dataclass

import pytest

from tests.support.hand_clock import HandClock
from yolofs.access.questions import Decision, Operation, Question
from yolofs.fuse.request import KernelRequest, RequestKind
from yolofs.fuse.sent_back import SentBack
from yolofs.rules import RuleState


@dataclass
class Context:
    pid: int


def question(path: bytes) -> Question:
    return Question(path, Operation.CREATE, RuleState.ASK, None)


NEW, OTHER = question(b"/d/new"), question(b"/d/other")
ARGS = (3, b"new", 0o644, 0, Context(7))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def settled() -> set[Question]:
    """What the rules leave nobody to be asked any more."""
    return set()


@pytest.fixture
def requests(clock: HandClock, settled: set[Question]) -> SentBack:
    return SentBack(lambda question: question not in settled, clock)


def sent_back(requests: SentBack, *questions: Question) -> None:
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) is None
    assert requests.send_back(KernelRequest(RequestKind.CREATE, ARGS), questions or [NEW]) == [3]


WAYS = pytest.mark.parametrize("name", [(1, b"d"), None], ids=["look-up", "attributes"])


@WAYS
@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
def test_a_request_is_asked_about_once_on_the_way_and_arrives_with_the_answer(
    requests: SentBack, decision: Decision, name: tuple[int, bytes] | None
) -> None:
    sent_back(requests)
    assert requests.question_for(8, name) is None  # somebody else
    assert requests.question_for(7, name) is NEW
    requests.answered(7, decision)
    assert requests.question_for(7, name) is None
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) == {NEW.key: decision}
    assert not requests.awaited


def test_all_questions_are_asked_on_the_way(requests: SentBack) -> None:
    sent_back(requests, NEW, OTHER)
    for asked in (NEW, OTHER):
        assert requests.question_for(7) is asked
        requests.answered(7, Decision.ALLOW)
    assert requests.question_for(7) is None
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) == {
        NEW.key: Decision.ALLOW,
        OTHER.key: Decision.ALLOW,
    }


def test_after_a_denial_no_further_question_is_asked_on_the_way(requests: SentBack) -> None:
    sent_back(requests, NEW, OTHER)
    requests.question_for(7)
    requests.answered(7, Decision.DENY)
    assert requests.question_for(7) is None


def test_a_question_that_rules_settle_meanwhile_is_not_asked(requests: SentBack, settled: set[Question]) -> None:
    sent_back(requests, NEW, OTHER)
    requests.question_for(7)
    settled.add(OTHER)
    requests.answered(7, Decision.ALLOW)
    assert requests.question_for(7) is None


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_question_to_be_judged_anew_is_asked_again_if_no_rule_settles_it(
    requests: SentBack, settled: set[Question], *, is_settled: bool
) -> None:
    sent_back(requests, NEW, OTHER)
    requests.question_for(7)
    if is_settled:
        settled.add(NEW)
    requests.answered(7, Decision.AGAIN)
    assert requests.question_for(7) is (OTHER if is_settled else NEW)


def test_the_kernel_may_not_keep_the_directories_of_a_request_that_is_sent_back(
    requests: SentBack, clock: HandClock
) -> None:
    assert requests.is_settled(3)
    assert requests.send_back(
        KernelRequest(RequestKind.RENAME, (3, b"old", 4, b"new", 0, Context(7))), [OTHER, NEW]
    ) == [
        3,
        4,
    ]
    assert [requests.is_settled(number) for number in (3, 4, 5)] == [False, False, True]
    clock.now += 4  # a busy machine may keep the thread from coming for that long
    assert not requests.is_settled(3)
    clock.now += 2
    assert requests.is_settled(3)
    assert requests.is_settled(4)


def test_what_nobody_asked_on_the_way_is_asked_on_arrival_and_not_sent_back_again(requests: SentBack) -> None:
    sent_back(requests)
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) == {}


def test_a_name_with_nothing_on_its_way_is_asked_about_on_arrival_alone(requests: SentBack) -> None:
    """Else the thread would be asked about it when it looks up something else, if it does not come
    again.
    """
    sent_back(requests)
    assert requests.question_for(7, (3, b"new")) is None
    assert requests.question_for(7, (1, b"d")) is None
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) == {}


def test_a_request_that_does_not_come_again_in_time_is_not_asked_about(requests: SentBack, clock: HandClock) -> None:
    sent_back(requests)
    clock.now += 6
    assert requests.question_for(7, (1, b"d")) is None


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (RequestKind.CREATE, (3, b"other", 0o644, 0, Context(7))),
        (RequestKind.CREATE, (4, b"new", 0o644, 0, Context(7))),
        (RequestKind.CREATE, (3, b"new", 0o600, 0, Context(7))),
    ],
)
def test_an_answer_is_for_what_was_asked_alone(requests: SentBack, kind: RequestKind, args: tuple[object, ...]) -> None:
    """Another link on the way, and it is the same system call for all that."""
    sent_back(requests)
    requests.question_for(7, (1, b"d"))
    requests.answered(7, Decision.ALLOW)
    assert requests.arrived(KernelRequest(kind, args)) == {}
    assert not requests.awaited


@pytest.mark.parametrize(
    ("asked", "kind", "args"),
    [
        (RequestKind.CREATE, RequestKind.UNLINK, (3, b"new", Context(7))),
        (RequestKind.CREATE, RequestKind.RENAME, (3, b"new", 3, b"old", 0, Context(7))),
        (RequestKind.MKDIR, RequestKind.RMDIR, (3, b"new", Context(7))),
        (RequestKind.MKDIR, RequestKind.MKDIR, (3, b"other", 0o755, Context(7))),
    ],
)
def test_the_answer_for_a_request_that_did_not_come_again_is_dropped(
    requests: SentBack, asked: RequestKind, kind: RequestKind, args: tuple[object, ...]
) -> None:
    """Somebody else had made the name; what is asked next waits where nothing is locked, too."""
    assert requests.send_back(KernelRequest(asked, ARGS), [NEW])
    requests.question_for(7, (1, b"d"))
    requests.answered(7, Decision.ALLOW)
    assert requests.arrived(KernelRequest(kind, args)) is None
    assert not requests.awaited


def test_a_rename_that_may_replace_is_not_the_one_that_may_not(requests: SentBack) -> None:
    assert requests.send_back(KernelRequest(RequestKind.RENAME, (3, b"old", 3, b"new", 1, Context(7))), [OTHER, NEW])
    for _ in range(2):
        assert requests.question_for(7)
        requests.answered(7, Decision.ALLOW)
    assert requests.arrived(KernelRequest(RequestKind.RENAME, (3, b"old", 3, b"new", 0, Context(7)))) == {}


def test_an_answer_is_forgotten_after_five_seconds(requests: SentBack, clock: HandClock) -> None:
    sent_back(requests)
    requests.question_for(7, (1, b"d"))
    requests.answered(7, Decision.ALLOW)
    clock.now += 6
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) == {}


def test_an_interrupted_request_leaves_no_answer_for_its_thread(requests: SentBack) -> None:
    sent_back(requests)
    requests.question_for(7, (1, b"d"))
    requests.answered(7, Decision.INTERRUPTED)
    assert requests.arrived(KernelRequest(RequestKind.CREATE, ARGS)) is None


def test_a_thread_that_was_told_estale_already_is_not_sent_back(requests: SentBack) -> None:
    """The kernel tries again but once."""
    requests.note_told_stale(7)
    assert not requests.send_back(KernelRequest(RequestKind.CREATE, ARGS), [NEW])
    assert requests.send_back(KernelRequest(RequestKind.CREATE, ARGS), [NEW])  # by now that is another system call


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (RequestKind.MKNOD, (3, b"new", stat.S_IFSOCK | 0o755, 0, Context(7))),
        (RequestKind.OPEN, (3, 0, Context(7))),
        (RequestKind.SETATTR, (3, None, None, None, Context(7))),
        (RequestKind.CREATE, (3, b"new", 0o644, 0, Context(0))),
    ],
)
def test_a_request_that_could_not_be_known_again_is_not_sent_back(
    requests: SentBack, kind: RequestKind, args: tuple[object, ...]
) -> None:
    assert not requests.send_back(KernelRequest(kind, args), [NEW])
    assert not requests.awaited


def test_the_number_of_threads_that_are_remembered_is_bounded(requests: SentBack) -> None:
    for thread in range(1, 70_000):
        assert requests.send_back(KernelRequest(RequestKind.CREATE, (*ARGS[:-1], Context(thread))), [NEW])
        requests.note_told_stale(-thread)
    assert len(requests.awaited) < 66_000
    assert len(requests._were_told) < 66_000
