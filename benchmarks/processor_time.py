"""Processor time: what a workload takes itself, and what the processes behind its view take for
it.
"""

from __future__ import annotations

import os
import resource
import time

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
    """The processes that serve a view, one after another."""

    def __init__(self) -> None:
        self._pid = 0
        self._ended_s = 0.0

    def began(self, pid: int) -> None:
        """Take note of the one that serves from now on."""
        self._pid = pid

    def ends(self) -> None:
        """Take note, before it ends, that it serves no longer."""
        self._ended_s, self._pid = self.seconds(), 0

    def seconds(self) -> float:
        """Return what all of them have taken so far."""
        return self._ended_s + (of_process(self._pid) if self._pid else 0.0)


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
