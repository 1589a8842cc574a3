"""Makes a sandbox see the names that the host makes and replaces in directories that come straight
from base.

The overlay between (:mod:`yolofs.sandbox.native_mounts`) keeps a name that it was asked for, also
that there is none.  So the directories of base are looked at once in a while, those at the top;
where one has changed, the overlay forgets. What is *in* a file needs none of that.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Sequence

from yolofs.sandbox.native_mounts import forget_names

_MOST = 2_000
"""How many directories are looked at, the highest ones first: that takes some two milliseconds."""


class HostNames:
    """Looks at directories of base, and has overlays forget what they know of names."""

    def __init__(self, handles: Sequence[int], paths: Sequence[bytes]) -> None:
        """``handles``: of the overlays; they stay the caller's.  ``paths``: what comes straight
        from base.
        """
        self._handles = handles
        self._paths = paths
        self._begun_ns = time.time_ns()
        self._changed_ns: dict[bytes, int] = {}

    def look(self) -> None:
        """Look once; a few milliseconds, more the first time."""
        if not self._handles:
            return
        if self._changed_ns:
            now_ns = {path: _changed_ns(path) for path in self._changed_ns}
            has_changed = now_ns != self._changed_ns
        else:
            now_ns = {path: _changed_ns(path) for path in self._directories()}
            has_changed = max(now_ns.values(), default=0) >= self._begun_ns
        if has_changed:
            now_ns = {path: _changed_ns(path) for path in self._directories()}  # with new ones: they count from now on
            for handle in self._handles:
                with contextlib.suppress(OSError):
                    forget_names(handle)
        self._changed_ns = now_ns

    def _directories(self) -> list[bytes]:
        found = list(self._paths[:_MOST])
        for path in found:  # which grows meanwhile
            found += itertools.islice(_below(path), _MOST - len(found))
        return found


def _below(path: bytes) -> Iterator[bytes]:
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield entry.path


def _changed_ns(path: bytes) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0
