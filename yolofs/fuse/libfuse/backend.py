"""What pyfuse3 finds where it expects trio: the same few names, served by a :class:`DeviceLoop`.

pyfuse3 looks its async library up in its module global ``trio`` each time (its own
``pyfuse3.asyncio`` relies on that too).  It uses there: ``Lock``, ``open_nursery``,
``ClosedResourceError`` and, below ``lowlevel``, ``current_task``, ``current_trio_token``,
``wait_readable`` and ``notify_closing``.  As this is nobody's promise, the range of pyfuse3's
versions is narrow, and ``tests/mount/test_loop_mount.py`` holds the hook to it.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Self

import pyfuse3

from yolofs.fuse.loop.loop import DeviceClosedError, DeviceLoop
from yolofs.fuse.loop.tasks import Future, Task

HOOK = "trio"
"""The module global of pyfuse3 that holds its async library."""

MAX_TASKS = 1_000_000
"""pyfuse3 keeps one task for each request in progress, and stops reading at its ``max_tasks``."""


class Turn:
    """A ``trio.Lock`` for the one purpose that pyfuse3 has for it: that one task at a time waits
    for the device.

    It is held exactly while a task waits, so that the loop itself knows who holds it, and nothing
    is to release.
    """

    __slots__ = ("_loop",)

    def __init__(self, loop: DeviceLoop) -> None:
        self._loop = loop

    def __aenter__(self) -> Awaitable[None]:
        return self._loop.take_turn()

    async def __aexit__(self, *exc_info: object) -> None:
        pass


class Nursery:
    """Waits for its tasks when left.  One that fails ends the loop, which ends the others and
    raises the error.
    """

    def __init__(self, loop: DeviceLoop) -> None:
        self._loop = loop
        self._task_count = 0
        self._all_ended: Future[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: object, *exc_info: object) -> None:
        if exc_type is not None:
            self._loop.stop()
        while self._task_count:
            self._all_ended = self._loop.create_future(shielded=True)
            await self._all_ended

    def start_soon(self, fn: Callable[..., Coroutine[Any, Any, object]], *args: object, name: str) -> None:
        """Run ``fn(*args)``, one of pyfuse3's worker loops, as a task of its own."""
        self._task_count += 1
        self._loop.spawn(self._work(fn, args), name=name, on_end=self._task_ended)

    def _task_ended(self) -> None:
        self._task_count -= 1
        if not self._task_count and self._all_ended is not None:
            self._all_ended.set_result(None)

    async def _work(self, fn: Callable[..., Coroutine[Any, Any, object]], args: tuple[object, ...]) -> None:
        while True:
            try:
                await fn(*args)
            except BlockingIOError as error:
                if "receive_buf" not in str(error):
                    raise
                # The request was withdrawn between poll() and read().  pyfuse3 takes that for
                # fatal, but has counted this worker on, so that it simply starts again.
            else:
                break
        if not self._loop.has_reader:  # a surplus worker leaves others behind: so the session is over
            self._loop.stop()


class Backend:
    """Stands in for the module ``trio``; see the module's docstring."""

    ClosedResourceError = DeviceClosedError

    def __init__(self, loop: DeviceLoop, replaced: object) -> None:
        self._loop = loop
        self.replaced = replaced
        """What was in pyfuse3's global before."""
        self.lowlevel = self
        self.Lock = partial(Turn, loop)
        self.open_nursery = partial(Nursery, loop)
        self.wait_readable = loop.wait_readable

    def current_task(self) -> Task:
        """The task that runs now; pyfuse3 asks for its name."""
        return self._loop.current_task

    def current_trio_token(self) -> DeviceLoop:
        """What others need for reaching the loop: the loop."""
        return self._loop

    def notify_closing(self, fd: int) -> None:  # noqa: ARG002 - there is one device
        """End the loop; :func:`pyfuse3.terminate` calls this."""
        self._loop.stop()


class WithoutTakenBackRequests(logging.Filter):
    """Leaves out that the kernel knew nothing of a request any more when it was answered.

    It takes all of them back when a mount ends, and whoever made them has been told so.
    """

    _ENDING = f"fuse_reply_* failed with {os.strerror(errno.ENOENT)}"

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line of pyfuse3's is to be written."""
        return not record.getMessage().endswith(self._ENDING)


_taken_back = WithoutTakenBackRequests()
_pyfuse3_log = logging.getLogger("pyfuse3")


def install(loop: DeviceLoop) -> None:
    """Have pyfuse3 run on ``loop`` instead of trio.  Process-wide, as pyfuse3's session is.

    To be called before ``pyfuse3.init()``, which in pyfuse3 3.4 makes its lock already.

    Raises:
        RuntimeError: this pyfuse3 has no such hook.
    """
    namespace = pyfuse3.__dict__
    if HOOK not in namespace:
        raise RuntimeError(f"pyfuse3 {pyfuse3.__version__} has no global `{HOOK}`, so it cannot run on a device loop")
    namespace[HOOK] = Backend(loop, namespace[HOOK])
    _pyfuse3_log.addFilter(_taken_back)


def uninstall() -> None:
    """Put back into pyfuse3 what :func:`install` replaced; does nothing if there is nothing to
    undo.
    """
    namespace = pyfuse3.__dict__
    backend = namespace.get(HOOK)
    if isinstance(backend, Backend):
        namespace[HOOK] = backend.replaced
        _pyfuse3_log.removeFilter(_taken_back)


async def serve_session() -> None:
    """Serve the session of ``pyfuse3.init()`` until it is unmounted or stopped: the ``main`` of the
    loop.
    """
    await pyfuse3.main(min_tasks=1, max_tasks=MAX_TASKS)
