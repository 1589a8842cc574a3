"""Changes of a file's room that take as long as the disk needs: another thread makes them.

Nothing of this applies where no mount serves others: there they are made on the spot.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from yolofs.overlay.inodes import Inode

MUCH_ALLOCATED = 128 << 20
"""From this many bytes on, allocating takes long: 0.3 ms, and 1 to 5 ms for each GiB."""
MUCH_FREED = 16 << 20
"""From this many bytes on the disk, freeing takes long: 1 ms, and 20 to 50 ms for each GiB."""


class LongChangeError(Exception):
    """A request would keep all others waiting.  Nothing is done yet; :meth:`begin` leads on."""

    def __init__(self, inode: Inode, fd: int, change: Callable[[int], object]) -> None:
        """``change`` makes the change of ``inode`` by a descriptor such as ``fd``."""
        super().__init__()
        self.inode = inode
        self._fd = fd
        self._change = change

    def begin(self) -> tuple[int, Callable[[int], object]]:
        """Return a descriptor that the caller closes, and what makes the change by it, in any
        thread.

        To be called before anything else is done with the view.
        """
        return os.dup(self._fd), self._change
