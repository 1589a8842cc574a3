"""Processor time: what a workload takes itself, and what the processes behind its view take for
it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterator

_SCHEDULED = 2
"""``CPUCLOCK_SCHED``: in the number of a process's clock, that it counts time on a processor."""


def of_process(pid: int) -> float:
    """Return the seconds of processor time that all threads of a process have taken.

    Raises:
        OSError: there is none (any more).
    """
    return time.clock_gettime((~pid << 3) | _SCHEDULED)


def of_children() -> float:
    """Return the same of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Servers:
    """The processes that serve a view, one after another, and those that serve others beside it."""

    def __init__(self) -> None:
        self._pid = 0
        self._ended_s = 0.0
        self._beside: dict[int, float] = {}
        """What else is counted for now, and what each of them had taken before."""

    def began(self, pid: int) -> None:
        """Take note of the one that serves from now on."""
        self._pid = pid

    def ends(self) -> None:
        """Take note, before it ends, that it serves no longer."""
        self._ended_s, self._pid = self.seconds(), 0

    @contextlib.contextmanager
    def beside(self, pid: int) -> Iterator[None]:
        """Count what one more process takes while the block runs."""
        self._beside[pid] = of_process(pid)
        try:
            yield
            self._ended_s += of_process(pid) - self._beside[pid]
        finally:
            del self._beside[pid]

    def seconds(self) -> float:
        """Return what all of them have taken so far."""
        beside_s = sum(of_process(pid) - before_s for pid, before_s in self._beside.items())
        return self._ended_s + beside_s + (of_process(self._pid) if self._pid else 0.0)


class Meter:
    """Counts what a workload takes itself, and what the servers of its view take for it."""

    def __init__(self, servers: Servers | None) -> None:
        """``servers`` is None where nothing in user space serves the view."""
        self._servers = servers
        self._begun = self._now()
        self._aside = (0.0, 0.0)

    def _now(self) -> tuple[float, float]:
        return of_children(), self._servers.seconds() if self._servers is not None else 0.0

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Do not count what the block takes."""
        before = self._now()
        try:
            yield
        finally:
            after = self._now()
            self._aside = (self._aside[0] + after[0] - before[0], self._aside[1] + after[1] - before[1])

    def seconds(self) -> tuple[float, float]:
        """Return the seconds since the meter was made, of the workload and of the servers."""
        now = self._now()
        return now[0] - self._begun[0] - self._aside[0], now[1] - self._begun[1] - self._aside[1]


def mounted_by(mountpoint: os.PathLike[str]) -> int:
    """Return the process whose command line ends with a mountpoint, as a pass-through's does.

    Raises:
        ProcessLookupError: none does.
    """
    wanted = os.fsencode(mountpoint)
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().rstrip(b"\0").split(b"\0")
        except OSError:
            continue  # it has ended
        if words[-1] == wanted:
            return int(name)
    raise ProcessLookupError(f"no process serves {os.fspath(mountpoint)}")
