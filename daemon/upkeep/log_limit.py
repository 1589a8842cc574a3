"""Limits how often the same line is logged, so that no program can fill the disk by it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

MOST_LINES = 20
"""Lines of one kind in one period."""
PERIOD_S = 60.0


@dataclass(slots=True)
class _Period:
    """What there was of one kind since a time on the monotonic clock."""

    began: float
    count: int = 0


class LogLimit(logging.Filter):
    """Lets through :data:`MOST_LINES` lines of a kind in :data:`PERIOD_S`; the next one says how
    many are missing.

    A kind is one format string, whatever its arguments: there are as many kinds as log calls in the
    source.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._periods: dict[str, _Period] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is to be written."""
        now = self._clock()
        left_out = 0
        with self._lock:
            period = self._periods.setdefault(str(record.msg), _Period(now))
            if now - period.began >= PERIOD_S:
                left_out = max(0, period.count - MOST_LINES)
                period.began, period.count = now, 0
            period.count += 1
            is_written = period.count <= MOST_LINES
        if left_out:
            record.msg = f"{record.msg} (and {left_out} such lines before it were left out)"
        return is_written
