"""The present places of base's files during a commit: some have moved, some are parked.

By these a view stays as it was, with its old base paths, while the commit can neither go on nor be
taken back.  Only the inode numbers at the places of things tell which steps a failed commit has
done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from yolofs.commit.apply.places import COPIED, hidden_prefix
from yolofs.commit.plan.plan import Park, Place, Plan
from yolofs.paths import RelPath, split


class Displaced:
    """Translates paths of base as it was before a commit; for
    :attr:`yolofs.store.base.Base.elsewhere`.
    """

    def __init__(self, plan: Plan, parking: bytes) -> None:
        """Look where everything is; ``parking`` is the commit's own directory."""
        self._prefix = hidden_prefix(parking)
        parking = os.path.realpath(parking)
        places = {step.number: step for step in plan.steps if isinstance(step, Place)}
        self._moved: dict[bytes, bytes] = {}
        """Absolute paths, by paths of base before the commit."""
        for step in plan.steps:
            if isinstance(step, Park):
                spots = _spots(step, places[step.number], plan.root, parking, self._prefix)
                where = next((spot for spot in spots if _inode(spot) == step.inode), None)
                if where is None and _inode(_at(plan.root, step.path)) != step.inode:
                    where = _at(plan.root, places[step.number].path)  # a copy on another device
                if where is not None:
                    self._moved[step.path] = where

    def path(self, rel: bytes) -> bytes | None:
        """Return the absolute path of what base had at ``rel``; None if it is there still."""
        if not self._moved:
            return None
        rest: list[bytes] = []
        above = rel
        while above:
            if above in self._moved:
                return os.path.join(self._moved[above], *reversed(rest))
            above, name = split(above)
            rest.append(name)
        return None

    def hides(self, name: bytes) -> bool:
        """Tell whether a name in base is one that the commit works with."""
        return name.startswith(self._prefix)


def _spots(step: Park, place: Place, root: bytes, parking: bytes, prefix: bytes) -> Iterator[bytes]:
    """Yield the places where a parked thing may lie, the likeliest first."""
    yield os.path.join(parking, b"parked", b"%d" % step.number)
    if place.path != step.path:
        yield _at(root, place.path)
    above = step.path
    while above:
        above = split(above)[0]
        aside = os.path.join(_at(root, above), b"%b%d" % (prefix, step.number))
        yield aside
        yield aside + COPIED


def _at(root: bytes, path: RelPath) -> bytes:
    return os.path.join(root, path) if path else root


def _inode(path: bytes) -> int | None:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None
