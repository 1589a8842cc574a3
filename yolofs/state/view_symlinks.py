"""The symbolic links of a state, as the view has them."""

from __future__ import annotations

import os
from collections.abc import Callable

from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.base_opening import read_link
from yolofs.store.store import Store


class StateLinks:
    """What links hold in a state, by absolute paths."""

    def __init__(self, tree: Tree, base: Base, store: Store) -> None:
        self._tree = tree
        self._base = base
        self._store = store

    def target(self, path: bytes) -> bytes | None:
        """Return what the link holds that the view has at a path, None if there is none; outside
        base, the host's.
        """
        rel = self._base.relative(path)
        shown = self._tree.resolve(rel) if rel is not None else None
        if shown is not None and shown.staged is not None:
            return _read(self._store.path(shown.staged.ino))
        if shown is not None and shown.base is not None:
            return _read(self._base.path(shown.base), read_link)
        return _read(path) if rel is None else None

    def target_if_base_has_none(self, path: bytes) -> bytes | None:
        """Return :meth:`target`, but of what base has where it has something.

        A path that a user typed may be of what the view has deleted.
        """
        return _read(path) if os.path.lexists(path) else self.target(path)


def _read(path: bytes, read: Callable[[bytes], bytes] = os.readlink) -> bytes | None:
    try:
        return read(path)
    except OSError:  # it is no link
        return None
