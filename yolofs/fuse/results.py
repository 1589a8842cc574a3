"""What the handlers of requests give back: plain values, which a transport packs for the kernel.

A large copy that has to be made first is an exception, :class:`PostponedError`.
"""

from __future__ import annotations

import msgspec

from yolofs.fuse.cache.listings import Listing
from yolofs.overlay import StillKnown
from yolofs.overlay.inodes import Attr, Inode


class EntryReply(msgspec.Struct, gc=False):
    """A file and how long the kernel may trust what it was told, in seconds."""

    attr: Attr | None
    """None: no such name (a negative entry)."""
    name_timeout_s: float
    attr_timeout_s: float


class Opened(msgspec.Struct, gc=False):
    """An open file."""

    handle: int
    keeps: StillKnown
    """What of the kernel's knowledge of the file still holds."""
    number: int


class DirHandle:
    """An open directory: its names as they were when reading began, so that offsets stay what they
    are.
    """

    __slots__ = ("inode", "listing", "names", "was_told")

    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        self.names: list[bytes] = []
        """Empty while a listing is told again."""
        self.listing: Listing | None = None
        """What is told, or was told so far; None if it is not to be kept."""
        self.was_told = False
        """Whether the listing was told before, to somebody else."""


class PostponedError(Exception):
    """A large file has to be copied first, by another thread (:class:`yolofs.overlay.CopyJob`)."""

    def __init__(self, inode: Inode, size: int | None) -> None:
        super().__init__()
        self.inode = inode
        self.size = size


class UncountedError(PostponedError):
    """The kernel has to count first that a file lost a name
    (:mod:`yolofs.fuse.cache.lost_names`).
    """

    def __init__(self, inode: Inode) -> None:
        super().__init__(inode, None)


class ChangingError(PostponedError):
    """A long change of the file has to end first (:mod:`yolofs.fuse.long_changes`)."""

    def __init__(self, inode: Inode) -> None:
        super().__init__(inode, None)
