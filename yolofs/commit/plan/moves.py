"""Where things of base are before a commit and after it: what is parked under one path is placed at
another.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from yolofs.commit.plan.plan import Create, Duplicate, Link, MakeDirectory, Park, Place, Plan, Remove
from yolofs.paths import RelPath, join, split


class Moves:
    """The moves of one plan."""

    def __init__(self, plan: Plan) -> None:
        parked = {step.number: step.path for step in plan.of(Park)}
        self._old: dict[RelPath, RelPath | None] = {}
        """By new path: where it was; None for what is made."""
        self._new: dict[RelPath, RelPath | None] = {}
        """By old path: where it comes to be; None for what goes."""
        for step in plan.of(Remove):
            self._new[step.path] = None
        for made in (plan.of(MakeDirectory), plan.of(Create), plan.of(Duplicate), plan.of(Link)):
            self._old.update((step.path, None) for step in made)
        for place in plan.of(Place):
            old = parked.get(place.number)  # None for what an undo has fetched
            self._old[place.path] = old
            if old is not None:
                self._new[old] = place.path

    def before(self, path: RelPath) -> RelPath | None:
        """Return where base has, before the commit, what the plan names by its new ``path``; None
        if it is made.
        """
        return _translate(path, self._old)

    def after(self, path: RelPath) -> RelPath | None:
        """Return where base has, after the commit, what was at ``path``; None if it goes."""
        return _translate(path, self._new)

    def ground(self, directory: RelPath) -> RelPath:
        """From a ``directory`` of the plan upwards, return the first that neither moves nor lies in
        one that does.
        """
        return _above_all(directory, self._old)

    def stays(self, directory: RelPath) -> RelPath:
        """From a ``directory`` of base before the commit upwards, return the first that neither
        moves, goes, nor lies in one that does.
        """
        return _above_all(directory, self._new)

    def goes(self, path: RelPath) -> bool:
        """Tell whether the very thing at an old path is moved or removed by a step of its own."""
        return path in self._new


def topmost(directory: RelPath, moved: Container[RelPath]) -> RelPath | None:
    """Return the topmost moved directory, of this one and those above it; None if none of them is
    moved.
    """
    found, above = None, directory
    while above:
        if above in moved:
            found = above
        above = split(above)[0]
    return found


def _above_all(directory: RelPath, moved: Container[RelPath]) -> RelPath:
    """Return the directory that the :func:`topmost` moved one lies in; itself if none is moved."""
    found = topmost(directory, moved)
    return split(found)[0] if found is not None else directory


def _translate(path: RelPath, moves: Mapping[RelPath, RelPath | None]) -> RelPath | None:
    rest: list[bytes] = []
    above = path
    while above:
        if above in moves:
            found = moves[above]
            for name in reversed(rest):
                found = join(found, name) if found is not None else None
            return found
        above, name = split(above)
        rest.append(name)
    return path
