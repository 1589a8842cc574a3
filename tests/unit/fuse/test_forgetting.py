"""Messages to the kernel, some of which get stuck."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from yolofs.fuse.forgetting import Forgetting


class Kernel:
    """Takes messages; those about a locked directory wait."""

    def __init__(self) -> None:
        self.told: list[tuple[int, bytes]] = []
        self.locked: dict[int, threading.Event] = {}

    def tell(self, directory: int, name: bytes) -> None:
        if directory in self.locked:
            assert self.locked[directory].wait(20)
        self.told.append((directory, name))


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    for lock in kernel.locked.values():
        lock.set()


NAMES = [(directory, b"%d" % number) for number in range(100) for directory in (1, 2, 3, 4)]


def test_all_is_told_on_return(kernel: Kernel) -> None:
    forgetting = Forgetting(kernel.tell)
    forgetting.forget(NAMES)
    assert sorted(kernel.told) == sorted(NAMES)
    forgetting.forget([])
    assert len(kernel.told) == len(NAMES)


def test_what_is_stuck_holds_up_nothing_else_and_follows(kernel: Kernel) -> None:
    kernel.locked = {number: threading.Event() for number in (1, 3)}
    forgetting = Forgetting(kernel.tell)
    forgetting.forget(NAMES)
    assert sorted(kernel.told) == sorted(name for name in NAMES if name[0] in (2, 4))
    for lock in kernel.locked.values():
        lock.set()
    forgetting.join(20)
    assert sorted(kernel.told) == sorted(NAMES)
