"""The device loop without a mount: tasks, what other threads post, timers and descriptors."""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.unit.fuse.loops import DEADLINE_S, Clock, Device, end, until, wait_for
from yolofs.fuse.loop.inbox import Inbox
from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError
from yolofs.fuse.loop.timers import LONGEST_WAIT_MS, TimerQueue


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
            await Foreign()  # type: ignore[misc]  # the mistake that this is about

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

    def test_running_a_device_loop_a_second_time_is_an_error(self, loop: DeviceLoop) -> None:
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

    def test_a_function_posted_before_the_start_is_run(self, loop: DeviceLoop) -> None:
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
