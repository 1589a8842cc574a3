"""How long the kernel may trust what it is told, in seconds.

What only the view can change is invalidated by whoever changes it, so it may live long.  The host
can change what comes from base at any time.  So that lives for a second or so, or longer if a watch
of base invalidates it (not for ever, as a watch may miss something).

Nor does it see changes in a directory that the host has just made, before that is watched, too.  So
names in there live no longer than they would without a watch.

One thing no watch sees: a write through a shared mapping, which moves the times of a file and
nothing else.  So the files whose attributes the kernel trusts for long are kept, and somebody looks
at them every now and then (:meth:`Lifetimes.changed_unnoticed`).
"""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Callable, Iterable

import msgspec

from yolofs.overlay.host_changes import JUST_MADE_NS
from yolofs.overlay.inodes import Attr, Inode
from yolofs.paths import ROOT, RelPath, is_below
from yolofs.store.base import Base

YOUNG_NS = JUST_MADE_NS + 10**9
"""For how long after a directory of base was made, or changed, the names in it are trusted as
briefly as those of no watch: it takes a moment until a new directory is watched.
"""
MAX_TRUSTED = 4096
"""How many files have attributes that are trusted for long; looking at them all takes some 8 ms."""


class ToldFile(msgspec.Struct, gc=False):
    """What the kernel was told of a base file, and until when it may trust that."""

    mtime_ns: int
    size: int
    until_s: float


class Lifetimes:
    """The lifetimes of one mount; ``clock`` counts seconds."""

    def __init__(
        self,
        base: Base,
        *,
        staged_s: float,
        base_s: float,
        watched_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._base = base
        self._clock = clock
        self._wall_ns = wall_ns
        self._trusted: dict[RelPath, ToldFile] = {}
        self.staged_s = staged_s
        self._base_s = base_s
        self._watched_s = base_s if watched_s is None else max(base_s, watched_s)
        self._top: RelPath | None = None
        self._below = b""
        self._apart: tuple[bytes, ...] = ()

    def watch(self, top: RelPath | None) -> None:
        """Take base at ``top`` and below for watched from now on; nothing at all if it is None.

        Other filesystems mounted in there are not: what happens to them elsewhere no watch would
        see.
        """
        self._top = top
        if top is not None:
            self._below = top + b"/" if top else b""
            self._apart = tuple(path for path in self._base.mounts if path != top and is_below(path, top))

    def of_name(self, directory: Inode, *, is_stable: bool) -> float:
        """Return how long a name in ``directory`` (or that there is none) may be trusted."""
        return self.staged_s if is_stable else self._of_base_names(directory)

    def of_names_in(self, directory: Inode) -> float:
        """Return how long all names of a directory may be trusted to be all; infinite if only the
        view adds any.
        """
        return math.inf if directory.source is None else self._of_base_names(directory)

    def of_attr(self, inode: Inode, attr: Attr) -> float:
        """Return how long the attributes of an inode may be trusted."""
        if attr.is_stable:
            return self.staged_s
        if attr.nlink > 1 and not inode.is_directory:  # a write by a name elsewhere no watch would see
            return self._base_s
        lifetime_s = self._of_base(inode.source)
        if lifetime_s > self._base_s and inode.staged is None and inode.kind == stat.S_IFREG:
            return self._trust(inode.source, attr)
        return lifetime_s

    def _trust(self, source: RelPath | None, attr: Attr) -> float:
        assert source is not None
        trusted = self._trusted
        if len(trusted) >= MAX_TRUSTED and source not in trusted:
            return self._base_s
        trusted[source] = ToldFile(attr.mtime_ns, attr.size, self._clock() + self._watched_s)
        return self._watched_s

    @property
    def trusts_any(self) -> bool:
        """Whether there is a file to be looked at by :meth:`changed_unnoticed`."""
        return bool(self._trusted)

    def changed_unnoticed(self) -> tuple[list[tuple[RelPath, ToldFile]], list[tuple[RelPath, ToldFile]]]:
        """Return which files have changed since the kernel was told of them, and of which it no
        longer trusts the attributes.

        Both are to be given to :meth:`drop`.  Looks at each file; for any thread.
        """
        changed, over = [], []
        prefix, now = self._base.path(ROOT).rstrip(b"/") + b"/", self._clock()
        for item in list(self._trusted.items()):  # at one go, as nothing of it is Python code
            source, told = item
            if told.until_s < now:
                over.append(item)
                continue
            try:
                st = os.lstat(prefix + source)
            except OSError:
                changed.append(item)
                continue
            if st.st_mtime_ns != told.mtime_ns or st.st_size != told.size:
                changed.append(item)
        return changed, over

    def drop(self, items: Iterable[tuple[RelPath, ToldFile]]) -> None:
        """Look no more after what :meth:`changed_unnoticed` has returned, unless the kernel was
        told of it anew.
        """
        for source, told in items:
            if self._trusted.get(source) is told:
                del self._trusted[source]

    def _of_base_names(self, directory: Inode) -> float:
        lifetime_s = self._of_base(directory.source)
        if lifetime_s > self._base_s and self._wall_ns() - directory.seen[0] < YOUNG_NS:
            return self._base_s
        return lifetime_s

    def _of_base(self, source: RelPath | None) -> float:
        if self._top is None or source is None:
            return self._base_s
        if source != self._top and not source.startswith(self._below):
            return self._base_s
        if self._apart and any(is_below(source, path) for path in self._apart):
            return self._base_s
        return self._watched_s
