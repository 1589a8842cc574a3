"""What commits and undos have made anew of base: on another disk, or because it could not be
brought back whole.  Earlier commits know it by other inode numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from yolofs.commit.apply.copy_log import Copied
from yolofs.commit.plan.plan import MakeDirectory
from yolofs.commit.undo.applied import Applied
from yolofs.system.disks import OnDisk


class ObjectByDisk(NamedTuple):
    """Something that is, or was, on a disk."""

    file: OnDisk
    birth_ns: int = 0
    """0 if nobody knows, so that it may be any."""

    def may_be(self, other: ObjectByDisk) -> bool:
        """Tell whether it is the same thing, as far as is known."""
        return self.file.may_be(other.file) and (
            0 in (self.birth_ns, other.birth_ns) or self.birth_ns == other.birth_ns
        )


class AnewOfCommit(NamedTuple):
    """What one commit has made anew."""

    by: Applied
    copied: Sequence[Copied] = ()
    """What it has copied to another device or mount."""
    directories: Mapping[int, OnDisk] = {}
    """Of an undo: by store inode of its plan, the kept directory in whose place it made another
    one.
    """

    def pairs(self) -> Iterator[tuple[ObjectByDisk, ObjectByDisk]]:
        """Yield what was there and what stands for it now."""
        for one in self.copied:
            yield (
                ObjectByDisk(self.by.on_disk(one.was.file), one.was.birth_ns),
                ObjectByDisk(self.by.on_disk(one.now.file), one.now.birth_ns),
            )
        for index, step in enumerate(self.by.plan.steps) if self.directories else ():
            came = self.by.came(index) if isinstance(step, MakeDirectory) and step.ino in self.directories else None
            if isinstance(step, MakeDirectory) and came is not None:
                yield ObjectByDisk(self.directories[step.ino]), ObjectByDisk(came)


class _Made(NamedTuple):
    was: ObjectByDisk
    now: ObjectByDisk
    by: Applied


class MadeAnew:
    """What stands for what is gone."""

    def __init__(self, commits: Iterable[AnewOfCommit] = ()) -> None:
        self._of: dict[int, list[_Made]] = {}
        """By the inode number of what was."""
        self._for: dict[int, list[_Made]] = {}
        """By the inode number of what stands for it."""
        for one in commits:
            for was, now in one.pairs():
                made = _Made(was, now, one.by)
                self._of.setdefault(was.file.inode, []).append(made)
                self._for.setdefault(now.file.inode, []).append(made)

    def stands_for(self, was: ObjectByDisk, now: ObjectByDisk, path: bytes, st: os.stat_result) -> bool:
        """Tell whether the thing at an absolute path was made for another one, or for a stand-in of
        that.
        """
        return any(made.now.may_be(now) and made.by.is_older(path, st) for made in self._since(was))

    def known_by(self, was: ObjectByDisk) -> list[OnDisk]:
        """Return what something is known by: itself, and all that was made for it since."""
        return list(dict.fromkeys((was.file, *(made.now.file for made in self._since(was)))))

    def was_known_by(self, now: ObjectByDisk) -> list[OnDisk]:
        """Return what something was known by: itself, and all that it was made for."""
        found, todo = {now.file: None}, [(now, 0)]
        while todo:
            thing, before = todo.pop()
            for made in self._for.get(thing.file.inode, ()):
                is_before = not before or made.by.number <= before  # the same one may have moved it, and then copied it
                if made.now.may_be(thing) and is_before and made.was.file not in found:
                    found[made.was.file] = None
                    todo.append((made.was, made.by.number))
        return list(found)

    def _since(self, was: ObjectByDisk) -> Iterator[_Made]:
        """Yield what was made for something, and for that by the same and later commits."""
        todo, found = [(was, 0)], set[_Made]()
        while todo:
            thing, since = todo.pop()
            for made in self._of.get(thing.file.inode, ()):
                if made.was.may_be(thing) and made.by.number >= since and made not in found:
                    found.add(made)
                    yield made
                    todo.append((made.now, made.by.number))


NOTHING_ANEW = MadeAnew()
