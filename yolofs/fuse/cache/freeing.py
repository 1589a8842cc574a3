"""Having another thread free the blocks of store inodes that were removed.

The name of a store inode goes at once, on the device loop, which takes 2 µs as long as a descriptor
holds the file.  When the last one is closed, the filesystem frees the blocks of the file, which is
as slow as the disk: 50 to 600 µs for a small file if the disk is told at once (the mount option
discard), and longer for a large one.

Where closing does not wait for the disk (nothing of the file is on it yet) it takes 2 µs, and
handing over ten.  So the loop closes small files by itself as long as that is quick; once it was
not, the next ones go to the thread.

Nothing but space depends on this thread.  A number whose store inode is gone leads nowhere, whoever
looks at the store; after a crash the system has closed everything.
"""

from __future__ import annotations

import logging
import os
import queue
import resource
import stat
import threading
import time
from collections.abc import Callable
from typing import Protocol

from yolofs.overlay.long_changes import MUCH_FREED

log = logging.getLogger("yolofs.fuse")

_QUICK_NS = 20_000
_SLOW_FOR = 64
"""How many small files are handed over after one that took longer than that to close."""
_LARGE_BYTES = 1 << 20
_BATCH = 32
"""How many are handed over at once: each time, a thread wakes up and wants the interpreter lock."""
_SOON_S = 0.01
"""Fewer are handed over after this time."""
_MAX_COUNT = 256
_MAX_BYTES = 64 << 20
"""If this much waits, the caller closes further files itself: what comes faster than it is freed
must not fill the disk.
"""
_LONG_BYTES = MUCH_FREED
_MAX_LONG_BYTES = 64 << 30
"""Of files of ``_LONG_BYTES`` or more, so much may wait: to close one holds everybody up.  What is
not freed yet is missing to nobody, as a full disk waits for it.
"""


class CallLater(Protocol):
    """Has something called after a number of seconds, as
    :meth:`yolofs.fuse.loop.loop.DeviceLoop.call_later`.
    """

    def __call__(self, delay_s: float, fn: Callable[[], object], /) -> object: ...


class Freeing:
    """Closes descriptors in a thread of its own, which is started when first needed.

    All methods are for one thread, the device loop's or whoever comes after its end; :meth:`wait`
    is for any.
    """

    def __init__(
        self, call_later: CallLater, *, max_count: int | None = None, clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        """Hand over what has come, if nothing else does, in a function given to ``call_later``.

        ``max_count``: of descriptors that may wait; by default what the limit on descriptors has
        room for.  ``clock_ns`` tells how long closing takes.
        """
        self._clock_ns = clock_ns
        self._slow_for = 0
        self._call_later = call_later
        self._max_count = _room() if max_count is None else max_count
        self._batch: list[tuple[int, int]] = []  # descriptors, with the bytes on the disk
        self._is_called_later = False
        self._jobs: queue.SimpleQueue[list[tuple[int, int]] | threading.Event | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._taken = self._taken_bytes = 0
        self._closed = self._closed_bytes = 0  # the thread's

    @property
    def count(self) -> int:
        """How many descriptors are still to be closed."""
        return self._taken - self._closed

    def close(self, fd: int) -> None:
        """Close a descriptor: at once if that is quick or too much is waiting, else soon; an error
        is logged.
        """
        st = os.fstat(fd)
        size = st.st_blocks * 512
        if stat.S_ISDIR(st.st_mode):  # is always on the disk, and tells nothing of the files in between
            pass
        elif not self._slow_for and size < _LARGE_BYTES:
            start_ns = self._clock_ns()
            _close(fd)
            if self._clock_ns() - start_ns > _QUICK_NS:
                self._slow_for = _SLOW_FOR
            return
        elif self._slow_for:
            self._slow_for -= 1
        most = _MAX_BYTES if size < _LONG_BYTES else _MAX_LONG_BYTES
        if self.count >= self._max_count or self._taken_bytes - self._closed_bytes >= most:
            _close(fd)
            return
        self._batch.append((fd, size))
        self._taken += 1
        self._taken_bytes += size
        if len(self._batch) >= _BATCH:
            self.hand_over()
        elif not self._is_called_later:
            self._is_called_later = True
            self._call_later(_SOON_S, self._on_time)

    def _on_time(self) -> None:
        self._is_called_later = False
        self.hand_over()

    def hand_over(self) -> None:
        """Have the thread close all that has come."""
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        if self._thread is None and not self._start():
            self._close_all(batch)
        else:
            self._jobs.put(batch)

    def wait(self) -> None:
        """Block until all that was handed over is closed."""
        if self._thread is not None:
            done = threading.Event()
            self._jobs.put(done)
            done.wait()

    def drain(self) -> bool:
        """Block until nothing is left to be closed; return whether anything was."""
        if not self.count:
            return False
        self.hand_over()
        self.wait()
        return True

    def end(self, timeout_s: float | None = None) -> None:
        """End the thread and block until nothing is left to be closed, or for ``timeout_s``: the
        disk may be dead.

        What comes afterwards starts another thread.
        """
        self.hand_over()
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join(timeout_s)

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="freeing", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system's limit on threads
            return False
        self._thread = thread
        return True

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if isinstance(job, threading.Event):
                job.set()
            else:
                self._close_all(job)

    def _close_all(self, batch: list[tuple[int, int]]) -> None:
        for fd, size in batch:
            _close(fd)
            self._closed_bytes += size
            self._closed += 1


def _room() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_COUNT if limit == resource.RLIM_INFINITY else min(_MAX_COUNT, limit // 8)


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError as error:  # the descriptor is gone all the same
        log.warning("a store inode that was removed: %s", error)
