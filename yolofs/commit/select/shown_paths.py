"""Where the view shows what base has at a path, though directories above it may have moved."""

from __future__ import annotations

from functools import cached_property

from yolofs.paths import ROOT, RelPath, join, split
from yolofs.state.tree import Entry, Tree


class ShownPaths:
    """The paths of a tree's view at which things of base show."""

    def __init__(self, tree: Tree) -> None:
        """Look at nothing yet; the tree stays as it is."""
        self._tree = tree

    def path(self, rel: RelPath) -> RelPath | None:
        """Return where the view shows what base has at a path, by no name of its own if it is
        staged; None if it does not.
        """
        names: list[bytes] = []
        while rel not in self._holders:
            rel, name = split(rel)
            names.append(name)
        holder: Entry | None = self._holders[rel]
        path = self._holders[rel].path()
        for name in reversed(names):
            if holder is not None and holder.children and name in holder.children:
                return None
            holder, path = None, join(path, name)
        return path

    @cached_property
    def _holders(self) -> dict[RelPath, Entry]:
        """The entries that show something of base, by its path there."""
        found = {entry.base: entry for _, entry in self._tree.walk() if entry.base is not None}
        found |= {
            staged.origin: staged.names[0]
            for staged in self._tree.staged.values()
            if staged.origin is not None and staged.names
        }
        found[ROOT] = self._tree.root
        return found
