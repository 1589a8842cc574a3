"""The hidden names that the kernel may keep as absent, until other rules are in force.

Without them it asks for a hidden name at each look.  All of it runs on the thread that owns the
view.
"""

from __future__ import annotations

from collections.abc import Callable

MOST = 1_000
"""How many hidden names the kernel may keep as absent at a time."""

Place = tuple[int, bytes]
"""The number of a directory, and a name in it."""


class AbsentNames:
    """What the kernel was told, each name until when it may keep that; ``clock`` tells seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_s: dict[Place, float] = {}
        """The oldest first."""

    def may_stay(self, directory: int, name: bytes, lifetime_s: float) -> bool:
        """Tell whether the kernel may keep for so long that a hidden name is not there.

        If so, it is among the names that :meth:`pop_all` returns.  ``directory`` is its number.
        """
        told, now = self._until_s, self._clock()
        place = directory, name
        told.pop(place, None)
        if len(told) >= MOST:
            oldest = next(iter(told))
            if told[oldest] > now:
                return False
            del told[oldest]
        told[place] = now + lifetime_s
        return True

    def pop_all(self) -> list[Place]:
        """Return the names that the kernel may have as absent, and begin anew: it is to be told to
        forget them.
        """
        told, self._until_s = self._until_s, {}
        return list(told)
