"""What commits and undos have made anew of base, on another disk or as it could not be brought back
whole: it is what earlier commits know by other inode numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from yolofs.commit.apply.copied import Copied
from yolofs.commit.plan.plan import MakeDirectory
from yolofs.commit.undo.applied import Applied
from yolofs.system.disks import OnDisk


class Anew(NamedTuple):
    """What one commit has made anew."""

    by: Applied
    copied: Sequence[Copied] = ()
    """What it has copied to another device or mount."""
    directories: Mapping[int, OnDisk] = {}
    """Of an undo: which store inode of its plan became a directory for which one that it keeps."""

    def pairs(self) -> Iterator[tuple[OnDisk, OnDisk]]:
        """Yield what was there and what stands for it now."""
        for one in self.copied:
            yield self.by.on_disk(one.was), self.by.on_disk(one.now)
        for index, step in enumerate(self.by.plan.steps) if self.directories else ():
            came = self.by.came(index) if isinstance(step, MakeDirectory) and step.ino in self.directories else None
            if isinstance(step, MakeDirectory) and came is not None:
                yield self.directories[step.ino], came


class MadeAnew:
    """What stands for what is gone."""

    def __init__(self, commits: Iterable[Anew] = ()) -> None:
        self._next: dict[int, list[tuple[OnDisk, OnDisk, Applied]]] = {}
        """What was, what stands for it, and which commit made that: by the inode number of what
        was.
        """
        self._last: dict[int, list[tuple[OnDisk, OnDisk]]] = {}
        """What stands for something, and that: by the inode number of the former."""
        for one in commits:
            for was, now in one.pairs():
                self._next.setdefault(was.inode, []).append((was, now, one.by))
                self._last.setdefault(now.inode, []).append((now, was))

    def stands_for(self, was: OnDisk, now: OnDisk, path: bytes, st: os.stat_result) -> bool:
        """Tell whether what is at an absolute path was made for something, or for what stood for
        that.
        """
        return any(one.may_be(now) and by.is_older(path, st) for one, by in self._later(was))

    def known_by(self, was: OnDisk) -> list[OnDisk]:
        """Return what something is known by now: itself, and all that was made for it since."""
        return [was, *(one for one, _ in self._later(was))]

    def _later(self, was: OnDisk) -> Iterator[tuple[OnDisk, Applied]]:
        todo, seen = [was], {was}
        while todo:
            one = todo.pop()
            for old, new, by in self._next.get(one.inode, ()):
                if old.may_be(one):
                    yield new, by
                    if new not in seen:
                        seen.add(new)
                        todo.append(new)

    def was_known_by(self, now: OnDisk) -> list[OnDisk]:
        """Return what something was known by: itself, and all that it was made for."""
        found = [now]
        for one in found:
            found += [old for new, old in self._last.get(one.inode, ()) if new.may_be(one) and old not in found]
        return found


NOTHING_ANEW = MadeAnew()
