"""The device loop without a mount: an eventfd that counts requests stands for the device."""

from __future__ import annotations

import logging
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest

from yolofs.fuse.inbox import Inbox
from yolofs.fuse.loop import DeviceClosedError, DeviceLoop, Future, LoopClosedError, LoopThread
from yolofs.fuse.timers import LONGEST_WAIT_MS, TimerQueue
from yolofs.fuse.workers import WorkerThreads

DEADLINE_S = 30.0
"""How long a condition may take to come true before its test fails."""


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another thread will make true."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        os.sched_yield()


def let_time_pass() -> None:
    """Do something that takes a while, without the interpreter lock: what may happen next has time to happen."""
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
        """One of the device's workers; like pyfuse3's, it starts another one when none is left to read."""
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


@pytest.fixture
def loop() -> Iterator[DeviceLoop]:
    loop = DeviceLoop(max_threads=3)
    yield loop
    loop.stop()


@pytest.fixture
def device(loop: DeviceLoop) -> Iterator[Device]:
    device = Device(loop)
    yield device
    os.close(device.fd)


async def wait_for(future: Future[Any]) -> Any:
    return await future


def end(loop: DeviceLoop, thread: LoopThread) -> None:
    loop.stop()
    thread.wait(DEADLINE_S)


class TestTasks:
    def test_a_task_that_waits_is_resumed_with_the_result(self, loop: DeviceLoop) -> None:
        results: list[str] = []
        future: Future[str] = loop.create_future()

        async def main() -> None:
            loop.post(future.set_result, "answer")
            results.append(await future)
            results.append(await future)

        loop.run(main())
        assert results == ["answer", "answer"]

    def test_an_exception_set_is_raised_where_the_task_waits(self, loop: DeviceLoop) -> None:
        future: Future[str] = loop.create_future()

        async def main() -> None:
            loop.post(future.set_exception, ZeroDivisionError("by zero"))
            with pytest.raises(ZeroDivisionError, match="by zero"):
                await future

        loop.run(main())
        assert future.is_done

    def test_all_who_wait_for_one_future_are_resumed_in_order(self, loop: DeviceLoop) -> None:
        future: Future[str] = loop.create_future()
        resumed: list[int] = []

        async def wait(number: int) -> None:
            await future
            resumed.append(number)
            if number == 4:
                loop.stop()

        async def main() -> None:
            for number in range(5):
                loop.spawn(wait(number), name=f"waiter {number}")
            loop.call_later(0, lambda: future.set_result("go"))
            await loop.create_future()

        loop.run(main())
        assert resumed == [0, 1, 2, 3, 4]

    def test_a_future_takes_one_outcome_only(self, loop: DeviceLoop) -> None:
        future: Future[int] = loop.create_future()
        future.set_result(1)
        with pytest.raises(RuntimeError, match="is_done"):
            future.set_exception(ValueError())

    def test_an_exception_that_leaves_a_task_ends_the_loop_and_is_raised_by_run(self, loop: DeviceLoop) -> None:
        events: list[str] = []

        async def fail() -> None:
            raise ZeroDivisionError("in a worker")

        async def wait() -> None:
            try:
                await loop.create_future()
            finally:
                events.append("waiter cleaned up")

        async def main() -> None:
            loop.spawn(wait(), name="waiter")
            loop.spawn(fail(), name="failing")
            await loop.create_future()

        with pytest.raises(ZeroDivisionError, match="in a worker"):
            loop.run(main())
        assert events == ["waiter cleaned up"]
        assert not loop.is_running

    def test_an_exception_that_leaves_main_is_raised_by_run(self, loop: DeviceLoop) -> None:
        async def main() -> None:
            raise ZeroDivisionError("in main")

        with pytest.raises(ZeroDivisionError, match="in main"):
            loop.run(main())

    def test_several_exceptions_are_raised_as_a_group(self, loop: DeviceLoop) -> None:
        async def fail(error: Exception) -> None:
            raise error

        async def main() -> None:
            loop.spawn(fail(ZeroDivisionError()), name="first")
            loop.spawn(fail(KeyError("second")), name="second")
            await loop.create_future()

        with pytest.raises(BaseExceptionGroup) as caught:
            loop.run(main())
        assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError, KeyError]

    def test_tasks_that_main_leaves_behind_are_ended(self, loop: DeviceLoop) -> None:
        ended: list[str] = []

        async def wait() -> None:
            try:
                await loop.create_future()
            except LoopClosedError:
                ended.append("waiter")

        async def main() -> None:
            loop.spawn(wait(), name="waiter")
            future: Future[None] = loop.create_future()
            loop.call_later(0, lambda: future.set_result(None))
            await future

        loop.run(main())
        assert ended == ["waiter"]

    def test_awaiting_something_of_another_library_is_an_error(self, loop: DeviceLoop) -> None:
        class Foreign:
            def __await__(self) -> Iterator[str]:
                yield "foreign"

        async def main() -> None:
            await Foreign()  # type: ignore[misc]

        with pytest.raises(RuntimeError, match="task main awaited 'foreign', which is no future of this loop"):
            loop.run(main())

    def test_only_a_task_may_wait(self, loop: DeviceLoop) -> None:
        with pytest.raises(RuntimeError, match="only a task of the device loop may wait"):
            wait_for(loop.create_future()).send(None)

    def test_the_current_task_has_the_name_it_was_given(self, loop: DeviceLoop) -> None:
        names: list[str] = []

        async def note_name() -> None:
            names.append(loop.current_task.name)

        async def main() -> None:
            loop.spawn(note_name(), name="pyfuse-02", on_end=loop.stop)
            await note_name()
            await loop.create_future()

        loop.run(main())
        assert names == ["main", "pyfuse-02"]

    def test_a_loop_runs_once(self, loop: DeviceLoop) -> None:
        async def main() -> None:
            pass

        loop.run(main())
        with pytest.raises(RuntimeError, match="runs once"):
            loop.run(main())


class TestPost:
    def test_a_posted_function_runs_on_the_loops_thread_and_wakes_it(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        idents: list[int] = []
        loop.post(lambda: idents.append(threading.get_ident()))
        until(lambda: idents)
        assert idents == [thread.ident]
        end(loop, thread)

    def test_what_is_posted_before_the_start_is_run(self, loop: DeviceLoop) -> None:
        ran: list[int] = []
        for number in range(3):
            loop.post(ran.append, number)
        loop.post(loop.stop)
        loop.run(wait_for(loop.create_future()))
        assert ran == [0, 1, 2]

    def test_an_exception_in_a_posted_function_is_logged_and_the_loop_goes_on(
        self, loop: DeviceLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise ZeroDivisionError("posted")

        thread = loop.start(wait_for(loop.create_future()))
        loop.post(fail)
        assert loop.call(lambda: "still there") == "still there"
        end(loop, thread)
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert "ZeroDivisionError: posted" in caplog.text

    def test_none_of_many_posts_from_many_threads_is_lost(self, loop: DeviceLoop) -> None:
        ran: list[tuple[int, int]] = []
        thread = loop.start(wait_for(loop.create_future()))

        def post(who: int) -> None:
            for number in range(500):
                loop.post(ran.append, (who, number))

        posters = [threading.Thread(target=post, args=(who,)) for who in range(8)]
        for poster in posters:
            poster.start()
        for poster in posters:
            poster.join()
        until(lambda: len(ran) == 4000)
        assert [[number for by, number in ran if by == who] for who in range(8)] == [list(range(500))] * 8
        end(loop, thread)

    def test_a_function_that_posts_itself_again_does_not_keep_others_out(self, loop: DeviceLoop) -> None:
        def again() -> None:
            loop.post(again)

        thread = loop.start(wait_for(loop.create_future()))
        loop.post(again)
        assert loop.call(lambda: "served") == "served"
        end(loop, thread)

    def test_posting_to_an_ended_loop_is_an_error(self, loop: DeviceLoop) -> None:
        end(loop, loop.start(wait_for(loop.create_future())))
        with pytest.raises(LoopClosedError):
            loop.post(print)


class TestCall:
    def test_a_call_returns_the_result(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        assert loop.call(divmod, 17, 5) == (3, 2)
        end(loop, thread)

    def test_a_call_raises_what_the_function_raises(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        with pytest.raises(ZeroDivisionError):
            loop.call(divmod, 1, 0)
        end(loop, thread)

    def test_a_call_that_does_not_get_its_turn_in_time_never_runs(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        may_go_on = threading.Event()
        ran: list[int] = []
        loop.post(may_go_on.wait, DEADLINE_S)
        with pytest.raises(TimeoutError, match=r"did not get to .* within 0\.01 s"):
            loop.call(ran.append, 1, timeout_s=0.01)
        may_go_on.set()
        loop.call(lambda: None)
        assert ran == []
        end(loop, thread)

    def test_a_call_to_a_loop_that_does_not_run_is_an_error(self, loop: DeviceLoop) -> None:
        with pytest.raises(LoopClosedError):
            loop.call(print)
        end(loop, loop.start(wait_for(loop.create_future())))
        with pytest.raises(LoopClosedError):
            loop.call(print)

    def test_a_call_on_the_loops_own_thread_is_an_error(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        with pytest.raises(RuntimeError, match="would wait for itself"):
            loop.call(loop.call, print)
        end(loop, thread)

    def test_a_call_that_waits_when_the_loop_ends_fails_instead_of_hanging(self) -> None:
        inbox = Inbox()
        inbox.open()
        errors: list[BaseException] = []

        def call() -> None:
            try:
                inbox.call(print)
            except LoopClosedError as error:
                errors.append(error)

        caller = threading.Thread(target=call)
        caller.start()
        assert select.select([inbox.wake_fd], [], [], DEADLINE_S)[0]
        inbox.close()
        caller.join(DEADLINE_S)
        assert len(errors) == 1

    def test_calls_made_all_the_time_while_the_loop_ends_either_run_or_fail(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        outcomes: list[int | None] = []

        def call() -> None:
            try:
                while True:
                    outcomes.append(loop.call(lambda: 1))
            except LoopClosedError:
                outcomes.append(None)

        callers = [threading.Thread(target=call) for _ in range(8)]
        for caller in callers:
            caller.start()
        until(lambda: len(outcomes) > 100)
        loop.stop()
        for caller in callers:
            caller.join(DEADLINE_S)
        assert outcomes.count(None) == 8
        thread.wait(DEADLINE_S)


class TestInThread:
    def test_the_handler_is_resumed_with_the_result(self, loop: DeviceLoop) -> None:
        outcomes: list[object] = []

        async def main() -> None:
            outcomes.append(await loop.in_thread(divmod, 17, 5))
            outcomes.append(await loop.in_thread(lambda: threading.current_thread().daemon))
            outcomes.append(threading.get_ident() != await loop.in_thread(threading.get_ident))

        loop.run(main())
        assert outcomes == [(3, 2), True, True]

    def test_the_handler_is_resumed_with_the_exception(self, loop: DeviceLoop) -> None:
        async def main() -> None:
            with pytest.raises(ZeroDivisionError):
                await loop.in_thread(divmod, 1, 0)

        loop.run(main())

    def test_the_device_is_served_while_a_thread_works(self, loop: DeviceLoop, device: Device) -> None:
        may_return = threading.Event()

        async def handle(request: int) -> None:
            if request == 0:
                await loop.in_thread(may_return.wait, DEADLINE_S)
            await device.answer(request)

        device.handler = handle
        thread = loop.start(device.work())
        device.send(5)
        until(lambda: device.served == [1, 2, 3, 4])
        may_return.set()
        until(lambda: device.served == [1, 2, 3, 4, 0])
        end(loop, thread)

    def test_no_more_than_the_given_number_of_threads_work_at_once(self, loop: DeviceLoop) -> None:
        working: list[int] = []
        peak: list[int] = []
        all_in = threading.Barrier(3)

        def work(number: int) -> int:
            working.append(number)
            peak.append(len(working))
            all_in.wait(DEADLINE_S)  # so that three do work at once
            working.remove(number)
            return number

        results: list[int] = []

        async def handle(number: int) -> None:
            results.append(await loop.in_thread(work, number))
            if len(results) == 12:
                loop.stop()

        async def main() -> None:
            for number in range(12):
                loop.spawn(handle(number), name=str(number))
            await loop.create_future()

        loop.run(main())
        assert sorted(results) == list(range(12))
        assert max(peak) == 3

    def test_a_thread_that_hangs_does_not_keep_the_loop_from_ending(self, loop: DeviceLoop) -> None:
        hang, is_hanging = threading.Event(), threading.Event()
        outcomes: list[str] = []

        def work() -> None:
            is_hanging.set()
            hang.wait(DEADLINE_S)

        async def main() -> None:
            try:
                await loop.in_thread(work)
            except LoopClosedError:
                outcomes.append("closed")

        thread = loop.start(main())
        assert is_hanging.wait(DEADLINE_S)
        end(loop, thread)
        assert outcomes == ["closed"]
        hang.set()

    def test_no_thread_is_started_once_the_loop_is_ending(self, loop: DeviceLoop) -> None:
        outcomes: list[str] = []

        async def main() -> None:
            with pytest.raises(LoopClosedError):
                await loop.create_future()
            try:
                await loop.in_thread(outcomes.append, "ran")
            except LoopClosedError:
                outcomes.append("refused")

        loop.post(loop.stop)
        loop.run(main())
        assert outcomes == ["refused"]

    def test_idle_threads_end_with_the_loop(self, loop: DeviceLoop) -> None:
        before = set(threading.enumerate())

        async def main() -> None:
            await loop.in_thread(lambda: None)

        loop.run(main())
        until(lambda: set(threading.enumerate()) <= before)

    def test_idle_threads_end_when_closed_and_waiting_jobs_are_dropped(self) -> None:
        before = set(threading.enumerate())
        workers = WorkerThreads(max_threads=1)
        is_busy, may_go_on = threading.Event(), threading.Event()
        dropped: list[int] = []

        def work() -> None:
            is_busy.set()
            may_go_on.wait(DEADLINE_S)

        workers.submit(work)
        workers.submit(lambda: dropped.append(1))
        assert is_busy.wait(DEADLINE_S)
        workers.close()
        may_go_on.set()
        until(lambda: set(threading.enumerate()) <= before)
        assert dropped == []


class TestTimers:
    def test_timers_run_in_the_order_in_which_they_are_due(self) -> None:
        clock = Clock()
        loop = DeviceLoop(clock=clock)
        ran: list[str] = []
        for delay_s, name in ((3.0, "c"), (1.0, "a"), (2.0, "b"), (1.0, "a2"), (9.0, "late")):
            loop.call_later(delay_s, partial(ran.append, name))
        thread = loop.start(wait_for(loop.create_future()))

        def advance(seconds: float) -> None:
            clock.now_s += seconds

        loop.call(advance, 0.5)
        assert loop.call(lambda: list(ran)) == []
        loop.call(advance, 2.5)
        until(lambda: ran == ["a", "a2", "b", "c"])
        end(loop, thread)
        assert ran == ["a", "a2", "b", "c"]

    def test_a_cancelled_timer_does_not_run_even_if_the_one_before_it_cancels_it(self) -> None:
        clock = Clock()
        loop = DeviceLoop(clock=clock)
        ran: list[str] = []
        loop.call_later(1.0, lambda: ran.append("cancelled early")).cancel()
        loop.call_later(1.0, lambda: late.cancel())
        late = loop.call_later(1.0, lambda: ran.append("cancelled late"))
        loop.call_later(1.0, loop.stop)
        clock.now_s += 1.0
        loop.run(wait_for(loop.create_future()))
        late.cancel()
        assert ran == []

    def test_an_idle_loop_wakes_up_for_a_timer(self, loop: DeviceLoop) -> None:
        async def main() -> None:
            future: Future[str] = loop.create_future()
            loop.call_later(0.001, lambda: future.set_result("woken"))
            assert await future == "woken"

        loop.run(main())

    def test_an_exception_in_a_timer_is_logged_and_the_loop_goes_on(
        self, loop: DeviceLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        loop.call_later(0, lambda: divmod(1, 0))
        loop.call_later(0, loop.stop)
        loop.run(wait_for(loop.create_future()))
        assert "ZeroDivisionError" in caplog.text

    def test_a_wait_is_rounded_up_so_that_a_timer_is_due_when_it_ends(self) -> None:
        clock = Clock()
        timers = TimerQueue(clock)
        assert timers.next_wait_ms() is None
        late = timers.add(1e9, print)
        assert timers.next_wait_ms() == LONGEST_WAIT_MS
        timers.add(0.0101, print).cancel()
        timers.add(0.0201, print)
        assert timers.next_wait_ms() == 21
        clock.now_s += 5
        assert timers.next_wait_ms() == 0
        assert len(timers.take_due()) == 1
        late.cancel()
        assert timers.next_wait_ms() is None


class TestReaders:
    def test_a_callback_is_told_the_events_for_as_long_as_it_is_there(self, loop: DeviceLoop) -> None:
        read_fd, write_fd = os.pipe()
        seen: list[tuple[int, bytes]] = []

        def callback(events: int) -> None:
            seen.append((events, os.read(read_fd, 1)))
            if len(seen) == 2:
                loop.remove_reader(read_fd)

        loop.add_reader(read_fd, select.POLLIN, callback)
        thread = loop.start(wait_for(loop.create_future()))
        os.write(write_fd, b"abc")
        until(lambda: len(seen) == 2)
        end(loop, thread)
        assert seen == [(select.POLLIN, b"a"), (select.POLLIN, b"b")]
        os.close(read_fd)
        os.close(write_fd)

    def test_a_callback_removed_by_the_one_before_it_is_not_called(self, loop: DeviceLoop) -> None:
        first, second = os.eventfd(1), os.eventfd(1)
        seen: list[int] = []

        def take(fd: int, other: int) -> Callable[[int], None]:
            def callback(events: int) -> None:
                seen.append(fd)
                loop.remove_reader(other)
                loop.remove_reader(fd)
                loop.stop()

            return callback

        loop.add_reader(first, select.POLLIN, take(first, second))
        loop.add_reader(second, select.POLLIN, take(second, first))
        loop.run(wait_for(loop.create_future()))
        assert len(seen) == 1
        os.close(first)
        os.close(second)

    def test_a_descriptor_closed_while_watched_is_given_up_with_an_error(
        self, loop: DeviceLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        fd = os.eventfd(0)
        loop.add_reader(fd, select.POLLIN, print)
        thread = loop.start(wait_for(loop.create_future()))
        loop.call(os.close, fd)
        until(lambda: "watching it no more" in caplog.text)
        with pytest.raises(KeyError):
            loop.call(loop.remove_reader, fd)
        end(loop, thread)

    def test_a_descriptor_is_watched_once(self, loop: DeviceLoop, device: Device) -> None:
        loop.add_reader(0, select.POLLPRI, print)
        with pytest.raises(ValueError, match="descriptor 0 is already watched"):
            loop.add_reader(0, select.POLLIN, print)
        thread = loop.start(device.work())
        device.send()
        until(lambda: device.served)
        with pytest.raises(ValueError, match=f"descriptor {device.fd} is already watched"):
            loop.call(loop.add_reader, device.fd, select.POLLIN, print)
        end(loop, thread)


class TestDevice:
    def test_requests_are_served_in_order(self, loop: DeviceLoop, device: Device) -> None:
        thread = loop.start(device.work())
        device.send(100)
        until(lambda: len(device.served) == 100)
        assert device.served == list(range(100))
        end(loop, thread)

    def test_the_device_is_read_without_blocking(self, loop: DeviceLoop, device: Device) -> None:
        thread = loop.start(device.work())
        device.send()
        until(lambda: device.served)
        assert not os.get_blocking(device.fd)
        end(loop, thread)

    def test_a_loop_serves_one_device(self, loop: DeviceLoop, device: Device) -> None:
        async def main() -> None:
            device.send()
            await loop.wait_readable(device.fd)
            await loop.wait_readable(device.fd + 1)

        with pytest.raises(ValueError, match=f"serves descriptor {device.fd}"):
            loop.run(main())

    def test_a_thousand_suspended_handlers_do_not_stop_the_service(self, loop: DeviceLoop, device: Device) -> None:
        answer: Future[None] = loop.create_future()

        async def handle(request: int) -> None:
            if request < 1000:
                await answer
            await device.answer(request)

        device.handler = handle
        thread = loop.start(device.work())
        device.send(1010)
        until(lambda: device.served == list(range(1000, 1010)))
        loop.post(answer.set_result, None)
        until(lambda: len(device.served) == 1010)
        assert device.served[10:] == list(range(1000))
        end(loop, thread)

    def test_posts_are_served_between_two_requests_of_a_device_that_is_always_readable(
        self, loop: DeviceLoop, device: Device
    ) -> None:
        seen_at: list[int] = []

        async def handle(request: int) -> None:
            if request == 10:
                loop.post(lambda: seen_at.append(device.request_count))
            elif request == 20:
                loop.stop()

        device.handler = handle
        device.send(1000)
        loop.run(device.work())
        assert seen_at == [11]

    def test_tasks_and_timers_are_served_while_the_device_is_always_readable(self) -> None:
        clock = Clock()
        loop = DeviceLoop(clock=clock)
        device = Device(loop)
        future: Future[None] = loop.create_future()
        served: list[tuple[str, int]] = []

        async def wait() -> None:
            await future
            served.append(("task", device.request_count))

        async def handle(request: int) -> None:
            match request:
                case 10:
                    loop.spawn(wait(), name="waiter")
                case 20:
                    future.set_result(None)
                case 30:
                    loop.call_later(1.0, lambda: served.append(("timer", device.request_count)))
                case 40:
                    clock.now_s += 1.0
                case 50:
                    loop.stop()

        device.handler = handle
        device.send(1000)
        loop.run(device.work())
        os.close(device.fd)
        assert served == [("task", 21), ("timer", 41)]

    def test_the_device_is_served_while_tasks_are_always_ready(self, loop: DeviceLoop, device: Device) -> None:
        async def resolve(future: Future[None]) -> None:
            future.set_result(None)

        async def be_busy() -> None:
            while len(device.served) < 100:
                future: Future[None] = loop.create_future()
                loop.spawn(resolve(future), name="resolver")
                await future

        async def main() -> None:
            loop.spawn(device.work(), name="worker")
            await be_busy()

        device.send(100)
        loop.run(main())
        assert device.served == list(range(100))

    def test_a_worker_that_comes_back_goes_before_the_parked_ones(self, loop: DeviceLoop, device: Device) -> None:
        names: list[str] = []

        async def handle(request: int) -> None:
            names.append(loop.current_task.name)
            if request == 9:
                loop.stop()

        device.handler = handle
        device.send(1000)
        loop.run(device.work())
        assert names == ["main"] * 10

    def test_a_device_that_hangs_up_is_reported_once_to_who_waits(self, loop: DeviceLoop) -> None:
        read_fd, write_fd = os.pipe()
        reads: list[bytes] = []

        async def main() -> None:
            await loop.wait_readable(read_fd)
            reads.append(os.read(read_fd, 1))
            await loop.create_future()

        thread = loop.start(main())
        loop.call(lambda: None)
        os.close(write_fd)
        until(lambda: reads)
        assert reads == [b""]
        end(loop, thread)
        os.close(read_fd)


class TestPause:
    def test_a_paused_loop_takes_no_request_but_serves_all_else(self, loop: DeviceLoop, device: Device) -> None:
        thread = loop.start(device.work())
        device.send()
        until(lambda: device.served == [0])
        loop.call(loop.pause)
        device.send(3)
        fired: list[str] = []
        loop.call(loop.call_later, 0, lambda: fired.append("timer"))
        until(lambda: fired)
        assert loop.call(lambda: list(device.served)) == [0]
        loop.call(loop.resume)
        until(lambda: device.served == [0, 1, 2, 3])
        end(loop, thread)

    def test_a_handler_that_pauses_is_the_last_one(self, loop: DeviceLoop, device: Device) -> None:
        async def handle(request: int) -> None:
            if request == 5:
                loop.pause()
            await device.answer(request)

        device.handler = handle
        device.send(10)
        thread = loop.start(device.work())
        until(lambda: device.served == [0, 1, 2, 3, 4, 5])
        assert loop.call(lambda: list(device.served)) == [0, 1, 2, 3, 4, 5]
        loop.call(loop.resume)
        until(lambda: device.served == list(range(10)))
        end(loop, thread)

    def test_pauses_nest(self, loop: DeviceLoop, device: Device) -> None:
        thread = loop.start(device.work())
        loop.call(loop.pause)
        loop.call(loop.pause)
        device.send()
        loop.call(loop.resume)
        assert loop.call(lambda: list(device.served)) == []
        loop.call(loop.resume)
        until(lambda: device.served == [0])
        with pytest.raises(RuntimeError, match="without pause"):
            loop.call(loop.resume)
        end(loop, thread)

    def test_handlers_can_wait_for_the_end_of_a_pause(self, loop: DeviceLoop, device: Device) -> None:
        told = loop.create_future()
        went_on: list[int] = []

        def resume_and_pause() -> None:
            loop.resume()
            loop.pause()

        async def handle(request: int) -> None:
            if request < 2:
                await told
                await loop.until_resumed()
                went_on.append(request)
            await device.answer(request)

        device.handler = handle
        thread = loop.start(device.work())
        device.send(3)
        until(lambda: 2 in device.served)
        loop.call(loop.pause)
        loop.call(lambda: told.set_result(None))
        loop.call(loop.pause)
        loop.call(loop.resume)
        let_time_pass()
        assert loop.call(lambda: list(went_on)) == []
        loop.call(resume_and_pause)
        let_time_pass()
        assert loop.call(lambda: list(went_on)) == []
        loop.call(loop.resume)
        until(lambda: went_on == [0, 1])
        end(loop, thread)

    def test_waiting_for_the_end_of_a_pause_ends_with_the_loop(self, loop: DeviceLoop, device: Device) -> None:
        ended: list[str] = []

        async def handle(request: int) -> None:
            loop.pause()
            try:
                await loop.until_resumed()
            except LoopClosedError:
                ended.append("closed")
                raise

        device.handler = handle
        device.send()
        thread = loop.start(device.work())
        until(lambda: loop.call(lambda: loop._resumed is not None))
        end(loop, thread)
        assert ended == ["closed"]

    def test_a_paused_loop_can_be_stopped(self, loop: DeviceLoop, device: Device) -> None:
        thread = loop.start(device.work())
        loop.call(loop.pause)
        device.send()
        end(loop, thread)
        assert device.served == []


class TestIdling:
    """With a timer set far ahead, the clock is read once before each poll(): a busy loop reads it without end."""

    def assert_idle(self, loop: DeviceLoop, clock: Clock) -> None:
        loop.call(lambda: None)
        before = clock.reading_count
        let_time_pass()
        assert clock.reading_count - before <= 2  # the call's own last round may still have been under way

    def start(self, main: Callable[[DeviceLoop, Device], Coroutine[Any, Any, object]]) -> Iterator[Any]:
        clock = Clock()
        loop = DeviceLoop(clock=clock)
        device = Device(loop)
        loop.call_later(3600, lambda: None)
        thread = loop.start(main(loop, device))
        yield loop, device, clock
        end(loop, thread)
        os.close(device.fd)

    def test_a_loop_without_requests_sleeps(self) -> None:
        for loop, _, clock in self.start(lambda loop, device: device.work()):
            self.assert_idle(loop, clock)

    def test_a_paused_loop_sleeps_though_requests_wait(self) -> None:
        for loop, device, clock in self.start(lambda loop, device: device.work()):
            loop.call(loop.pause)
            device.send(3)
            self.assert_idle(loop, clock)

    def test_a_loop_whose_workers_are_all_suspended_sleeps_though_requests_wait(self) -> None:
        async def take_one(loop: DeviceLoop, device: Device) -> None:
            await loop.wait_readable(device.fd)
            await loop.create_future()

        for loop, device, clock in self.start(take_one):
            device.send(3)
            self.assert_idle(loop, clock)


class TestSpin:
    """The clock goes on by 10 µs with each reading, and only the spin reads it."""

    def test_the_loop_spins_after_a_request_only(self) -> None:
        clock = Clock(tick_s=10e-6)
        loop = DeviceLoop(spin_us=60, clock=clock)
        device = Device(loop)
        thread = loop.start(device.work())
        let_time_pass()
        loop.call(lambda: None)
        let_time_pass()
        assert clock.reading_count == 0
        device.send()
        until(lambda: clock.reading_count >= 7)
        let_time_pass()
        loop.call(lambda: None)
        let_time_pass()
        spin_readings = clock.reading_count
        assert spin_readings in (7, 8)  # 60 µs / 10 µs, and a last one in which rounding has a say
        device.send()  # the last spin was in vain, so this one is not followed by any
        until(lambda: device.served == [0, 1])
        device.send()
        until(lambda: clock.reading_count >= spin_readings + 7)
        end(loop, thread)
        os.close(device.fd)

    def test_a_request_that_comes_while_spinning_is_served(self) -> None:
        clock = Clock()  # stands still, so that the spin never ends
        loop = DeviceLoop(spin_us=60, clock=clock)
        device = Device(loop)
        thread = loop.start(device.work())
        device.send()
        until(lambda: clock.reading_count > 10)
        device.send()
        until(lambda: device.served == [0, 1])
        assert loop.call(lambda: "posts, too") == "posts, too"
        end(loop, thread)
        os.close(device.fd)

    def test_the_spin_can_be_changed_while_the_loop_runs(self) -> None:
        clock = Clock(tick_s=10e-6)
        loop = DeviceLoop(clock=clock)
        device = Device(loop)
        thread = loop.start(device.work())
        device.send()
        until(lambda: device.served == [0])
        loop.call(lambda: None)
        assert clock.reading_count == 0
        loop.spin_us = 20
        assert loop.spin_us == pytest.approx(20)
        device.send()
        until(lambda: clock.reading_count >= 2)
        end(loop, thread)
        os.close(device.fd)


class TestStop:
    def test_suspended_handlers_and_waiting_workers_get_their_exceptions(
        self, loop: DeviceLoop, device: Device
    ) -> None:
        ended: list[int] = []

        async def handle(request: int) -> None:
            try:
                await loop.create_future()
            except LoopClosedError:
                ended.append(request)

        device.handler = handle
        thread = loop.start(device.work())
        device.send(3)
        until(lambda: device.request_count == 3)
        end(loop, thread)
        assert sorted(ended) == [0, 1, 2]
        assert device.closed_count == 4  # the three of the handlers, and the one that waited

    def test_whoever_waits_anew_while_the_loop_ends_is_refused(self, loop: DeviceLoop, device: Device) -> None:
        errors: list[type[Exception]] = []

        async def main() -> None:
            for wait in (loop.create_future(), loop.create_future(), loop.wait_readable(device.fd)):
                try:
                    await wait
                except (LoopClosedError, DeviceClosedError) as error:
                    errors.append(type(error))

        loop.post(loop.stop)
        loop.run(main())
        assert errors == [LoopClosedError, LoopClosedError, DeviceClosedError]

    def test_a_future_resolved_before_the_end_is_not_taken_away(self, loop: DeviceLoop) -> None:
        results: list[str] = []
        future: Future[str] = loop.create_future()

        async def main() -> None:
            results.append(await future)

        def resolve_and_stop() -> None:
            future.set_result("in time")
            loop.stop()

        loop.post(resolve_and_stop)
        loop.run(main())
        assert results == ["in time"]

    def test_a_stop_in_the_same_round_as_a_request_ends_the_loop(self, loop: DeviceLoop, device: Device) -> None:
        def stop_while_the_device_becomes_readable() -> None:
            device.send()
            loop.stop()

        thread = loop.start(device.work())
        loop.call(lambda: None)
        loop.call(stop_while_the_device_becomes_readable)
        thread.wait(DEADLINE_S)
        assert device.closed_count == 1

    def test_a_resume_in_the_same_round_as_a_stop_does_not_undo_it(self, loop: DeviceLoop, device: Device) -> None:
        async def handle(request: int) -> None:
            loop.post(loop.pause)
            loop.stop()
            loop.post(loop.resume)
            await device.answer(request)

        device.handler = handle
        device.send(2)
        loop.run(device.work())
        assert device.served == [0]

    def test_a_handler_that_ends_with_the_closing_error_is_no_failure(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        end(loop, thread)

    def test_a_closing_error_out_of_the_blue_is_a_failure(self, loop: DeviceLoop) -> None:
        async def main() -> None:
            raise LoopClosedError("of another loop")

        with pytest.raises(LoopClosedError, match="of another loop"):
            loop.run(main())

    def test_stop_before_the_start_ends_the_loop_as_soon_as_it_runs(self, loop: DeviceLoop) -> None:
        loop.stop()
        loop.run(wait_for(loop.create_future()))
        assert not loop.is_running

    def test_stop_may_be_repeated_from_anywhere(self, loop: DeviceLoop) -> None:
        thread = loop.start(wait_for(loop.create_future()))
        assert loop.is_running
        loop.call(loop.stop)
        loop.stop()
        thread.wait(DEADLINE_S)
        loop.stop()
        assert not loop.is_running

    def test_a_process_exit_asked_for_in_a_posted_function_ends_the_loop(self, loop: DeviceLoop) -> None:
        def leave() -> None:
            raise SystemExit(3)

        loop.post(leave)
        with pytest.raises(SystemExit):
            loop.run(wait_for(loop.create_future()))

    def test_waiting_for_the_thread_raises_what_ended_the_loop(
        self, loop: DeviceLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            await loop.create_future()

        thread = loop.start(main())
        with pytest.raises(TimeoutError, match=r"has not ended within 0\.001 s"):
            thread.wait(0.001)

        async def fail() -> None:
            raise ZeroDivisionError("in the thread")

        loop.call(lambda: loop.spawn(fail(), name="failing"))
        with pytest.raises(ZeroDivisionError, match="in the thread"):
            thread.wait(DEADLINE_S)
        assert [record.levelno for record in caplog.records] == [logging.CRITICAL]

    def test_no_descriptor_is_left_open(self) -> None:
        before = set(os.listdir("/proc/self/fd"))
        for _ in range(3):
            loop = DeviceLoop()
            end(loop, loop.start(wait_for(loop.create_future())))
        assert set(os.listdir("/proc/self/fd")) == before


def test_after_its_end_a_thread_that_got_the_number_of_its_own_is_not_taken_for_it() -> None:
    inbox = Inbox()
    inbox.open()
    inbox.own()
    with pytest.raises(RuntimeError, match="would wait for itself"):
        inbox.call(int)
    inbox.close()
    with pytest.raises(LoopClosedError):
        inbox.call(int)
