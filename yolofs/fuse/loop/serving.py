"""Waits for the device and has its requests served, one after another, until something else has
happened: what the loop does most of the time.

No coroutines are in here, so it is compiled with the core (``docs/design/compiled.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Sized

from yolofs.fuse.loop.spin import Events, Poll, Spin
from yolofs.fuse.loop.timers import TimerQueue

_REQUESTS_IN_A_ROW = 64
"""After this many requests in a row the loop looks for what else has happened."""
_MOST_POLLED_FIRST = 15
"""How many requests are polled for before the device is read first again."""


class Serving:
    """The way from one request to the next, for :class:`yolofs.fuse.loop.loop.DeviceLoop`."""

    def __init__(
        self,
        spin: Spin,
        timers: TimerQueue,
        ready: Sized,
        letters: Sized,
    ) -> None:
        """``ready`` has the tasks that are to be stepped and ``letters`` the calls that are to be
        made: while there are any, the device is not waited for.
        """
        self.is_held = False
        """Paused or closing: no request is to be taken."""
        self.has_served = False
        """A request was taken at some time."""
        self.is_warm = False
        """A request was taken or a handler resumed since we last blocked: spinning may pay."""
        self.device_readable: Events = []
        """What poll() returns if the device is readable and nothing else has happened."""
        self._spin = spin
        self._timers = timers
        self._ready = ready
        self._letters = letters
        self._vain = 0  # grows with each read that found nothing, until one finds something
        self._polls_first = 0  # before how many requests the device is not read on the chance that there is one

    def wait(self, poll: Poll) -> Events:
        """Poll, after work was done without blocking for the time of the spin, then blocking to the
        next timer.
        """
        if self.is_warm and self._spin.longest_s:
            self.is_warm = False
            events = self._spin.poll(poll)
            if events:
                return events
        return poll(self._timers.next_wait_ms())

    def serve(self, serve_one: Callable[[], bool], poll_all: Poll, poll_others: Poll) -> Events:
        """Serve requests until something else has happened, and return what polls that have seen
        it, or may have.

        ``serve_one`` reads the device without blocking, and returns False if there is no request.
        ``poll_all`` looks at the device and all else, ``poll_others`` at all else alone.
        """
        ready, letters, timers = self._ready, self._letters, self._timers
        if ready:  # busy tasks and a busy device take turns
            if serve_one():
                self.has_served = True
            return poll_others(0)
        for _ in range(_REQUESTS_IN_A_ROW):
            is_served = False
            if self._polls_first:
                self._polls_first -= 1
            elif serve_one():
                is_served = True
                self._vain //= 2
            else:
                self._polls_first = self._vain = min(2 * self._vain + 1, _MOST_POLLED_FIRST)
            if not is_served:
                events = self.wait(poll_all)
                if events != self.device_readable:
                    return events
                is_served = serve_one()
            if is_served:
                self.has_served = self.is_warm = True
            if ready or self.is_held or letters or (timers.heap and timers.is_due()):
                break
        return poll_others(0)
