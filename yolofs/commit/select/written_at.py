"""Finds the record that made the file at each path, whatever its name then: a move takes along the
records of everything below it.
"""

from __future__ import annotations

from yolofs.journal.records import ChangeRecord, Rename
from yolofs.paths import RelPath, split


class _Place:
    """A path."""

    __slots__ = ("below", "record")

    def __init__(self) -> None:
        self.record: ChangeRecord | None = None
        self.below: dict[bytes, _Place] = {}


class WrittenAt:
    """For each path, the record that made the file there, whatever its name was then."""

    def __init__(self) -> None:
        """Know of none."""
        self._root = _Place()

    def get(self, path: RelPath) -> ChangeRecord | None:
        """Return the record that made what is at a path, None if none is known."""
        place = self._find(path)
        return place.record if place is not None else None

    def put(self, path: RelPath, record: ChangeRecord | None) -> None:
        """Note what made the file at a path; None: it is not known any more."""
        place = self._find(path) if record is None else self._at(path)
        if place is not None:
            place.record = record

    def move(self, record: Rename) -> None:
        """Move what is known of a path and of all below it, as a rename does."""
        moved, other = self._take(record.src), self._take(record.dst)
        self._give(record.dst, moved)
        if record.exchange:
            self._give(record.src, other)

    def _find(self, path: RelPath) -> _Place | None:
        place: _Place | None = self._root
        for name in path.split(b"/") if path else ():
            place = place.below.get(name) if place is not None else None
        return place

    def _at(self, path: RelPath) -> _Place:
        place = self._root
        for name in path.split(b"/") if path else ():
            place = place.below.setdefault(name, _Place())
        return place

    def _take(self, path: RelPath) -> _Place | None:
        directory, name = split(path)
        above = self._find(directory)
        return above.below.pop(name, None) if above is not None else None

    def _give(self, path: RelPath, place: _Place | None) -> None:
        above, name = split(path)
        if place is not None:
            self._at(above).below[name] = place
