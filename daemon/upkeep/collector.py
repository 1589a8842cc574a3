"""When Python looks for garbage in cycles: while nobody works in the mount.

A full collection stops all requests, for some 25 ms with 80,000 known files.  Requests leave no
cycles.  It finds remains of commands and of rules, and the whole tree of a state once another one
is shown.  All of that can wait.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import trio

LOOK_S = 5.0
_IDLE = 0.02
"""A process that uses no more than this part of a CPU counts as idle."""
_PATIENCE = 24
"""After so many looks at a process that is at work, it collects all the same: states that are no
longer shown take memory.
"""
_NEVER = (1 << 31) - 1
_DUE = 10
"""Python itself looks at all objects when it has looked at younger ones this often."""
_GROWTH = 4
"""A look is due when the number of objects may have grown by one part in so many since the last
one: its cost is in proportion to them.
"""


class Collector:
    """Collects garbage of the whole process: Python no longer does after
    :meth:`disable_automatic_collection`, so call :meth:`look` every :data:`LOOK_S`.

    ``cpu_s`` tells how many seconds of a CPU the process has used.
    """

    def __init__(self, cpu_s: Callable[[], float] = time.process_time) -> None:
        self._cpu_s = cpu_s
        self._used_s = 0.0
        self._due = _DUE
        self._is_due_now = False
        self._busy_looks = 0

    def disable_automatic_collection(self) -> None:
        """Keep Python from looking everywhere by itself."""
        gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
        self._collect()

    def state_replaced(self) -> None:
        """Have the next idle :meth:`look` collect: a whole state is shown no more.  For any
        thread.
        """
        self._is_due_now = True

    def look(self) -> None:
        """Collect, if that is worth while and next to nothing was done since the last look."""
        used_s = self._cpu_s()
        is_idle = used_s - self._used_s <= _IDLE * LOOK_S
        self._used_s = used_s
        if not (self._is_due_now or gc.get_count()[2] >= self._due):
            return
        self._busy_looks += 1
        if is_idle or self._busy_looks > _PATIENCE:
            self._collect()

    def _collect(self) -> None:
        self._is_due_now, self._busy_looks = False, 0
        gc.collect()
        young, middle, _ = gc.get_threshold()
        self._due = max(_DUE, len(gc.get_objects(generation=2)) // (_GROWTH * young * middle))
        self._used_s = self._cpu_s()


async def collect_when_idle(collector: Collector) -> None:
    """Look every now and then, until cancelled."""
    while True:
        await trio.sleep(LOOK_S)
        collector.look()
