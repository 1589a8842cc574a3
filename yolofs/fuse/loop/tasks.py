"""Coroutines in turn: tasks, the futures that they wait for, and the scheduler that steps them.

No descriptors, no clock, no threads: those are the business of
:class:`yolofs.fuse.loop.loop.DeviceLoop`.  Everything here runs on the loop's thread.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class LoopClosedError(Exception):
    """The device loop is ending or has ended, so what was waited for will not come.

    Raised inside every handler that is suspended when the loop stops, and to whoever asks an ended
    loop for something.  A handler answers its request (with an error) and returns.
    """


class Task:
    """A coroutine being run by a :class:`Scheduler`.  Read-only outside of this module."""

    __slots__ = ("awaiting", "coro", "name", "on_end")

    def __init__(self, coro: Coroutine[Any, Any, object], name: str, on_end: Callable[[], object] | None) -> None:
        self.coro = coro
        self.name = name
        self.on_end = on_end
        self.awaiting: Future[Any] | None = None
        """The future that closing the scheduler takes this task away from; None if it is not to be
        disturbed.
        """


@types.coroutine
def suspend() -> Generator[None, None, None]:
    """Give control back to the scheduler; whoever awaits this has arranged for being stepped
    again.
    """
    yield


class Future(Generic[T]):
    """A result that is not there yet.  Any number of tasks may await it; only the loop's thread may
    touch it.

    A ``shielded`` future is still waited for while the scheduler closes (a nursery waits so for its
    tasks).
    """

    __slots__ = ("_error", "_is_done", "_result", "_scheduler", "_shielded", "_waiters")

    def __init__(self, scheduler: Scheduler, *, shielded: bool = False) -> None:
        self._scheduler = scheduler
        self._shielded = shielded
        self._is_done = False
        self._result: T | None = None
        self._error: BaseException | None = None
        self._waiters: list[Task] = []

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an exception."""
        return self._is_done

    def set_result(self, result: T) -> None:
        """Resume all who wait, in the order in which they came, with ``result``.

        Raises:
            RuntimeError: the future is done already.
        """
        self._finish(result, None)

    def set_exception(self, error: BaseException) -> None:
        """Resume all who wait by raising ``error`` in each.

        Raises:
            RuntimeError: the future is done already.
        """
        self._finish(None, error)

    def _finish(self, result: T | None, error: BaseException | None) -> None:
        if self._is_done:
            raise RuntimeError("this future is done already; ask is_done first")
        self._is_done, self._result, self._error = True, result, error
        for task in self._waiters:
            task.awaiting = None
            self._scheduler.ready.append(task)
        self._waiters.clear()

    def discard(self, task: Task) -> None:
        """Forget a task that no longer waits."""
        self._waiters.remove(task)

    def __await__(self) -> Generator[None, None, T]:
        if not self._is_done:
            task = self._scheduler.current_task
            if not self._shielded:
                self._scheduler.check_open()
                task.awaiting = self
            self._waiters.append(task)
            yield
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


class Scheduler:
    """Steps tasks in first-come order; never waits.

    An exception that leaves a task is put into :attr:`errors`; the owner is expected to look there
    after each round, to :meth:`close` and to raise it.
    """

    def __init__(self) -> None:
        self.ready: deque[Task] = deque()
        self.tasks: set[Task] = set()
        self.errors: list[BaseException] = []
        self.is_closing = False
        self._current: Task | None = None

    @property
    def current_task(self) -> Task:
        """The task that is being stepped.

        Raises:
            RuntimeError: none is, as in a posted function or in another thread.
        """
        if self._current is None:
            raise RuntimeError("only a task of the device loop may wait; this code is not run by one")
        return self._current

    def spawn(
        self, coro: Coroutine[Any, Any, object], *, name: str, on_end: Callable[[], object] | None = None
    ) -> Task:
        """Make ``coro`` a task, to be stepped in the next round; ``on_end`` is called after it has
        ended.
        """
        task = Task(coro, name, on_end)
        self.tasks.add(task)
        self.ready.append(task)
        return task

    def run_round(self) -> None:
        """Step each task that is ready now once; what becomes ready meanwhile waits for the next
        round.
        """
        ready = self.ready
        for _ in range(len(ready)):
            self.step(ready.popleft())

    def step(self, task: Task, error: BaseException | None = None) -> None:
        """Run ``task`` up to its next suspension, raising ``error`` where it stands if one is
        given.
        """
        self._current = task
        try:
            trap = task.coro.send(None) if error is None else task.coro.throw(error)
        except StopIteration:
            self._end(task)
        except LoopClosedError as closed:
            self._end(task, None if self.is_closing else closed)
        except BaseException as failure:  # noqa: BLE001 - kept, and raised by the owner
            self._end(task, failure)
        else:
            if trap is not None:
                self.step(task, RuntimeError(f"task {task.name} awaited {trap!r}, which is no future of this loop"))
        finally:
            self._current = None

    def _end(self, task: Task, error: BaseException | None = None) -> None:
        self.tasks.discard(task)
        if error is not None:
            self.errors.append(error)
        if task.on_end is not None:
            task.on_end()

    def check_open(self) -> None:
        """Raise :class:`LoopClosedError` if the scheduler is closing."""
        if self.is_closing:
            raise LoopClosedError("the device loop is ending")

    def close(self) -> None:
        """Raise :class:`LoopClosedError` in every task that waits for a future, now and from here
        on.
        """
        self.is_closing = True
        for task in [task for task in self.tasks if task.awaiting is not None]:
            if task.awaiting is not None:  # else one stepped before it has resolved its future
                task.awaiting.discard(task)
                task.awaiting = None
                self.step(task, LoopClosedError("the device loop is ending"))
