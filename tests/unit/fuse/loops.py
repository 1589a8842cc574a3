"""What the tests of the device loop share: an eventfd that counts requests stands for the
device.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Coroutine
from typing import Any

from yolofs.fuse.loop.loop import DeviceClosedError, DeviceLoop, Future, LoopThread

DEADLINE_S = 30.0
"""How long a condition may take to come true before its test fails."""


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another thread will make true."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        os.sched_yield()


def let_time_pass() -> None:
    """Do something that takes a while, without the interpreter lock: what may happen next has time
    to happen.
    """
    for _ in range(3):
        subprocess.run(["true"], check=True)


class Clock:
    """A clock that stands still, or goes on by ``tick_s`` each time that it is read."""

    def __init__(self, tick_s: float = 0.0) -> None:
        self.now_s = 1000.0
        self.tick_s = tick_s
        self.reading_count = 0

    def __call__(self) -> float:
        self.reading_count += 1
        self.now_s += self.tick_s
        return self.now_s


class Device:
    """Hands out numbered requests, one for each :meth:`send`, and serves them as pyfuse3 does."""

    def __init__(self, loop: DeviceLoop) -> None:
        self.loop = loop
        self.fd = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)
        self.request_count = 0
        self.served: list[int] = []
        self.closed_count = 0
        self.handler: Callable[[int], Coroutine[Any, Any, object]] = self.answer

    async def answer(self, request: int) -> None:
        self.served.append(request)

    def send(self, count: int = 1) -> None:
        os.eventfd_write(self.fd, count)

    async def work(self) -> None:
        """One of the device's workers; like pyfuse3's, it starts another one when none is left to
        read.
        """
        try:
            while True:
                await self.loop.take_turn()
                await self.loop.wait_readable(self.fd)
                os.eventfd_read(self.fd)
                request = self.request_count
                self.request_count += 1
                if not self.loop.has_reader:
                    self.loop.spawn(self.work(), name="worker")
                await self.handler(request)
        except DeviceClosedError:
            self.closed_count += 1


async def wait_for(future: Future[Any]) -> Any:
    return await future


def end(loop: DeviceLoop, thread: LoopThread) -> None:
    loop.stop()
    thread.wait(DEADLINE_S)
