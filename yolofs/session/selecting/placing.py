"""Where things lie while some changes between two states are taken back and others not.

A *slot* is one name in one directory.  A directory is known by its path in the old state, wherever
it lies; one that is new by the change that made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from yolofs.changes.changes import Change, ChangeKind
from yolofs.paths import ROOT, RelPath, is_below, join, split
from yolofs.session.selecting.wanted_hunks import old_path

Slot: TypeAlias = tuple[RelPath | int, bytes]
"""A directory by its old path, or by the number of the change that made it; and a name."""


class ChangesByPlace:
    """The changes of a comparison by the paths that they are about."""

    def __init__(self, changes: Sequence[Change]) -> None:
        """``changes`` are all between two states, a renamed directory one of them."""
        self.changes = changes
        self.arrived: dict[RelPath, int] = {}
        """What lies at a path of the new state that it was not at before."""
        self.left: dict[RelPath, int] = {}
        """What lay at a path of the old state that it is not at any more."""
        self.by_path: dict[RelPath, set[int]] = {}
        """The changes by all of their paths."""
        for index, change in enumerate(changes):
            for path in change.paths:
                self.by_path.setdefault(path, set()).add(index)
            if change.kind in (ChangeKind.ADDED, ChangeKind.RENAMED, ChangeKind.TYPE):
                self.arrived[change.path] = index
            if change.kind in (ChangeKind.DELETED, ChangeKind.RENAMED, ChangeKind.TYPE):
                self.left[old_path(change)] = index

    # ---- what has to be

    def needs(self) -> dict[int, set[int]]:
        """Return for each change the other changes of places that have to come with it."""
        vacated = {self._old_slot(index): index for index in self.left.values()}
        inside: dict[RelPath, list[int]] = {}
        for path, index in self.left.items():
            if path:
                inside.setdefault(split(path)[0], []).append(index)
        found: dict[int, set[int]] = {}
        for index, change in enumerate(self.changes):
            needed: set[int] = set()
            if self.arrived.get(change.path) == index:
                needed.update(self._needed_to_arrive(index, vacated))
            if self.left.get(old_path(change)) == index and change.kind is not ChangeKind.RENAMED:
                needed.update(inside.get(old_path(change), ()))  # none of which may be in it when it goes
            needed.discard(index)
            if needed:
                found[index] = needed
        return found

    def _needed_to_arrive(self, index: int, vacated: dict[Slot, int]) -> Iterator[int]:
        change = self.changes[index]
        slot = self._new_slot(index)
        if slot in vacated:
            yield vacated[slot]
        if isinstance(slot[0], int):
            yield slot[0]
        if change.kind is not ChangeKind.RENAMED:
            return
        above = change.path
        while above:  # else it would lie in itself
            above = split(above)[0]
            other = self.arrived.get(above)
            is_move = other is not None and self.changes[other].kind is ChangeKind.RENAMED
            if is_move and other is not None and is_below(old_path(self.changes[other]), old_path(change)):
                yield other

    def _new_slot(self, index: int) -> Slot:
        directory, name = split(self.changes[index].path) if self.changes[index].path else (ROOT, b"")
        return self._directory(directory), name

    def _old_slot(self, index: int) -> Slot:
        return split(old_path(self.changes[index])) if old_path(self.changes[index]) else (ROOT, b"")

    def _directory(self, path: RelPath) -> RelPath | int:
        """Return which directory lies at a path of the new state."""
        if not path:
            return ROOT
        index = self.arrived.get(path)
        if index is not None:
            change = self.changes[index]
            return old_path(change) if change.kind is ChangeKind.RENAMED else index
        directory, name = split(path)
        above = self._directory(directory)
        return above if isinstance(above, int) else join(above, name)


class PlacesNow:
    """Where things lie at a moment, while changes are taken back one after the other."""

    def __init__(self, places: ChangesByPlace) -> None:
        self._places = places
        self.back: set[int] = set()
        """The renames that have been taken back."""
        self.parked: dict[int, bytes] = {}
        """Those under way, by the names that they have in the directory that they go to."""

    def path_of_new(self, index: int) -> RelPath:
        """Return the path at which the thing of a change lies that is in the new state."""
        change = self._places.changes[index]
        if index in self.back:
            return self.old_slot(index)
        if index in self.parked:
            return join(self.directory_of_old(index), self.parked[index])
        return self.new(change.path)

    def new(self, path: RelPath) -> RelPath:
        """Return where the thing lies, or would lie, that the new state has at a path."""
        if not path:
            return ROOT
        index = self._places.arrived.get(path)
        if index is not None and (index in self.back or index in self.parked):
            return self.path_of_new(index)
        directory, name = split(path)
        return join(self.new(directory), name)

    def old(self, path: RelPath) -> RelPath:
        """Return where the thing lies, or would lie, that the old state has at a path."""
        if not path:
            return ROOT
        index = self._places.left.get(path)
        if index is not None and self._places.changes[index].kind is ChangeKind.RENAMED:
            return self.path_of_new(index)
        directory, name = split(path)
        return join(self.old(directory), name)

    def directory_of_old(self, index: int) -> RelPath:
        """Return where the directory lies that a thing was in, in the old state."""
        return self.old(split(old_path(self._places.changes[index]))[0])

    def old_slot(self, index: int) -> RelPath:
        """Return the old path of a thing, below the present place of its old directory."""
        path = old_path(self._places.changes[index])
        return join(self.directory_of_old(index), split(path)[1]) if path else ROOT
