"""When the loop ends, what threads have begun is waited for, and what waits for that fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of
from tests.unit.fuse.loops import until
from yolofs.fuse.long_changes import LongChanges
from yolofs.fuse.loop.loop import DeviceLoop, LoopClosedError
from yolofs.overlay import LongChangeError
from yolofs.overlay.inodes import Inode


@contextmanager
def changed(base: Path, change: Callable[[int], object]) -> Iterator[tuple[LongChanges, DeviceLoop]]:
    """Have ``change`` made of a file, and give who does that; the loop has ended afterwards."""
    loop = DeviceLoop()
    changing: set[Inode] = set()
    long_changes = LongChanges(loop, changing)
    with handlers_of(base) as handlers, (base / "f").open("w+b") as file:
        attr = handlers.lookup(1, b"f").attr
        assert attr is not None
        inode = handlers.overlay.inodes.by_number[attr.number]

        async def request() -> None:
            try:
                if await long_changes.make(LongChangeError(inode, file.fileno(), change)):
                    long_changes.end(inode)
            except OSError:
                pass
            await loop.create_future()

        thread = loop.start(request())
        yield long_changes, loop
        loop.stop()
        thread.wait(30)


def test_the_end_waits_for_what_a_thread_has_begun(base: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def change(fd: int) -> None:
        begun.set()
        go_on.wait()
        os.ftruncate(fd, 5)

    with changed(base, change) as (long_changes, loop):
        begun.wait()
        loop.stop()
        until(lambda: not loop.is_running)
        joined = threading.Thread(target=long_changes.join)
        joined.start()
        assert (base / "f").stat().st_size == 0
        assert joined.is_alive()
        go_on.set()
        joined.join()
        assert (base / "f").stat().st_size == 5


def test_calls_go_on_after_a_long_change_has_failed(base: Path) -> None:
    def change(_: int) -> None:
        raise OSError(5, "the disk is broken")

    with changed(base, change) as (long_changes, _):
        assert long_changes.call(lambda: 7) == 7


def test_a_call_after_a_long_change_raises_what_it_raised(base: Path) -> None:
    with changed(base, lambda _: None) as (long_changes, _), pytest.raises(ZeroDivisionError):
        long_changes.call(lambda: 1 // 0)


def test_a_call_fails_when_the_loop_ends_first(base: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def change(_: int) -> None:
        begun.set()
        go_on.wait()

    told: list[BaseException] = []

    with changed(base, change) as (long_changes, loop):
        begun.wait()

        def call() -> None:
            try:
                long_changes.call(lambda: None)
            except LoopClosedError as error:
                told.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        until(lambda: long_changes._calls)
        loop.stop()
        thread.join()
        go_on.set()
    assert len(told) == 1
