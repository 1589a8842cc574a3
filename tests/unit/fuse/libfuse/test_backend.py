"""What pyfuse3 is given in trio's place, exercised by coroutines that do as pyfuse3's own do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyfuse3
import pytest

from yolofs.fuse.libfuse import backend
from yolofs.fuse.libfuse.backend import Backend, Nursery, Turn
from yolofs.fuse.loop.loop import DeviceClosedError, DeviceLoop, Future, LoopClosedError


@pytest.fixture
def loop() -> Iterator[DeviceLoop]:
    loop = DeviceLoop()
    yield loop
    loop.stop()


@pytest.fixture
def device_fd() -> Iterator[int]:
    """A device that never has a request."""
    fd = os.eventfd(0)
    yield fd
    os.close(fd)


async def read_device(loop: DeviceLoop, turn: Turn, fd: int) -> None:
    try:
        async with turn:
            await loop.wait_readable(fd)
    except DeviceClosedError:
        pass


class TestNursery:
    def test_a_nursery_waits_for_all_of_its_tasks(self, loop: DeviceLoop) -> None:
        futures: list[Future[str]] = [loop.create_future() for _ in range(3)]
        results: list[str] = []

        async def work(future: Future[str]) -> None:
            results.append(await future)

        async def main() -> None:
            async with Nursery(loop) as nursery:
                for future in futures:
                    nursery.start_soon(work, future, name="worker")
                loop.spawn(read_device(loop, Turn(loop), read_fd), name="reader")
                for number, future in enumerate(futures):
                    loop.call_later(0, partial(future.set_result, str(number)))
            results.append("left")

        read_fd, write_fd = os.pipe()
        loop.run(main())
        os.close(read_fd)
        os.close(write_fd)
        assert results == ["0", "1", "2", "left"]

    def test_a_nursery_does_not_wait_if_nothing_was_started(self, loop: DeviceLoop) -> None:
        async def main() -> None:
            async with Nursery(loop):
                pass

        loop.run(main())

    def test_a_task_that_fails_ends_the_others_and_is_raised_by_run(self, loop: DeviceLoop, device_fd: int) -> None:
        events: list[str] = []
        turn = Turn(loop)

        async def fail() -> None:
            raise ZeroDivisionError("in a worker")

        async def wait() -> None:
            try:
                await loop.create_future()
            except LoopClosedError:
                events.append("handler closed")

        async def main() -> None:
            async with Nursery(loop) as nursery:
                nursery.start_soon(read_device, loop, turn, device_fd, name="reader")
                nursery.start_soon(read_device, loop, turn, device_fd, name="parked reader")
                nursery.start_soon(wait, name="handler")
                nursery.start_soon(fail, name="failing")
            events.append("nursery left")

        with pytest.raises(ZeroDivisionError, match="in a worker"):
            loop.run(main())
        assert events == ["handler closed", "nursery left"]

    def test_an_exception_in_its_body_ends_its_tasks_and_is_raised(self, loop: DeviceLoop) -> None:
        events: list[str] = []

        async def wait() -> None:
            try:
                await loop.create_future()
            except LoopClosedError:
                events.append("closed")

        async def main() -> None:
            async with Nursery(loop) as nursery:
                nursery.start_soon(wait, name="handler")
                raise ZeroDivisionError("in the body")

        with pytest.raises(ZeroDivisionError, match="in the body"):
            loop.run(main())
        assert events == ["closed"]

    def test_a_worker_whose_request_was_withdrawn_starts_again(self, loop: DeviceLoop) -> None:
        runs: list[int] = []

        async def work(number: int) -> None:
            runs.append(number)
            if len(runs) < 3:
                raise OSError(errno.EAGAIN, "fuse_session_receive_buf failed with Resource temporarily unavailable")

        async def main() -> None:
            async with Nursery(loop) as nursery:
                nursery.start_soon(work, 7, name="worker")

        loop.run(main())
        assert runs == [7, 7, 7]

    def test_eagain_of_a_handler_itself_is_a_failure(self, loop: DeviceLoop) -> None:
        async def work() -> None:
            raise BlockingIOError(errno.EAGAIN, "a handler's own")

        async def main() -> None:
            async with Nursery(loop) as nursery:
                nursery.start_soon(work, name="worker")

        with pytest.raises(BlockingIOError, match="a handler's own"):
            loop.run(main())

    def test_the_last_worker_that_ends_takes_suspended_handlers_with_it(self, loop: DeviceLoop) -> None:
        closed: list[str] = []

        async def wait() -> None:
            try:
                await loop.create_future()
            except LoopClosedError:
                closed.append("handler")

        async def see_session_exited() -> None:
            pass

        async def main() -> None:
            async with Nursery(loop) as nursery:
                nursery.start_soon(wait, name="handler")
                nursery.start_soon(see_session_exited, name="reader")

        loop.run(main())
        assert closed == ["handler"]

    def test_a_surplus_worker_that_ends_leaves_the_loop_running(self, loop: DeviceLoop, device_fd: int) -> None:
        async def end() -> None:
            pass

        async def main() -> None:
            async with Nursery(loop) as nursery:
                nursery.start_soon(read_device, loop, Turn(loop), device_fd, name="reader")
                nursery.start_soon(end, name="surplus")

        thread = loop.start(main())
        loop.call(lambda: None)
        assert loop.call(lambda: loop.has_reader)
        loop.stop()
        thread.wait(30)


class TestInstall:
    def test_pyfuse3_is_given_the_loop_and_gets_its_own_back(self, loop: DeviceLoop) -> None:
        before: Any = pyfuse3.__dict__["trio"]
        backend.install(loop)
        try:
            installed = pyfuse3.__dict__["trio"]
            assert isinstance(installed, Backend)
            assert installed.current_trio_token() is loop
        finally:
            backend.uninstall()
        assert pyfuse3.__dict__["trio"] is before
        backend.uninstall()
        assert pyfuse3.__dict__["trio"] is before

    def test_a_pyfuse3_without_the_hook_is_refused(self, loop: DeviceLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(pyfuse3, "trio")
        with pytest.raises(RuntimeError, match="has no global `trio`"):
            backend.install(loop)
        backend.uninstall()
