"""Where a tree shows a file that is known by its key."""

from __future__ import annotations

from yolofs.paths import RelPath, join
from yolofs.state.tree import Entry, Shown, Tree


class PathsByKey:
    """Finds files by their keys (:attr:`yolofs.state.tree.Staged.key`); made by one walk over the
    entries of ``tree``.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._by_key: dict[bytes | int, Entry] = {}
        self._by_source: dict[RelPath, Entry] = {tree.root.source or RelPath(b""): tree.root}
        for _, entry in tree.walk():
            key = entry.staged.key if entry.staged is not None else entry.base
            if key is not None:
                self._by_key[key] = entry
            if entry.source is not None:
                self._by_source[entry.source] = entry

    def path_of(self, key: bytes | int | None) -> RelPath | None:
        """Return a path at which the file is shown, None if there is none.  Base is not looked
        at.
        """
        entry = self._by_key.get(key) if key is not None else None
        if entry is not None:
            return entry.path()
        return self._path_of_base(key) if isinstance(key, bytes) else None

    def _path_of_base(self, base: bytes) -> RelPath | None:
        """Return the path that shows a base path without an entry of its own: below the nearest
        that has one.
        """
        above, rest = base, b""
        while above not in self._by_source and above:
            above, _, name = above.rpartition(b"/")
            rest = join(name, rest) if rest else name
        entry = self._by_source.get(RelPath(above))
        if entry is None:
            return None
        path = join(entry.path(), rest)
        shown = self._tree.resolve(path)
        return path if shown is not None and shown.entry is None and shown.base == base else None


class BasePlaces:
    """Finds the paths at which a tree shows base paths; walks over its entries once something is
    not at its own.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._paths_by_key: PathsByKey | None = None

    def path_of(self, base: RelPath) -> RelPath | None:
        """Return where a base path is shown (or would be, if it is gone), None if nowhere."""
        if self._shows(self._tree.resolve(base), base):
            return base
        if self._paths_by_key is None:
            self._paths_by_key = PathsByKey(self._tree)
        path = self._paths_by_key.path_of(base)
        return path if path is not None and self._shows(self._tree.resolve(path), base) else None

    @staticmethod
    def _shows(shown: Shown | None, base: RelPath) -> bool:
        return shown is not None and shown.base == base
