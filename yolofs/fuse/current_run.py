"""Finds the run of the present request; the request's records are marked with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

RunOf = Callable[[int], int]
"""Gives the run that a process (or thread) belongs to, 0 for none; is asked while its request
waits.
"""


class CurrentRun:
    """Who has sent the request that is being carried out, and the runs of open files.

    A write does not tell which process writes, nor does mmap: the process that opened the file
    counts.
    """

    __slots__ = ("_handle", "_pid", "_run", "_run_of", "_runs")

    def __init__(self, run_of: RunOf) -> None:
        self._run_of = run_of
        self._runs: dict[int, int] = {}
        self._pid = 0
        self._handle = -1
        self._run = -1  # of the process; below 0: nobody has asked yet

    def sent_by(self, pid: int) -> None:
        """Take note of another request: of the thread that has sent it, 0 if that is not known."""
        self._pid = pid
        self._handle = self._run = -1

    def sent_through(self, handle: int) -> None:
        """Take note that the request is about an open file, and does not tell its sender."""
        self._handle = handle

    def sent_with(self, arguments: Sequence[Any]) -> None:
        """Take note of another request by its arguments: the last one is its context, or the first
        one a handle.
        """
        pid = getattr(arguments[-1], "pid", None)
        self.sent_by(pid if pid is not None else 0)
        if pid is None and isinstance(arguments[0], int):
            self.sent_through(arguments[0])

    def run(self) -> int:
        """Return the run that the request belongs to, 0 for none."""
        return self._runs.get(self._handle, 0) if self._handle >= 0 else self._run_of_sender()

    def _run_of_sender(self) -> int:
        """Return the run of the process; what the kernel says of it does not change while its
        request waits.
        """
        if self._run < 0:
            self._run = self._run_of(self._pid) if self._pid else 0
        return self._run

    def thread(self) -> int:
        """Return the thread that has sent the request, 0 if that is not known."""
        return self._pid if self._handle < 0 else 0

    def opened(self, handle: int) -> None:
        """Note that the request has opened a file for writing."""
        run = self._run_of_sender()
        if run:
            self._runs[handle] = run

    def released(self, handle: int) -> None:
        """Forget a handle."""
        self._runs.pop(handle, None)
