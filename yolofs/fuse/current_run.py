"""Which run the request that is being carried out belongs to: what the records that it makes are
marked with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RunOf = Callable[[int], int]
"""Gives the run that a process (or thread) belongs to, 0 for none; is asked while its request
waits.
"""


class CurrentRun:
    """The request that is being carried out, and the runs of open files.

    A write does not tell which process writes, nor does mmap: the process that opened the file
    counts.
    """

    __slots__ = ("_run_of", "_runs", "request")

    def __init__(self, run_of: RunOf) -> None:
        self._run_of = run_of
        self._runs: dict[int, int] = {}
        self.request: tuple[Any, ...] = ()
        """The arguments of the request: the last one is its context, or the first one a handle."""

    def run(self) -> int:
        """Return the run that the request belongs to, 0 for none."""
        request = self.request
        if not request:
            return 0
        pid = getattr(request[-1], "pid", None)
        return self._run_of(pid) if pid is not None else self._runs.get(request[0], 0)

    def thread(self) -> int:
        """Return the thread that has sent the request, 0 if that is not known."""
        return getattr(self.request[-1], "pid", 0) if self.request else 0

    def opened(self, handle: int, pid: int) -> None:
        """Note who has opened a file for writing."""
        run = self._run_of(pid)
        if run:
            self._runs[handle] = run

    def released(self, handle: int) -> None:
        """Forget a handle."""
        self._runs.pop(handle, None)
