"""Messages to the kernel, some of which get stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from yolofs.fuse.cache import forgetting as module
from yolofs.fuse.cache.forgetting import Forgetting


class Kernel:
    """Takes messages; those about a locked directory wait."""

    def __init__(self) -> None:
        self.told: list[tuple[int, bytes]] = []
        self.locked: dict[int, threading.Event] = {}
        self.waiting: set[threading.Thread] = set()

    def tell(self, directory: int, name: bytes) -> None:
        if directory in self.locked:
            self.waiting.add(threading.current_thread())
            assert self.locked[directory].wait(20)
        self.told.append((directory, name))

    def is_stuck(self, thread: threading.Thread) -> bool:
        return thread in self.waiting or not thread.is_alive()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    for lock in kernel.locked.values():
        lock.set()


NAMES = [(directory, b"%d" % number) for number in range(100) for directory in (1, 2, 3, 4)]


def test_the_kernel_has_been_told_all_when_forget_returns(kernel: Kernel) -> None:
    forgetting = Forgetting(kernel.tell)
    forgetting.forget(NAMES)
    assert sorted(kernel.told) == sorted(NAMES)
    forgetting.forget([])
    assert len(kernel.told) == len(NAMES)


def test_what_is_done_instead_of_a_message_is_done_in_its_place(kernel: Kernel) -> None:
    assert Forgetting(kernel.tell).forget(NAMES, {(2, b"7"): lambda: kernel.told.append((0, b"looked up"))})
    before, after = (kernel.told[kernel.told.index((0, b"looked up")) + step] for step in (-1, 1))
    assert (before, after) == ((2, b"6"), (2, b"8"))
    assert (2, b"7") not in kernel.told
    assert len(kernel.told) == len(NAMES)


def test_whoever_only_has_to_wait_for_a_turn_is_not_taken_for_stuck(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.01)

    def tell_slowly(directory: int, name: bytes) -> None:
        time.sleep(0.1)  # longer than anybody is waited for: as on a machine that has much else to do
        kernel.tell(directory, name)

    assert Forgetting(tell_slowly).forget([(1, b"a")])
    assert kernel.told == [(1, b"a")]


def test_a_stuck_message_holds_up_no_other_and_is_sent_later(kernel: Kernel) -> None:
    kernel.locked = {number: threading.Event() for number in (1, 3)}
    forgetting = Forgetting(kernel.tell, kernel.is_stuck)
    forgetting.forget(NAMES)
    assert sorted(kernel.told) == sorted(name for name in NAMES if name[0] in (2, 4))
    for lock in kernel.locked.values():
        lock.set()
    forgetting.join(20)
    assert sorted(kernel.told) == sorted(NAMES)


@pytest.mark.parametrize("at", ["before", "after"])
def test_the_mount_may_end_just_when_messages_are_about_to_be_sent(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """What has begun is waited for, and nothing begins after that: the session is closed then."""
    forgetting = Forgetting(kernel.tell, kernel.is_stuck)
    start = threading.Thread.start
    joined: list[list[tuple[int, bytes]]] = []

    def end() -> None:
        forgetting.join(20)
        joined.append(kernel.told.copy())

    ending = threading.Thread(target=end)

    def start_late(thread: threading.Thread) -> None:
        if thread is not ending and not ending.ident:
            start(ending)  # another thread ends the mount at that very moment
            if at == "before":
                time.sleep(0.2)  # so that the end comes first, as a rule; either way the same must hold
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_late)
    assert forgetting.forget([(1, b"a"), (2, b"b")])
    ending.join(20)
    assert joined == [kernel.told], "something was sent when the mount had ended"
    assert forgetting.forget([(3, b"c")])
    assert joined == [kernel.told]
