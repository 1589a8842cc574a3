"""Files that have just lost one of several names: the kernel may not have counted that yet.

After a name is removed, the kernel takes one off the link count that it knows of the file.  If it
has heard of the new count before, it counts the same name twice.  Then a file with one name left
has none, and link(2) finds nothing (``vfs_link`` in the kernel's ``fs/namei.c``).  That happens if
somebody else asks for the file's attributes by another name at that very moment.

So whoever asks waits until the removal has come to its end.  The kernel keeps the directory locked
until then: a message about a name in there waits for the lock.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import NamedTuple

from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError

_MOST = 64
"""How many files are known: all that were removed before are counted long since."""
_PATIENCE_S = 0.05
"""How long a request waits at most.  Another one may have locked the directory since, which waits
for that request in turn, or for an answer.
"""
_NO_NAME = b"\x7f"
"""What the message is about; that there is no such name does no harm."""


class _Lost(NamedTuple):
    thread: int
    """The one that has removed the name; 0 if it is in a pid namespace that ours does not show."""
    directory: int


class LostNames:
    """The files that have just lost a name and that the kernel may count wrongly, by number."""

    def __init__(self) -> None:
        self.uncounted: dict[int, _Lost] = {}
        """Read-only outside, and there only to see whether there are any."""
        self.thread_of_request: Callable[[], int] = lambda: 0
        """Tells the thread behind the present request, 0 if it is not known."""
        self.on_seen: Callable[[int], object] = lambda _: None
        """Called with a file that a listing tells without attributes, as it may be uncounted."""

    def note(self, number: int, directory: int) -> None:
        """Note that a request removes a name of a file from a directory."""
        thread = self.thread_of_request()
        self.uncounted.pop(number, None)
        self.uncounted[number] = _Lost(thread, directory)
        if len(self.uncounted) > _MOST:
            del self.uncounted[next(iter(self.uncounted))]

    def may_be_uncounted(self, number: int) -> bool:
        """Tell whether the kernel may not have counted yet what a file has lost."""
        lost = self.uncounted.get(number)
        if lost is None:
            return False
        if lost.thread and lost.thread == self.thread_of_request():  # it is back from there
            del self.uncounted[number]
            return False
        return True


class Counting:
    """Finds out when the kernel has counted; belongs to the device loop.

    ``tell`` sends it a message about a name in a directory, and blocks while that is locked.
    """

    def __init__(self, lost: LostNames, loop: DeviceLoop, tell: Callable[[int, bytes], None]) -> None:
        self._lost = lost
        self._loop = loop
        self._tell = tell
        self._thread: threading.Thread | None = None

    async def wait(self, number: int) -> None:
        """Wait until the kernel has counted what a file has lost, or is sure to have.

        Raises:
            LoopClosedError: the loop ends meanwhile.
        """
        lost = self._lost.uncounted.get(number)
        if lost is None:
            return
        counted: Future[None] = self._loop.create_future()

        def settle() -> None:
            if not counted.is_done:
                counted.set_result(None)

        timer = self._loop.call_later(_PATIENCE_S, settle)
        if self._thread is None or not self._thread.is_alive():  # else it is stuck, as the next one may be
            self._begin(lost.directory, settle)
        await counted
        timer.cancel()
        if self._lost.uncounted.get(number) is lost:
            del self._lost.uncounted[number]

    def _begin(self, directory: int, settle: Callable[[], None]) -> None:
        def work() -> None:
            with contextlib.suppress(OSError):  # the kernel knows no such name, or has forgotten the directory
                self._tell(directory, _NO_NAME)
            with contextlib.suppress(LoopClosedError):
                self._loop.post(settle)

        thread = threading.Thread(target=work, name="counting", daemon=True)
        with contextlib.suppress(RuntimeError):  # the system's limit on threads
            thread.start()
            self._thread = thread
