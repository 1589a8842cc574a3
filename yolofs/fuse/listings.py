"""What the kernel was told of the names in a directory, to be told again while it may trust that anyway.

The kernel cannot be let keep a listing (``docs/design/performance.md``), and asks for the attributes of each name every
time.  An answer that it was given with a lifetime it may use by itself until that is over or we take it back; so may
we, to give it once more for what is left of that time.  Everything that changes anything in the view ends all
listings: it counts :attr:`Listings.epoch` on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from yolofs.inodes import Inode
from yolofs.rules import RuleBook

MAX_NAMES = 10_000
"""Directories of more names are not kept."""
MAX_NAMES_IN_ALL = 50_000
"""So many names are kept at a time, at some 400 bytes each."""
STEPS = 8
"""In so many steps a lifetime goes by."""


class Row(NamedTuple):
    """A name as it was told."""

    name: bytes
    entry: Any
    """The transport's form of an answer; its two timeouts can be set, in seconds."""
    inode: Inode | None
    """Whose look-ups are to be counted; None for ``.`` and ``..``."""


class Listing:
    """The names of one directory, as they are told for the first time or were told before."""

    __slots__ = ("_made_at", "_stamp", "_step", "_unstable", "inode", "lifetime_s", "rows")

    def __init__(self, inode: Inode, stamp: tuple[int, int], made_at: float) -> None:
        self.inode = inode
        """The directory."""
        self._stamp = stamp
        self._made_at = made_at
        self._step = 0
        self._unstable: list[Any] = []
        self.rows: list[Row] = []
        self.lifetime_s = math.inf
        """The shortest of all that was told of what not only the view can change."""

    def add(self, row: Row, lifetime_s: float | None) -> None:
        """Take up a name that was told; ``lifetime_s`` is None if only the view can change it."""
        self.rows.append(row)
        if lifetime_s is not None:
            self._unstable.append(row.entry)
            self.lifetime_s = min(self.lifetime_s, lifetime_s)

    def holds(self, stamp: tuple[int, int], now: float) -> bool:
        """Tell whether all of it may be told again, and see that no lifetime goes on from the beginning.

        A lifetime ends in steps, so that the entries need not be written anew each time.
        """
        if stamp != self._stamp or self.lifetime_s <= 0:
            return False
        if not self._unstable:
            return True
        step = int((now - self._made_at) / self.lifetime_s * STEPS) + 1
        if step >= STEPS:
            return False
        if step != self._step:
            self._step = step
            left_s = self.lifetime_s * (STEPS - step) / STEPS
            for entry in self._unstable:
                entry.entry_timeout = entry.attr_timeout = left_s
        return True


class Listings:
    """The listings of a view under the rules of ``book``; ``clock`` counts seconds."""

    def __init__(self, book: RuleBook, clock: Callable[[], float] = time.monotonic) -> None:
        self._book = book
        self._clock = clock
        self._kept: dict[int, Listing] = {}
        self._names = 0
        self.epoch = 0
        """Counts what may have changed something."""

    def find(self, directory: Inode) -> Listing | None:
        """Return the listing of a directory if it may be told again.

        The kernel may have forgotten files in it since: a row whose inode has no look-ups must be looked up anew.
        """
        listing = self._kept.get(directory.number)
        if listing is None or listing.inode is not directory:
            return None
        return listing if self.holds(listing) else None

    def holds(self, listing: Listing) -> bool:
        """Tell whether a listing may be told again, or what is missing be added to it."""
        return listing.holds((self.epoch, self._book.version), self._clock())

    def begin(self, directory: Inode) -> Listing:
        """Return an empty listing, to be filled while it :meth:`holds`."""
        return Listing(directory, (self.epoch, self._book.version), self._clock())

    def keep(self, listing: Listing) -> None:
        """Keep the listing of a directory, now that all its names are in it."""
        count = len(listing.rows)
        self.drop(listing.inode.number)
        if count > MAX_NAMES or not self.holds(listing):
            return
        if self._names + count > MAX_NAMES_IN_ALL:
            self._kept.clear()
            self._names = 0
        self._kept[listing.inode.number] = listing
        self._names += count

    def drop(self, number: int) -> None:
        """Keep no listing of a directory any more."""
        before = self._kept.pop(number, None)
        self._names -= len(before.rows) if before is not None else 0
