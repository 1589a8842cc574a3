"""Has worker threads make the changes that take long, for requests that wait for it.

Until such a request is carried out, its file stands between two states.  So other changes of that
file wait, and so does whatever wants the view at rest: a snapshot, a travel, a loan.
"""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError
from yolofs.overlay import LongChangeError
from yolofs.overlay.inodes import Inode

T = TypeVar("T")


class LongChanges:
    """The long changes of one mount.

    :meth:`call` and :meth:`join` are for other threads, all else belongs to the device loop.
    """

    def __init__(self, loop: DeviceLoop, changing: set[Inode]) -> None:
        """``changing`` gets the files with a long change under way."""
        self._loop = loop
        self._changing = changing
        self._ended: dict[Inode, Future[None]] = {}
        self._calls: list[tuple[Callable[[], Any], concurrent.futures.Future[Any]]] = []
        """What waits for the end of all, with where its result goes."""
        self._called: Future[None] | None = None
        """Done when these calls are made."""
        self._threads = threading.Condition()
        """Guards what is below."""
        self._at_work = 0
        self._is_over = False

    # ---- requests

    async def make(self, error: LongChangeError) -> bool:
        """Have a thread make the change that has just been raised; false if that has to be raised
        anew, as something else came first.

        If true, the caller owes an :meth:`end`.

        Raises:
            OSError: the change has failed.
            LoopClosedError: the loop ends meanwhile.
        """
        if self._calls:
            if self._called is None:
                self._called = self._loop.create_future()
            await self._called
            return False
        inode = error.inode
        self._ended[inode] = self._loop.create_future()
        self._changing.add(inode)
        try:
            fd, change = error.begin()
            await self._loop.in_thread(self._work, fd, change)
        except LoopClosedError:
            self._fail_calls()
            raise
        except BaseException:
            self.end(inode)
            raise
        return True

    def end(self, inode: Inode) -> None:
        """Note that a request has been carried out whose long change was made."""
        self._changing.discard(inode)
        self._ended.pop(inode).set_result(None)
        if not self._ended:
            self._make_calls()

    async def until_ended(self, inode: Inode) -> None:
        """Wait until no long change of a file is under way."""
        ended = self._ended.get(inode)
        if ended is not None:
            await ended

    # ---- what wants the view at rest

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on the device loop while no long change is under way, and return what it
        returns.  Blocks; for other threads.

        Long changes that come later wait for it.

        Raises:
            LoopClosedError: the loop has ended, or ended meanwhile; it has not run.
        """
        result: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._loop.call(self._make_or_keep, function, result)
        return result.result()

    def _make_or_keep(self, function: Callable[[], T], result: concurrent.futures.Future[T]) -> None:
        self._calls.append((function, result))
        if not self._ended:
            self._make_calls()

    def _make_calls(self) -> None:
        calls, self._calls = self._calls, []
        for function, result in calls:
            try:
                result.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is raised where the call came from
                result.set_exception(error)
        called, self._called = self._called, None
        if called is not None:
            called.set_result(None)

    def _fail_calls(self) -> None:
        calls, self._calls = self._calls, []
        for _, result in calls:
            result.set_exception(LoopClosedError("the device loop is ending"))

    # ---- threads

    def _work(self, fd: int, change: Callable[[int], object]) -> None:
        with self._threads:
            if self._is_over:
                os.close(fd)
                return
            self._at_work += 1
        try:
            change(fd)
        finally:
            os.close(fd)
            with self._threads:
                self._at_work -= 1
                self._threads.notify_all()

    def join(self) -> None:
        """Begin no more, and block until those that are under way are made: whoever opens the
        session next finds files that nobody changes.
        """
        with self._threads:
            self._is_over = True
            self._threads.wait_for(lambda: not self._at_work)
