"""How long to go on polling the device after a request, before the thread sleeps.

Waking a thread on an idle core costs as much as the request again or more, so polling on for a
moment pays if another request comes soon.  It does not if none comes, and it costs others if they
want the CPU meanwhile.  Both are learned:

* From the gaps between requests.  A spin that finds nothing doubles the number of requests after
  which the next one is tried; one that finds something goes back to spinning each time, for about
  twice the usual gap.
* From the spins themselves.  Between two looks at the device the CPU is offered to others
  (``sched_yield``).  If that takes long, somebody else has used it, and for some milliseconds there
  is no spinning at all; for longer each time that the next try finds the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

Events = list[tuple[int, int]]

_SOON = 4.0
"""How many usual gaps a spin lasts."""
_SHORTEST_S = 10e-6
_MAX_SKIPPED = 64
_CONTENDED_S = 25e-6
"""Offering the CPU takes about 1 µs if nobody wants it."""
_BACK_OFF_S = 10e-3
_LONGEST_BACK_OFF_S = 0.32


class Poll(Protocol):
    """The poll() of a poll object: waits ``timeout`` milliseconds, for ever if it is None."""

    def __call__(self, timeout: float | None = None, /) -> Events: ...


class Spin:
    """Polls for at most ``longest_s`` seconds (0: never), as long as that has paid off recently."""

    __slots__ = ("_back_off_s", "_clock", "_free_from", "_gap_s", "_skip", "_skipped", "longest_s")

    def __init__(self, longest_s: float, clock: Callable[[], float]) -> None:
        self.longest_s = longest_s
        self._clock = clock
        self._gap_s = longest_s / _SOON
        self._skip = 0
        self._skipped = 0
        self._free_from = 0.0
        self._back_off_s = _BACK_OFF_S

    def poll(self, poll: Poll) -> Events:
        """Return what happened during the spin; nothing if it was not worth while, or nothing
        happened.

        Where no spin is tried nobody looks either: the caller's blocking poll does, and finds what
        is there at once.
        """
        if self._skipped < self._skip:
            self._skipped += 1
            return []
        clock = self._clock
        now = start = clock()
        if now < self._free_from:
            return []
        events = poll(0)
        if events:
            return events
        self._skipped = 0
        end = start + min(self.longest_s, max(_SHORTEST_S, self._gap_s * _SOON))
        while now < end:
            os.sched_yield()
            events = poll(0)
            before, now = now, clock()
            if events:
                self._gap_s += (now - start - self._gap_s) / 8
                self._skip = 0
                return events
            if now - before > _CONTENDED_S:
                is_again = now - self._free_from < self._back_off_s
                self._back_off_s = min(2 * self._back_off_s, _LONGEST_BACK_OFF_S) if is_again else _BACK_OFF_S
                self._free_from = now + self._back_off_s
                return events
        self._gap_s = min(self.longest_s, self._gap_s * 1.25)
        self._skip = min(_MAX_SKIPPED, 2 * self._skip + 1)
        return events
