"""What base was seen to be a moment ago, so that it need not be looked at again.

A look-up and a request for attributes come right before each create: what they found counts for the
change as well.
"""

from __future__ import annotations

import os

from yolofs.overlay.inodes import Inode
from yolofs.state.tree import Staged
from yolofs.store import copying


class RecentLooks:
    """The last looks at base."""

    def __init__(self) -> None:
        self.lately_ns = 0
        """For so long a look at base counts as one at the same time as a change that follows."""
        self.missed: tuple[bytes, int] = (b"", 0)
        """The base path that was last found to lead nowhere, and when."""
        self.looked_at: tuple[Inode, Staged | None, os.stat_result, int] | None = None
        """The directory that was looked at last, its store inode, what it was like, and when."""
        self.at_hand: tuple[Inode, int] | None = None
        """The directory whose names are being looked up one after another, and a descriptor of what
        it has in base.
        """

    def look_anew(self) -> None:
        """Take nothing for true any more that base was seen to be a moment ago."""
        self.missed, self.looked_at = (b"", 0), None

    def at_hand_name(self, inode: Inode) -> bytes | None:
        """Return a path of an unstaged inode by the directory whose names are being looked up, None
        if it is elsewhere.

        As for that directory's other names, what matters is what has the name.
        """
        if self.at_hand is None or inode.base is None:
            return None
        directory, fd = self.at_hand
        above, _, name = inode.base.rpartition(b"/")
        return copying.at(fd, name) if above == directory.source else None
