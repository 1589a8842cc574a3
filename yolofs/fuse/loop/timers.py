"""Calls at a later time, on a clock that is passed in."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count

LONGEST_WAIT_MS = 3_600_000
"""poll() takes a C int; waking once an hour costs nothing."""


class Timer:
    """One call to come.  :meth:`cancel` may be called at any time, also after it has run."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[[], object]) -> None:
        self.fn: Callable[[], object] | None = fn

    def cancel(self) -> None:
        """Do not call; lets go of the function at once."""
        self.fn = None


class TimerQueue:
    """Timers in the order in which they are due; those due at the same time in the order in which
    they were set.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._serial = count()
        self.heap: list[tuple[float, int, Timer]] = []
        """Empty if no timer is set: the cheap test for the loop's fast path.  Otherwise private."""

    def add(self, delay_s: float, fn: Callable[[], object]) -> Timer:
        """Have ``fn`` returned by :meth:`take_due` in ``delay_s`` seconds."""
        timer = Timer(fn)
        heapq.heappush(self.heap, (self._clock() + delay_s, next(self._serial), timer))
        return timer

    def next_due_s(self) -> float | None:
        """The clock's time at which the next timer is due; None if there is none."""
        heap = self.heap
        while heap and heap[0][2].fn is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def is_due(self) -> bool:
        """Whether a timer is due now."""
        due_s = self.next_due_s()
        return due_s is not None and due_s <= self._clock()

    def next_wait_ms(self) -> int | None:
        """How long one may sleep, in whole milliseconds, rounded up; None for as long as one
        likes.
        """
        due_s = self.next_due_s()
        if due_s is None:
            return None
        return min(max(math.ceil((due_s - self._clock()) * 1000), 0), LONGEST_WAIT_MS)

    def take_due(self) -> list[Timer]:
        """Take out the timers that are due.  The caller looks at each ``fn`` late, as one may
        cancel another.
        """
        due: list[Timer] = []
        while self.is_due():
            due.append(heapq.heappop(self.heap)[2])
        return due
