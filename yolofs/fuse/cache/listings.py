"""Listings that the kernel was told, to be repeated for as long as it may trust them anyway.

By libfuse the kernel cannot be allowed to keep a listing (``docs/design/performance.md``), and
asks for the attributes of each name every time.  It may use an answer until its lifetime is over or
we take it back.  So may we: the same answer is given again for what is left of that time.  On the
direct transport a listing tells whether the kernel may keep the one that it has.

A change of a file ends the rows that tell of it.  A change of the names in a directory ends its
listing (:attr:`~yolofs.overlay.inodes.Inode.changes`).  Other rules end all of them, and so does
whatever may have changed more than that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import msgspec

from yolofs.overlay.inodes import Inode

MAX_NAMES = 10_000
"""Directories of more names are not kept."""
MAX_NAMES_IN_ALL = 50_000
"""How many names are kept at a time, at some 400 bytes each."""
STEPS = 8
"""How many steps a lifetime has."""


class ToldName(msgspec.Struct, gc=False):
    """A name as it was told."""

    name: bytes
    entry: Any
    """The transport's form of an answer; its two timeouts can be set, in seconds."""
    inode: Inode | None
    """Whose look-ups are to be counted; None for ``.`` and ``..``."""
    changes: int
    """What was counted of the inode then: the row holds no longer than that."""
    is_unstable: bool
    """Whether not only the view can change what was told, so that it has a lifetime."""


class Listing:
    """The names of one directory, as they are told for the first time or were told before."""

    __slots__ = ("_changes", "_made_at", "_step", "_versions", "inode", "lifetime_s", "rows")

    def __init__(self, inode: Inode, versions: tuple[int, int], made_at: float, lifetime_s: float) -> None:
        self.inode = inode
        """The directory."""
        self._changes = inode.changes
        self._versions = versions
        self._made_at = made_at
        self._step = 0
        self.rows: list[ToldName] = []
        self.lifetime_s = lifetime_s
        """The shortest lifetime of all told attributes that not the view alone can change; the
        names may be among them.
        """

    def tell(self, offset: int, name: bytes, entry: Any, inode: Inode | None, lifetime_s: float | None) -> None:
        """Take up a name that was told, the next one or one that was looked up anew; ``inode`` as
        in :class:`ToldName`.

        ``lifetime_s`` is None if only the view can change it.
        """
        row = ToldName(name, entry, inode, inode.changes if inode is not None else 0, lifetime_s is not None)
        if lifetime_s is not None:
            self.lifetime_s = min(self.lifetime_s, lifetime_s)
        if offset == len(self.rows):
            self.rows.append(row)
            return
        self.rows[offset] = row
        if lifetime_s is not None:  # from now on with the others, which are older
            self._shorten(row)

    def is_valid(self, versions: tuple[int, int], now: float) -> bool:
        """Tell whether all names may be told again, and see that no lifetime goes on from the
        beginning.

        A lifetime ends in steps, so that the entries need not be written anew each time.
        """
        if versions != self._versions or self.inode.changes != self._changes or self.lifetime_s <= 0:
            return False
        if self.lifetime_s == math.inf:
            return True
        step = int((now - self._made_at) / self.lifetime_s * STEPS) + 1
        if step >= STEPS:
            return False
        if step != self._step:
            self._step = step
            for row in self.rows:
                if row.is_unstable:
                    self._shorten(row)
        return True

    def _shorten(self, row: ToldName) -> None:
        row.entry.entry_timeout = row.entry.attr_timeout = self.lifetime_s * (STEPS - self._step) / STEPS


class Listings:
    """The listings of a view; all end when ``versions`` gives something else.  ``clock`` counts
    seconds.
    """

    def __init__(self, versions: Callable[[], tuple[int, int]], clock: Callable[[], float] = time.monotonic) -> None:
        self._versions = versions
        self._clock = clock
        self._kept: dict[int, Listing] = {}
        self._names = 0

    def find(self, directory: Inode) -> Listing | None:
        """Return the listing of a directory if it may be told again, except for single rows.

        One whose inode has changed since, or has no look-ups as the kernel has forgotten it, must
        be looked up anew.
        """
        listing = self._kept.get(directory.number)
        if listing is None or listing.inode is not directory:
            return None
        return listing if self.is_valid(listing) else None

    def is_valid(self, listing: Listing) -> bool:
        """Tell whether a listing may be told again, or what is missing be added to it."""
        return listing.is_valid(self._versions(), self._clock())

    def begin(self, directory: Inode, lifetime_s: float = math.inf) -> Listing:
        """Return an empty listing, to be filled while it is valid.  For ``lifetime_s`` nobody
        else adds a name.
        """
        return Listing(directory, self._versions(), self._clock(), lifetime_s)

    def keep(self, listing: Listing) -> None:
        """Keep the listing of a directory, now that all its names are in it."""
        count = len(listing.rows)
        before = self._kept.get(listing.inode.number)
        if before is not None:
            self.drop(before)
        if count > MAX_NAMES or not self.is_valid(listing):
            return
        if self._names + count > MAX_NAMES_IN_ALL:
            self._kept.clear()
            self._names = 0
        self._kept[listing.inode.number] = listing
        self._names += count

    def drop(self, listing: Listing) -> None:
        """Keep a listing no longer, if it still is."""
        number = listing.inode.number
        if self._kept.get(number) is listing:
            del self._kept[number]
            self._names -= len(listing.rows)
