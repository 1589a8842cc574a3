"""Finds the names that base has for a file with hard links, and remembers them for a moment."""

from __future__ import annotations

from collections.abc import Callable

from yolofs.paths import RelPath
from yolofs.state.link_names import find_names_at
from yolofs.store.base import Base

NAMES_LOOKED_AT = 5_000
"""How many names in base are looked at to find other names of a file with hard links: some 5 ms."""
_FOUND = 1_000
"""Of how many such files it is remembered which names were found."""
_FOUND_S = 1.0
"""For how long, in seconds: base may change as long unnoticed anyway."""


class LinkedNames:
    """The names of files in ``base``; ``clock`` tells seconds."""

    def __init__(self, base: Base, clock: Callable[[], float]) -> None:
        self._base = base
        self._clock = clock
        self._found: dict[RelPath, tuple[float, list[RelPath], bool]] = {}
        """What was found of each file, until when that is good."""

    def of(self, home: RelPath) -> tuple[list[RelPath], bool]:
        """Return the names that base has for a file, and whether these are all; what was found is
        good for a second.
        """
        now = self._clock()
        known = self._found.get(home)
        if known is None or known[0] <= now:
            if len(self._found) >= _FOUND:
                self._found.clear()
            known = (now + _FOUND_S, *find_names_at(self._base, home, limit=NAMES_LOOKED_AT))
            self._found[home] = known
        return known[1], known[2]
