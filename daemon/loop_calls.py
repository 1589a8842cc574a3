"""How other threads reach the device loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Call(Protocol):
    """Has the device loop call a function between two requests, and waits for it."""

    def __call__(self, function: Callable[[], T], /) -> T:
        """Return what ``function`` returns.

        Raises:
            DaemonError: the mount has ended, or the system refuses what the function wants.
        """
        ...
