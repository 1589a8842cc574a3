"""Refuses to change one name of base twice in a commit, as a bind mount shows its directory at two
places.

The view has two files there, base has one.  Which of the two is to be in base in the end only the
user knows, so they are committed one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.errors import YolofsError
from yolofs.paths import ROOT, RelPath, display, split
from yolofs.store.base import Base


def check_once(names: Sequence[OverriddenName], base: Base) -> None:
    """Check that no name of base is changed at two places, and nothing at one place if its
    directory moves or goes at another.  ``names`` are those of the tree.

    Raises:
        YolofsError: one is.
        OSError: base cannot be read.
    """
    if base.mounts:
        _DoubleNames(base).check(names)


class _DoubleNames:
    def __init__(self, base: Base) -> None:
        self._base = base
        self._numbers: dict[RelPath, int | None] = {}
        """Of directories of base, by path."""

    def check(self, names: Sequence[OverriddenName]) -> None:
        changed: dict[tuple[int, bytes], RelPath] = {}
        leaving: dict[int, RelPath] = {}
        for name in names:
            if name.natural_path is None or name.natural_path == ROOT or name.is_passing:
                continue
            above, last = split(name.natural_path)
            number = self._number(above)
            if number is None:
                continue
            self._refuse(changed.setdefault((number, last), name.natural_path), name.natural_path)
            if name.natural_st is not None and name.entry.source != name.natural_path:
                leaving[self._base.number(name.natural_st)] = name.natural_path
        for path in changed.values():
            self._check_above(path, leaving)

    def _check_above(self, path: RelPath, leaving: dict[int, RelPath]) -> None:
        """Check that no directory above a path moves or goes at another place."""
        above = split(path)[0]
        while above:
            number = self._number(above)
            if number is not None and number in leaving:
                other = leaving[number]
                if other != above:
                    self._refuse(other, path)
            above = split(above)[0]

    def _refuse(self, one: RelPath, other: RelPath) -> None:
        if one == other:
            return
        first, second = (display(self._base.path(path)) for path in (one, other))
        raise YolofsError(
            f"{first} and {second} lie in the same directory, which a bind mount shows at two places: what is staged"
            " at both cannot be committed together",
            hint="commit one, and then the other, which replaces what the first has made: yolofs commit PATH...",
        )

    def _number(self, directory: RelPath) -> int | None:
        if directory not in self._numbers:
            st = self._base.look(directory)
            self._numbers[directory] = self._base.number(st) if st is not None else None
        return self._numbers[directory]
