"""How long the kernel may trust what it is told, in seconds.

What only the view can change is invalidated by whoever changes it, so it may live long.  What comes from base the host
can change at any time: it lives for a second or so, or longer where somebody watches base for us and has it
invalidated (a watch may miss something, so not for ever).
"""

from __future__ import annotations

from yolofs.base import Base
from yolofs.inodes import Attr, Inode
from yolofs.paths import RelPath, is_below


class Lifetimes:
    """The lifetimes of one mount."""

    def __init__(self, base: Base, *, staged_s: float, base_s: float, watched_s: float | None = None) -> None:
        self._base = base
        self.staged_s = staged_s
        self._base_s = base_s
        self._watched_s = base_s if watched_s is None else max(base_s, watched_s)
        self._top: RelPath | None = None
        self._below = b""
        self._apart: tuple[bytes, ...] = ()

    def watch(self, top: RelPath | None) -> None:
        """Take base at ``top`` and below for watched from now on; nothing at all if it is None.

        Other filesystems mounted in there are not: what happens to them elsewhere no watch would see.
        """
        self._top = top
        if top is not None:
            self._below = top + b"/" if top else b""
            self._apart = tuple(path for path in self._base.mounts if path != top and is_below(path, top))

    def of_name(self, directory: Inode, *, is_stable: bool) -> float:
        """Return how long a name in ``directory`` (or that there is none) may be trusted."""
        return self.staged_s if is_stable else self._of_base(directory.source)

    def of_attr(self, inode: Inode, attr: Attr) -> float:
        """Return how long the attributes of an inode may be trusted."""
        if attr.is_stable:
            return self.staged_s
        if attr.nlink > 1 and not inode.is_directory:  # a write by a name elsewhere no watch would see
            return self._base_s
        return self._of_base(inode.source)

    def _of_base(self, source: RelPath | None) -> float:
        if self._top is None or source is None:
            return self._base_s
        if source != self._top and not source.startswith(self._below):
            return self._base_s
        if self._apart and any(is_below(source, path) for path in self._apart):
            return self._base_s
        return self._watched_s
