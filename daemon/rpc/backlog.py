"""Messages for a watcher that does not read for a while.

A watcher or its terminal may be stopped.  When it goes on, it gets the present state, and not all
that has happened meanwhile.  So the backlog is bounded by what waits and by what the watcher was
told before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

MAX_BEHIND = 1_000
"""Up to this number, events are told in full."""


class News(NamedTuple):
    """That something is new or has changed, or has ended."""

    number: int
    """Which thing it is about."""
    is_end: bool
    encode: Callable[[], bytes]
    """Makes the message, in the moment in which it is sent."""


class Backlog:
    """Notices in their order."""

    def __init__(self) -> None:
        self._notices: deque[News] = deque()
        self._told: set[int] = set()
        """What was told of and has not been told to have ended."""
        self._room = MAX_BEHIND

    def __len__(self) -> int:
        return len(self._notices)

    def add(self, notice: News) -> None:
        """Take in a notice."""
        self._notices.append(notice)
        if len(self._notices) > self._room:
            self._shorten()

    def take(self) -> News | None:
        """Return what is to be told next, None if there is nothing."""
        if not self._notices:
            return None
        notice = self._notices.popleft()
        if notice.is_end:
            self._told.discard(notice.number)
        else:
            self._told.add(notice.number)
        return notice

    def _shorten(self) -> None:
        """Keep only the last notice of each thing; drop things that came and ended before the
        watcher heard of them.
        """
        last = {notice.number: notice for notice in self._notices}
        self._notices = deque(one for one in last.values() if not one.is_end or one.number in self._told)
        self._room = max(MAX_BEHIND, 2 * len(self._notices))
