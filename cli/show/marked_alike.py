"""New directories of which most files carry the very same mark, as what `uv tool install` makes:
these need no line each, which would push what else changed off the screen.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from typing import TYPE_CHECKING

from yolofs.changes.changes import Change, ChangeKind
from yolofs.paths import RelPath, split

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Mark, Marks

_MOST_APART = 8
"""So many files of one mark have a line each, wherever they lie."""


class MarkedAlike:
    """Tells which marked changes are told in the line of a new directory."""

    def __init__(self, changes: Sequence[Change], marks: Marks, is_kept: Callable[[Change], bool]) -> None:
        """``is_kept``: what has a line of its own in any case."""
        self._places: dict[RelPath, RelPath] = {}
        """Of each such change the directory."""
        found = _alike(changes, marks, is_kept)
        if len(found) > _MOST_APART:
            gone = {change.path for change in changes if change.old is not None}
            new = {
                change.path
                for change in changes
                if _is_new(change, is_directory=True) and not (change.path in marks or is_kept(change))
            }
            self._arrange(changes, {path: mark for path, mark in found.items() if path not in gone}, new - gone)
        self.directories: Collection[RelPath] = frozenset(self._places.values())

    def directory_of(self, change: Change) -> RelPath | None:
        """Return the directory in whose line a marked change is told, None if it has its own."""
        return self._places.get(change.path) if change.new is not None else None

    def _arrange(self, changes: Sequence[Change], alike: dict[RelPath, Mark], new: Container[RelPath]) -> None:
        totals = Counter(
            above for change in changes if _is_new(change, is_directory=False) for above in _above(change.path, new)
        )
        counts = Counter((above, mark) for path, mark in alike.items() for above in _above(path, new))
        own = {(split(path)[0], mark) for path, mark in alike.items()}
        good = {
            place
            for place, count in counts.items()
            if place in own and count > _MOST_APART and 2 * count > totals[place[0]]
        }
        for path, mark in alike.items():
            places = [above for above in _above(path, new) if (above, mark) in good]
            if places:
                self._places[path] = places[-1]


def _alike(changes: Sequence[Change], marks: Marks, is_kept: Callable[[Change], bool]) -> dict[RelPath, Mark]:
    """Return the new files whose one mark does not have to be judged by their names."""
    if len(marks) <= _MOST_APART:
        return {}
    found: dict[RelPath, Mark] = {}
    for change in changes:
        mark, *others = marks.get(change.path) or (None,)
        if mark is None or others or mark.is_of_names or not _is_new(change, is_directory=False):
            continue
        if not (change.unseen_names or is_kept(change)):
            found[change.path] = mark
    return found


def _is_new(change: Change, *, is_directory: bool) -> bool:
    new = change.new
    return change.kind is ChangeKind.ADDED and new is not None and (new.type == stat.S_IFDIR) is is_directory


def _above(path: RelPath, new: Container[RelPath]) -> Iterator[RelPath]:
    """Yield the new directories that a path lies in, the innermost first."""
    while (path := split(path)[0]) in new:
        yield path
