"""Which hunks of a comparison the result shall have, one change after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from yolofs.changes.changes import Change, ChangeKind
from yolofs.changes.hunks import PLACES, FileHunks, Hunk
from yolofs.changes.picks import LineNumbers, Picks, whole_if_all
from yolofs.paths import RelPath

_OF_PLACES = frozenset({ChangeKind.ADDED, ChangeKind.DELETED, ChangeKind.RENAMED, ChangeKind.TYPE})


def has_place(change: Change) -> bool:
    """Tell whether a change moves, adds or removes a name."""
    return change.kind in _OF_PLACES


def old_path(change: Change) -> RelPath:
    """Return the path in the old state; of what was added, in the new one."""
    return change.old_path if change.old_path is not None else change.path


class WantedHunks:
    """The hunks that are to be there: of most changes all or none, of some just those that were
    picked or left.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        read: Callable[[Change], FileHunks],
        found: dict[int, FileHunks],
        picks: Picks,
        *,
        are_dropped: bool,
    ) -> None:
        """``found`` are the hunks of those changes, by their places in the list, of which any is
        picked.

        What is picked is to be there, or, if ``are_dropped``, everything else.
        """
        self.changes = changes
        self._read = read
        self._files = found
        self._default = are_dropped
        self.picks: dict[int, dict[str, LineNumbers | None]] = {}
        """Of each change in ``found`` what is to be there."""
        for index, file in found.items():
            kept: dict[str, LineNumbers | None] = {}
            for hunk in file.hunks:
                lines = whole_if_all(hunk, picks[hunk.id]) if hunk.id in picks else frozenset()
                if are_dropped:
                    lines = _others(hunk, lines)
                if lines is None or lines:
                    kept[hunk.id] = lines
            self.picks[index] = kept

    def file(self, index: int) -> FileHunks:
        """Return the hunks of a change; blocks while they are read for the first time."""
        if index not in self._files:
            self._files[index] = self._read(self.changes[index])
        return self._files[index]

    def of(self, index: int) -> dict[str, LineNumbers | None]:
        """Return which hunks of a change are to be there, in a form that may be changed."""
        if index not in self.picks:
            self.picks[index] = {hunk.id: None for hunk in self.file(index).hunks} if self._default else {}
        return self.picks[index]

    def is_whole(self, index: int) -> bool:
        """Tell whether all of a change is to be there."""
        if index not in self.picks:
            return self._default
        kept = self.picks[index]
        return all(hunk.id in kept and kept[hunk.id] is None for hunk in self.file(index).hunks)

    def is_none(self, index: int) -> bool:
        """Tell whether nothing of a change is to be there."""
        return not self.picks[index] if index in self.picks else not self._default

    def has_place(self, index: int) -> bool:
        """Tell whether the part of a change about its place is kept; false if it has none."""
        if not has_place(self.changes[index]):
            return False
        if index not in self.picks:
            return self._default
        return self.place(index).id in self.picks[index]

    def place(self, index: int) -> Hunk:
        """Return the hunk of a change that is about its place."""
        return next(hunk for hunk in self.file(index).hunks if hunk.kind in PLACES)

    def indices(self) -> Iterator[int]:
        """Yield all changes that are not wholly there."""
        return (index for index in range(len(self.changes)) if not self.is_whole(index))


def _others(hunk: Hunk, lines: LineNumbers | None) -> LineNumbers | None:
    if lines is None:
        return frozenset()
    if not lines:
        return None
    return frozenset(range(1, hunk.line_count + 1)) - lines
