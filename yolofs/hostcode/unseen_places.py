"""Places whose content no commit looks at: a link into one may lead to anything.

A run's own ``/tmp`` is one: programs write to it straight on the disk, and learn its path on the
host.  So is the view, with all that a commit has left staged and that a later run stages.  A path
below ``/proc/PID`` leads into a sandbox as long as a process in it lives.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from yolofs.paths import is_below
from yolofs.system.symlinks import HostLinks, follow

# Compiled when it is first used, as most commands meet no link.
_PROCESS = rb"/proc/(?:[0-9]+|self|thread-self)"


class UnseenPlaces:
    """Tells of paths on the host whether they lead to such a place, by the links that are there and
    the new ones.
    """

    def __init__(self, own: Iterable[bytes], new_links: Mapping[bytes, bytes], also_own: Iterable[bytes] = ()) -> None:
        """``own``: yolofs's own directories; none of them is touched, as the mount is among them.

        ``new_links``: what the links hold that a commit would make, by their absolute paths.
        ``also_own``: directories that count at whatever path the host has them.
        """
        self._own = tuple(own)
        self._own_ids = frozenset(one for path in also_own if (one := _id_of(path, follows=True)) is not None)
        self._known: dict[bytes, bool] = {}
        self._new_links = new_links
        self._links = HostLinks()

    def has(self, path: bytes) -> bool:
        """Tell whether an absolute path leads to such a place or through one."""
        is_there = False

        def target(place: bytes) -> bytes | None:
            nonlocal is_there
            if is_there or self._is_one(place):
                is_there = True
                return None  # what is there is not looked at
            return self._new_links.get(place) or self._links.target(place)

        follow(path, target)
        return is_there

    def has_target(self, link: bytes, text: bytes) -> bool:
        """Tell the same of what a link at an absolute path leads to if it holds ``text``."""
        return self.has(os.path.join(os.path.dirname(link), text))

    def _is_one(self, place: bytes) -> bool:
        if place.startswith(b"/proc/"):
            return re.match(_PROCESS + rb"\Z", place) is not None
        if any(is_below(place, own) for own in self._own):
            return True
        if not self._own_ids:
            return False
        if place not in self._known:
            self._known[place] = _id_of(place) in self._own_ids
        return self._known[place]


def _id_of(path: bytes, *, follows: bool = False) -> tuple[int, int] | None:
    try:
        st = os.stat(path, follow_symlinks=follows)
    except OSError:
        return None
    return st.st_dev, st.st_ino
