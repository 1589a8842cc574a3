"""Where the host's commands lie: what is run by its name alone, as a directory of ``PATH`` has
it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from functools import cached_property

from yolofs.paths import RelPath
from yolofs.store.base import Base

_MOST_LINKS = 40


class SearchPath:
    """The directories in which the committing user's shell finds commands, the links to them, and
    the links in them.
    """

    def __init__(self, base: Base, directories: Iterable[bytes], mountpoint: bytes | None = None) -> None:
        """Resolve absolute paths by base; what is not there yet counts, too.  A path in the mount
        stands for base's.
        """
        self._base = base
        self._mountpoint = mountpoint
        self._targets: dict[bytes, bytes | None] = {}
        """What links hold, each path looked at once: all links of a directory go by the same."""
        self._places: list[bytes] = []
        """Where the paths lead, absolute, also out of base."""
        leads, ways = set[bytes](), set[bytes]()
        for directory in directories:
            place = self._resolve(directory, leads, ways)
            if place is not None:
                self._places.append(place)
        self.directories = self._in_base(leads)
        """Relative to base: where the paths lead, and where they would if a link on the way became
        a directory.
        """
        self.ways = self._in_base(ways)
        """What is on the way to one: a link put there leads to other commands."""

    @cached_property
    def linked(self) -> frozenset[RelPath]:
        """Where the links in these directories lead, and all that is on the way there.

        A file there is a command, and a link there leads to another one.
        """
        places = set[bytes]()
        for directory in dict.fromkeys(self._places):
            with contextlib.suppress(OSError), os.scandir(directory) as entries:
                for link in [entry.path for entry in entries if entry.is_symlink()]:
                    self._resolve(link, places, places)
        return self._in_base(places)

    @classmethod
    def of_environment(cls, base: Base, mountpoint: bytes | None) -> SearchPath:
        """Return that of this process; an empty or relative entry is meant from the current
        directory.
        """
        words = os.fsencode(os.environ.get("PATH", os.defpath)).split(b":")
        try:
            current = os.getcwdb()
        except OSError:  # it has been removed
            current = b""
        absolute = (os.path.join(current, word) for word in dict.fromkeys(words))
        return cls(base, [path for path in absolute if path.startswith(b"/")], mountpoint)

    def _resolve(self, path: bytes, leads: set[bytes], ways: set[bytes]) -> bytes | None:
        """Return the target of an absolute path, None if it leads nowhere; add it and its possible
        targets to ``leads``.

        What it comes by is added to ``ways``.  Danger: the mount itself must not be touched here,
        as it may wait for this very process.
        """
        todo = _reversed_names(path)
        place = b""
        links = 0
        while True:
            if self._mountpoint is not None and place == self._mountpoint:
                place = self._base.root.rstrip(b"/")
            if not todo:
                break
            name = todo.pop()
            if name == b"..":
                place = place.rpartition(b"/")[0]
                continue
            above, place = place, place + b"/" + name
            if place == self._mountpoint:
                continue
            ways.add(place)
            target = self._target(place)
            if target is None:
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            leads.add(b"/".join((place, *reversed(todo))))
            place = b"" if target.startswith(b"/") else above
            todo += _reversed_names(target)
        leads.add(place or b"/")
        return place or b"/"

    def _target(self, path: bytes) -> bytes | None:
        """Return what the link at a path holds, None for what is none."""
        if path not in self._targets:
            try:
                self._targets[path] = os.readlink(path)
            except OSError:
                self._targets[path] = None
        return self._targets[path]

    def _in_base(self, paths: Iterable[bytes]) -> frozenset[RelPath]:
        """Return absolute paths relative to base, as far as they lie there."""
        found = set[RelPath]()
        for path in paths:
            with contextlib.suppress(ValueError):  # a name that is too long to be one
                rel = self._base.relative(path)
                if rel is not None:
                    found.add(rel)
        return frozenset(found)


def _reversed_names(path: bytes) -> list[bytes]:
    return [name for name in reversed(path.split(b"/")) if name not in (b"", b".")]
