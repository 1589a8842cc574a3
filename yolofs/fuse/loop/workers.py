"""A few daemon threads for calls that may block.

Not :mod:`concurrent.futures`: its threads are joined when the interpreter exits, and one that hangs
on a dead disk would keep the process alive for ever.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

WorkerCall = Callable[[], None]


class WorkerThreads:
    """Runs jobs in up to ``max_threads`` threads, started when first needed.

    One thread submits and closes; jobs beyond the bound wait their turn.  A job handles its own
    exceptions.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._thread_count = 0
        self._jobs: queue.SimpleQueue[WorkerCall | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        """How many jobs wait or are run, guarded by the lock: with fewer threads than these one of
        them would wait, for another that may wait for it."""
        self._is_closed = False

    def submit(self, job: WorkerCall) -> None:
        """Run ``job`` in a thread as soon as one is free; does not block.

        Raises:
            RuntimeError: not a single thread could be started.
        """
        with self._lock:
            self._unfinished += 1
            is_thread_wanted = self._thread_count < min(self._unfinished, self._max_threads)
        try:
            if is_thread_wanted:
                self._start_thread()
        except BaseException:
            self._finished()
            raise
        self._jobs.put(job)

    def close(self) -> None:
        """Let the threads end: idle ones at once, busy ones after their job; jobs not begun are
        dropped.
        """
        self._is_closed = True
        for _ in range(self._thread_count):
            self._jobs.put(None)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"yolofs-worker-{self._thread_count}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system's limit on threads
            if not self._thread_count:
                raise
        else:
            self._thread_count += 1

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None or self._is_closed:
                return
            job()
            del job  # else it lives, with all its arguments, until the next one
            self._finished()

    def _finished(self) -> None:
        with self._lock:
            self._unfinished -= 1
