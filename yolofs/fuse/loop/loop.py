"""The device loop: a thread that owns all state and waits for the FUSE device in poll().

It runs the coroutines of pyfuse3's ``main()`` (through :mod:`yolofs.fuse.libfuse.backend`), the
handlers below them, and between two requests the functions that other threads post.  Why it exists
and what was rejected: ``docs/design/device-loop.md``.

The shape of a request: a task holds the *turn* (it alone reads the device),
:meth:`DeviceLoop.wait_readable` polls inside that task's own stack, the task reads and answers, and
is back.  No other task runs and the scheduler is not entered, unless something else has happened:
another task is ready, something was posted, a timer is due.  Only when a handler suspends does the
next parked task take the turn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

from yolofs.fuse.loop.inbox import Inbox, run_callback
from yolofs.fuse.loop.serving import Serving
from yolofs.fuse.loop.spin import Events, Poll, Spin
from yolofs.fuse.loop.tasks import Future, LoopClosedError, Scheduler, Task, suspend
from yolofs.fuse.loop.timers import Timer, TimerQueue
from yolofs.fuse.loop.workers import WorkerThreads

__all__ = ["DeviceClosedError", "DeviceLoop", "Future", "LoopClosedError", "LoopThread", "Task", "Timer"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


log = logging.getLogger(__name__)


class DeviceClosedError(Exception):
    """The loop is ending: do not wait for the device any more (trio's ClosedResourceError, for
    pyfuse3).
    """


class DeviceLoop:
    """Runs handlers in one thread, and everything else between two requests.  Used once: it cannot
    be restarted.

    ``spin_us`` is how many microseconds to go on polling without blocking after a request, so that
    the next one need not wake the thread (0: never).  ``clock`` counts seconds and never goes
    back.  ``max_threads`` bounds the worker threads of :meth:`in_thread`.

    Only :meth:`post`, :meth:`call`, :meth:`stop`, :attr:`is_running` and :attr:`spin_us` are for
    other threads; the rest is for code that runs on the loop, or before it starts.
    """

    def __init__(
        self,
        *,
        spin_us: float = 0,
        clock: Callable[[], float] = time.monotonic,
        max_threads: int = 8,
    ) -> None:
        self._spin = Spin(spin_us / 1e6, clock)
        self._clock = clock
        self._scheduler = Scheduler()
        self._ready = self._scheduler.ready
        self._timers = TimerQueue(clock)
        self._workers = WorkerThreads(max_threads)
        self._inbox = Inbox()
        self._serving = Serving(self._spin, self._timers, self._ready, self._inbox.letters)
        self._is_stop_wanted = False
        self._is_closing = False

        self._device_fd = -1
        self._serve_one: Callable[[], bool] | None = None  # reads the device by itself
        self._device_waiter: Task | None = None  # has the turn, and is suspended
        self._parked: deque[Task] = deque()  # wait for the turn
        self._pause_count = 0
        self._resumed: Future[None] | None = None  # awaited by handlers that may not go on while paused
        self._events: Events | None = None  # polled, not yet dispatched
        self._readers: dict[int, Callable[[int], object]] = {}
        self._all_fds = select.poll()  # the device, the wake-up descriptor and the readers'
        self._other_fds = select.poll()  # the same without the device
        self._poll_all: Poll = self._all_fds.poll
        self._poll_others: Poll = self._other_fds.poll

    # Lifecycle

    def run(self, main: Coroutine[Any, Any, object]) -> None:
        """Run ``main`` in this thread until it returns, or until :meth:`stop`; blocks.

        Tasks that ``main`` leaves behind are ended with :class:`LoopClosedError`.  Worker threads
        that are busy are left alone.

        Raises:
            RuntimeError: the loop was started before.
            BaseException: whatever left ``main`` or another task; several as one
                BaseExceptionGroup.
        """
        self._open(main)
        self._run(main)

    def start(self, main: Coroutine[Any, Any, object]) -> LoopThread:
        """Run ``main`` in a new daemon thread; from the return on, the loop takes calls.

        Raises:
            RuntimeError: the loop was started before.
        """
        self._open(main)
        thread = LoopThread(lambda: self._run(main))
        thread.start()
        return thread

    @property
    def is_running(self) -> bool:
        """Whether the loop was started and has not ended."""
        return self._inbox.is_open

    def stop(self) -> None:
        """End the loop; returns at once, from any thread, and does nothing if it has ended.

        Every suspended handler gets a :class:`LoopClosedError`, and every task that waits for the
        device a :class:`DeviceClosedError`.  A loop that was not started yet ends as soon as it is.
        """
        with contextlib.suppress(LoopClosedError):
            self.post(self._want_stop)

    def _want_stop(self) -> None:
        self._is_stop_wanted = True
        self._serving.is_held = True  # a task that is given the device in this very round must not poll again by itself

    def _open(self, main: Coroutine[Any, Any, object]) -> None:
        try:
            self._inbox.open()
        except BaseException:
            main.close()
            raise
        self._all_fds.register(self._inbox.wake_fd, select.POLLIN)
        self._other_fds.register(self._inbox.wake_fd, select.POLLIN)

    def _run(self, main: Coroutine[Any, Any, object]) -> None:
        scheduler = self._scheduler
        self._inbox.own()
        scheduler.spawn(main, name="main", on_end=self._want_stop)
        try:
            while scheduler.tasks:
                try:
                    self._cycle()
                except BaseException as error:  # noqa: BLE001 - raised below, after the tasks have ended
                    scheduler.errors.append(error)
        finally:
            self._inbox.close()
            self._workers.close()
        if len(scheduler.errors) > 1:
            raise BaseExceptionGroup("several tasks of the device loop failed", scheduler.errors)
        if scheduler.errors:
            raise scheduler.errors[0]

    def _close(self) -> None:
        self._is_stop_wanted = self._is_closing = self._serving.is_held = True
        self._scheduler.close()
        if self._device_waiter is not None:
            self._parked.appendleft(self._device_waiter)
            self._device_waiter = None
        while self._parked:
            self._scheduler.step(self._parked.popleft(), DeviceClosedError("the device loop is ending"))

    # From other threads

    def post(self, fn: Callable[[*Ts], object], *args: *Ts) -> None:
        """Run ``fn(*args)`` on the loop's thread, between two requests; returns at once, from any
        thread.

        What was posted before the loop starts is run when it does.  An exception is logged, and the
        loop goes on.

        Raises:
            LoopClosedError: the loop has ended.
        """
        self._inbox.post(fn, *args)

    def call(self, fn: Callable[[*Ts], T], *args: *Ts, timeout_s: float | None = None) -> T:
        """Run ``fn(*args)`` on the loop's thread, between two requests, and return its result or
        raise its error.

        Blocks, for another thread, until it has run; ``timeout_s`` bounds the wait until its turn
        comes.

        Raises:
            TimeoutError: its turn did not come in time; it has not run and never will.
            LoopClosedError: the loop is not started, has ended, or ended meanwhile; it has not run.
            RuntimeError: called on the loop's own thread, which would wait for itself.
        """
        return self._inbox.call(fn, *args, timeout_s=timeout_s)

    # For handlers

    def create_future(self, *, shielded: bool = False) -> Future[Any]:
        """Return a future that a handler may await; resolve it on the loop's thread, from others by
        :meth:`post`.

        Waiting for a ``shielded`` one is not ended by :meth:`stop`.
        """
        return Future(self._scheduler, shielded=shielded)

    async def in_thread(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run ``fn(*args)`` in a worker thread and return its result or raise its exception;
        suspends the handler.

        Raises:
            LoopClosedError: the loop ends meanwhile.  The function may still be running then, and
                its outcome is lost.
        """
        self._scheduler.check_open()
        future: Future[T] = Future(self._scheduler)

        def job() -> None:
            try:
                result = fn(*args)
            except BaseException as error:  # noqa: BLE001 - the handler's
                self._try_post(future.set_exception, error)
            else:
                self._try_post(future.set_result, result)

        self._workers.submit(job)
        return await future

    def start_in_thread(self, job: Callable[[], None]) -> None:
        """Run ``job`` in a worker thread; it handles its own exceptions, and nobody here waits for
        it.

        Raises:
            LoopClosedError: the loop is ending.
            RuntimeError: not a single thread could be started.
        """
        self._scheduler.check_open()
        self._workers.submit(job)

    def _try_post(self, fn: Callable[[T], None], arg: T) -> None:
        try:
            self.post(fn, arg)
        except LoopClosedError:
            log.debug("a worker thread came back after the loop had ended")

    def call_later(self, delay_s: float, fn: Callable[[], object]) -> Timer:
        """Run ``fn`` on the loop in ``delay_s`` seconds of the clock, unless cancelled; exceptions
        are logged.
        """
        return self._timers.add(delay_s, fn)

    def spawn(
        self, coro: Coroutine[Any, Any, object], *, name: str, on_end: Callable[[], object] | None = None
    ) -> Task:
        """Run ``coro`` as one more task.  An exception that leaves it ends the loop and is raised
        by :meth:`run`.
        """
        return self._scheduler.spawn(coro, name=name, on_end=on_end)

    @property
    def current_task(self) -> Task:
        """The task that runs now.

        Raises:
            RuntimeError: none does.
        """
        return self._scheduler.current_task

    # Descriptors

    def add_reader(self, fd: int, events: int, callback: Callable[[int], object]) -> None:
        """Call ``callback(events)`` on the loop whenever poll() reports ``events`` (or an error)
        for ``fd``.

        The caller keeps the descriptor and removes it before closing it.  Exceptions are logged.

        Raises:
            ValueError: the descriptor is already watched.
        """
        if fd in self._readers or fd == self._device_fd:
            raise ValueError(f"descriptor {fd} is already watched")
        self._readers[fd] = callback
        self._all_fds.register(fd, events)
        self._other_fds.register(fd, events)

    def remove_reader(self, fd: int) -> None:
        """Stop watching ``fd``.

        Raises:
            KeyError: it is not watched.
        """
        del self._readers[fd]
        self._all_fds.unregister(fd)
        self._other_fds.unregister(fd)

    def _call_reader(self, fd: int, events: int) -> None:
        callback = self._readers.get(fd)
        if callback is None:  # removed by a callback before this one
            return
        if events & select.POLLNVAL:
            log.error("descriptor %d was closed while the device loop watched it; watching it no more", fd)
            self.remove_reader(fd)
        else:
            run_callback(callback, events)

    # The device

    @property
    def spin_us(self) -> float:
        """How many microseconds to poll without blocking after a request; may be set at any
        time.
        """
        return self._spin.longest_s * 1e6

    @spin_us.setter
    def spin_us(self, spin_us: float) -> None:
        self._spin.longest_s = spin_us / 1e6

    def pause(self) -> None:
        """Take no more requests until :meth:`resume`; posted functions, timers and suspended
        handlers go on.

        A handler that changes anything after it was suspended has to await :meth:`until_resumed`
        before.

        Pauses nest.  While paused, an unmount goes unnoticed.
        """
        self._pause_count += 1
        self._serving.is_held = True

    def resume(self) -> None:
        """Undo one :meth:`pause`.

        Raises:
            RuntimeError: the loop is not paused.
        """
        if not self._pause_count:
            raise RuntimeError("resume() without pause()")
        self._pause_count -= 1
        self._serving.is_held = bool(self._pause_count) or self._is_stop_wanted
        if not self._pause_count and self._resumed is not None:
            resumed, self._resumed = self._resumed, None
            resumed.set_result(None)

    @property
    def is_paused(self) -> bool:
        """Whether it takes no requests for now."""
        return bool(self._pause_count)

    async def until_resumed(self) -> None:
        """Wait until the loop is not paused; what follows without another await is not, either.

        Raises:
            LoopClosedError: the loop ends meanwhile.
        """
        while self._pause_count:
            if self._resumed is None:
                self._resumed = self.create_future()
            await self._resumed

    def serve_device(self, fd: int, serve_one: Callable[[], bool]) -> None:
        """Have ``serve_one`` called whenever the device ``fd`` may have a request, until the loop
        ends.

        It reads one without blocking and answers it, or sees to it; it returns False if there is
        none.  So a busy device is not polled at all.  To be called on the loop.

        Raises:
            ValueError: the loop serves a device already.
        """
        self._adopt_device(fd)
        self._serve_one = serve_one

    @property
    def has_reader(self) -> bool:
        """Whether a suspended task waits for the device, or for its turn to."""
        return self._device_waiter is not None or bool(self._parked)

    async def take_turn(self) -> None:
        """Wait until no other task waits for the device.

        A task that comes back while others are parked goes first: it is running already, and they
        are all alike.

        Raises:
            DeviceClosedError: the loop ends meanwhile.
        """
        if self._device_waiter is not None:
            self._parked.append(self.current_task)
            await suspend()

    async def wait_readable(self, fd: int) -> None:
        """Wait until the device ``fd`` can be read, or has an error to report; one task at a time.

        The first call makes the device known, and its descriptor non-blocking: a request can be
        withdrawn between poll() and read(), and a read that blocks would keep the interpreter lock.

        Raises:
            DeviceClosedError: the loop is ending.
            ValueError: another device than the first time.
        """
        if fd != self._device_fd:
            self._adopt_device(fd)
        if not (self._ready or self._serving.is_held):
            timers = self._timers
            events = self._serving.wait(self._poll_all) if self._spin.longest_s or timers.heap else self._poll_all()
            if events == self._serving.device_readable and not (timers.heap and timers.is_due()):
                self._serving.has_served = self._serving.is_warm = True
                return
            self._events = events
        if self._is_closing:
            raise DeviceClosedError("the device loop is ending")
        self._device_waiter = self.current_task
        await suspend()

    def _adopt_device(self, fd: int) -> None:
        if self._device_fd >= 0:
            raise ValueError(f"this loop serves descriptor {self._device_fd}, and one device only, not {fd}")
        os.set_blocking(fd, False)
        self._all_fds.register(fd, select.POLLIN)
        self._device_fd = fd
        self._serving.device_readable = [(fd, select.POLLIN)]

    # The scheduler's side

    def _cycle(self) -> None:
        """Run what is ready, hand out the turn, wait, and serve what has happened: at most one
        request.
        """
        scheduler = self._scheduler
        if self._ready:
            self._serving.is_warm = self._serving.has_served
            scheduler.run_round()
        if (self._is_stop_wanted or scheduler.errors) and not self._is_closing:
            self._close()
        if self._parked and self._device_waiter is None:
            scheduler.step(self._parked.popleft())
        events, self._events = self._events, None
        if events is None and self._serve_one is not None and not self._serving.is_held and scheduler.tasks:
            events = self._serving.serve(self._serve_one, self._poll_all, self._poll_others)
        if events is None:
            poll = self._poll_others if self._serving.is_held or self._device_waiter is None else self._poll_all
            events = poll(0) if self._ready or not scheduler.tasks else self._serving.wait(poll)
        self._dispatch(events)

    def _dispatch(self, events: Events) -> None:
        is_device_ready = False
        for fd, mask in events:
            if fd == self._device_fd:
                is_device_ready = True
            elif fd == self._inbox.wake_fd:
                self._inbox.run_letters()
            else:
                self._call_reader(fd, mask)
        for timer in self._timers.take_due():
            if timer.fn is not None:
                run_callback(timer.fn)
        waiter = self._device_waiter
        if is_device_ready and waiter is not None and not self._serving.is_held:
            self._device_waiter = None
            self._serving.has_served = self._serving.is_warm = True
            self._scheduler.step(waiter)


class LoopThread(threading.Thread):
    """The thread of a loop that was started by :meth:`DeviceLoop.start`."""

    def __init__(self, run: Callable[[], None]) -> None:
        super().__init__(name="yolofs-device-loop", daemon=True)
        self._run_loop = run
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the loop, and keep what it raises for :meth:`wait`."""
        try:
            self._run_loop()
        except BaseException as error:
            log.critical("the device loop ended with an error", exc_info=True)
            self._error = error

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until the loop has ended, and raise what it raised.

        Raises:
            TimeoutError: it has not ended in ``timeout_s`` seconds.
        """
        self.join(timeout_s)
        if self.is_alive():
            raise TimeoutError(f"the device loop has not ended within {timeout_s} s")
        if self._error is not None:
            raise self._error
