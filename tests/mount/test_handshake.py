"""What is agreed with the kernel as a mount begins, and how it begins where the kernel does not
play along.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from tests.mount.hard_links import Mounter
from tests.support.core_in_python import core_in_python
from tests.support.program import DEADLINE_S, wait_until
from yolofs.access.questions import Decision, Operation, Question
from yolofs.access.refusals import UndecidedError
from yolofs.fuse.libfuse.handshake import Handshake
from yolofs.fuse.loop.loop import DeviceLoop
from yolofs.fuse.results import EntryReply
from yolofs.rules import RuleState

pytestmark = pytest.mark.mount


def test_a_device_that_gives_nothing_leaves_nothing_open() -> None:
    """One that was never mounted fails each read, like one whose mount was taken away at once."""
    loop = DeviceLoop()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        before = set(os.listdir("/proc/self/fd"))
        with pytest.raises(PermissionError):
            Handshake(device, loop)
        assert set(os.listdir("/proc/self/fd")) == before
        assert os.readlink(f"/proc/self/fd/{device}") == "/dev/fuse"
    finally:
        os.close(device)


class Patient:
    """Keeps each question until somebody takes its answer."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[Decision], None]] = []

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        self.waiting.append(answer)

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        raise AssertionError(f"nobody is interrupted, but {answer}")

    def refused(self, question: Question, pid: int) -> None:
        raise AssertionError(f"{question} of {pid} was refused")


@core_in_python
def test_names_are_found_while_another_look_up_in_the_directory_waits(mounted: Mounter) -> None:
    asker = Patient()
    view = mounted(asker=asker)
    lookup = view.handlers.lookup

    def suspended(parent: int, name: bytes) -> EntryReply:
        if name == b"waits" and not asker.waiting:
            raise UndecidedError(Question(b"/waits", Operation.READ, RuleState.ASK, None))
        return lookup(parent, name)

    view.mount.call(lambda: setattr(view.handlers, "lookup", suspended))
    looks = threading.Thread(target=os.path.lexists, args=[os.path.join(view.mountpoint, b"waits")], daemon=True)
    looks.start()
    wait_until(lambda: bool(asker.waiting), "the look-up")
    beside = threading.Thread(target=os.path.lexists, args=[os.path.join(view.mountpoint, b"other")], daemon=True)
    beside.start()
    beside.join(DEADLINE_S / 6)
    was_found = not beside.is_alive()
    asker.waiting[0](Decision.ALLOW)
    looks.join(DEADLINE_S)
    assert was_found
