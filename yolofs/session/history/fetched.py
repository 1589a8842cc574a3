"""Where the things are now that commits keep of base: an undo may have fetched some of them."""

from __future__ import annotations

import os

from yolofs.commit.plan.plan import Fetch, Place
from yolofs.commit.undo.applied import Applied
from yolofs.paths import ROOT, RelPath, is_below, join, split
from yolofs.store.base_stand_in import KnownBase


class Fetched:
    """Where the things are now that commits keep: an undo may have brought some back since."""

    def __init__(self, commits: bytes) -> None:
        """``commits``: the directory of all commits."""
        self._commits = commits
        self._back: dict[tuple[int, int], list[tuple[RelPath, KnownBase, RelPath]]] = {}

    def add_commit(self, applied: Applied, after: KnownBase) -> None:
        """Take in what a commit fetched; ``after`` is base after it."""
        places = {step.number: step.path for step in applied.plan.steps if isinstance(step, Place)}
        for step in applied.plan.steps:
            if isinstance(step, Fetch):
                found = self._back.setdefault((step.commit, step.slot), [])
                found.append((step.inside, after, places[step.number]))

    def find(self, commit: int, slot: int, inside: RelPath = ROOT) -> tuple[KnownBase, RelPath] | None:
        """Return the base that has something a commit kept, and its path there; None if the commit
        still keeps it.
        """
        for top, base, place in self._back.get((commit, slot), ()):
            if is_below(inside, top):
                rest = inside[len(top) :].lstrip(b"/")
                return base, join(place, rest) if rest else place
        return None

    def names(self, commit: int, slot: int, inside: RelPath) -> set[bytes]:
        """Return the names of what was taken out of a directory that a commit keeps."""
        taken = (split(top) for top, _, _ in self._back.get((commit, slot), ()) if top)
        return {name for above, name in taken if above == inside}

    def path(self, commit: int, slot: int, inside: RelPath = ROOT) -> bytes:
        """Return the absolute path of what a commit keeps, or of something in it."""
        back = self.find(commit, slot, inside)
        if back is not None:
            return back[0].path(back[1])
        kept = os.path.join(self._commits, b"%d/replaced/%d" % (commit, slot))
        return os.path.join(kept, inside) if inside else kept
