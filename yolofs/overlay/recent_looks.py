"""What was seen of base a moment ago, so that it need not be looked at again.

A look-up and a request for attributes come right before each create: what they found counts for the
change as well.
"""

from __future__ import annotations

import os

from yolofs.overlay.inodes import Inode
from yolofs.state.tree import Staged


class RecentLooks:
    """The last looks at base."""

    def __init__(self) -> None:
        self.lately_ns = 0
        """For how long a look at base counts as being at the same time as a change that follows."""
        self.missed: tuple[bytes, int] = (b"", 0)
        """The base path that was last found to lead nowhere, and when."""
        self.looked_at: tuple[Inode, Staged | None, os.stat_result, int] | None = None
        """The directory that was looked at last, its store inode, what it was like, and when."""

    def look_anew(self) -> None:
        """Forget all that was seen of base a moment ago."""
        self.missed, self.looked_at = (b"", 0), None
