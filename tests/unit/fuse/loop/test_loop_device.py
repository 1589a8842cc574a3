"""How the device loop serves its device, pauses, sleeps and spins."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.unit.fuse.loops import Clock, Device, end, let_time_pass, until
from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError


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

    def test_where_requests_come_one_by_one_the_device_is_seldom_read_in_vain(self, loop: DeviceLoop) -> None:
        client, device = socket.socketpair()
        reads: list[bool] = []

        def serve_one() -> bool:
            with contextlib.suppress(BlockingIOError):
                device.send(device.recv(1))
                reads.append(True)
                return True
            reads.append(False)
            return False

        async def main() -> None:
            loop.serve_device(device.fileno(), serve_one)
            await loop.create_future()

        with client, device:
            thread = loop.start(main())
            for _ in range(100):
                client.send(b"x")
                assert client.recv(1) == b"x"
                time.sleep(1e-3)  # until the loop has looked for the next one
            client.send(b"x" * 100)
            assert len(client.recv(100, socket.MSG_WAITALL)) == 100
            loop.stop()
            thread.wait()
        assert reads.count(True) == 200
        assert reads.count(False) <= 30

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

    def test_a_device_that_hangs_up_is_reported_once_to_the_task_that_waits(self, loop: DeviceLoop) -> None:
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

    def test_a_loop_that_was_paused_twice_goes_on_after_two_resumes(self, loop: DeviceLoop, device: Device) -> None:
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
    """With a timer set far ahead, the clock is read once before each poll(): a busy loop reads it
    without end.
    """

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
