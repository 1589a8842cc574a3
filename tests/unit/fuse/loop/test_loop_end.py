"""How the device loop ends, and what its threads do then."""

from __future__ import annotations

import logging
import os
import threading

import pytest

from tests.unit.fuse.loops import DEADLINE_S, Device, end, until, wait_for
from yolofs.fuse.loop.inbox import Inbox
from yolofs.fuse.loop.loop import DeviceClosedError, DeviceLoop, Future, LoopClosedError
from yolofs.fuse.loop.workers import WorkerThreads


class TestInThread:
    def test_a_handler_is_resumed_with_the_result_of_its_thread(self, loop: DeviceLoop) -> None:
        outcomes: list[object] = []

        async def main() -> None:
            outcomes.append(await loop.in_thread(divmod, 17, 5))
            outcomes.append(await loop.in_thread(lambda: threading.current_thread().daemon))
            outcomes.append(threading.get_ident() != await loop.in_thread(threading.get_ident))

        loop.run(main())
        assert outcomes == [(3, 2), True, True]

    def test_a_handler_is_resumed_with_the_exception_of_its_thread(self, loop: DeviceLoop) -> None:
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
