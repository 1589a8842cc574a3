"""The door through which other threads reach the device loop: a queue of calls and a descriptor
that wakes poll().
"""

from __future__ import annotations

import concurrent.futures
import enum
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from yolofs.fuse.loop.tasks import LoopClosedError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

log = logging.getLogger(__name__)


class _Letter(NamedTuple):
    fn: Callable[..., object]
    args: tuple[object, ...]
    reply: concurrent.futures.Future[Any] | None


class _Phase(enum.Enum):
    NEW = "new"
    OPEN = "open"
    CLOSED = "closed"


class Inbox:
    """Calls to be made by the thread that opened it and runs :meth:`run_letters`.

    The lock is held for each delivery, so that none is lost when the inbox closes and no closed
    descriptor is written to.
    """

    def __init__(self) -> None:
        self.wake_fd = -1
        """An eventfd, readable when there is something to run; valid between :meth:`open` and
        :meth:`close`.
        """
        self._lock = threading.Lock()
        self._phase = _Phase.NEW
        self.letters: deque[_Letter] = deque()
        """What is to be run; only to be looked at."""
        self._thread_id = 0

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""
        return self._phase is _Phase.OPEN

    def open(self) -> None:
        """Take calls from here on.

        Raises:
            RuntimeError: it was open before.
        """
        with self._lock:
            if self._phase is not _Phase.NEW:
                raise RuntimeError("a device loop runs once; make another one")
            self._phase = _Phase.OPEN
            self.wake_fd = os.eventfd(len(self.letters), os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def own(self) -> None:
        """Note that the calling thread is the one that runs the calls."""
        self._thread_id = threading.get_ident()

    def close(self) -> None:
        """Take no more calls, and fail those that were not run."""
        with self._lock:
            self._phase = _Phase.CLOSED
            self._thread_id = 0  # another thread may get that number once this one has ended
            letters = list(self.letters)
            self.letters.clear()
            os.close(self.wake_fd)
            self.wake_fd = -1
        for letter in letters:
            if letter.reply is not None and letter.reply.set_running_or_notify_cancel():
                letter.reply.set_exception(_closed())

    def post(self, fn: Callable[[*Ts], object], *args: *Ts) -> None:
        """See :meth:`yolofs.fuse.loop.loop.DeviceLoop.post`."""
        self._deliver(_Letter(fn, args, None))

    def call(self, fn: Callable[[*Ts], T], *args: *Ts, timeout_s: float | None = None) -> T:
        """See :meth:`yolofs.fuse.loop.loop.DeviceLoop.call`."""
        if threading.get_ident() == self._thread_id:
            raise RuntimeError("call() on the loop's own thread would wait for itself; call the function instead")
        reply: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._deliver(_Letter(fn, args, reply))
        concurrent.futures.wait([reply], timeout_s)
        if reply.cancel():
            raise TimeoutError(f"the device loop did not get to {fn!r} within {timeout_s} s")
        return reply.result()

    def _deliver(self, letter: _Letter) -> None:
        with self._lock:
            if self._phase is _Phase.CLOSED or (self._phase is _Phase.NEW and letter.reply is not None):
                raise _closed()
            self.letters.append(letter)
            if self._phase is _Phase.OPEN:
                os.eventfd_write(self.wake_fd, 1)

    def run_letters(self) -> None:
        """Make the calls that have come in by now; to be called when the descriptor is readable."""
        os.eventfd_read(self.wake_fd)  # before counting: what is delivered from here on wakes us again
        for _ in range(len(self.letters)):
            fn, args, reply = self.letters.popleft()
            if reply is None:
                run_callback(fn, *args)
            elif reply.set_running_or_notify_cancel():
                try:
                    reply.set_result(fn(*args))
                except BaseException as error:  # noqa: BLE001 - the caller's
                    reply.set_exception(error)


def run_callback(fn: Callable[..., object], *args: object) -> None:
    """Call ``fn(*args)``; an exception is logged, as a defect in there must not take the mount with
    it.
    """
    try:
        fn(*args)
    except Exception:
        log.exception("%r failed on the device loop", fn)


def _closed() -> LoopClosedError:
    return LoopClosedError("the device loop is not running")
