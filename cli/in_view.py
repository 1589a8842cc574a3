"""What the view has at a path, as far as rules mind: its type, and its other names (hard links)."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from yolofs.base import Base
from yolofs.cli.project import looking
from yolofs.gate import NAMES_LOOKED_AT
from yolofs.link_names import find_names_at
from yolofs.overlay.whereabouts import BasePlaces
from yolofs.paths import RelPath
from yolofs.store import Store
from yolofs.tree import Shown


class InView(NamedTuple):
    """What there is at a path."""

    kind: int = stat.S_IFDIR
    """Its type, as ``stat.S_IFMT``; a directory where there is nothing, as one may be made there."""
    names: tuple[bytes, ...] = ()
    """The other names of the file, absolute, as base has them: a change by one of them is judged by all."""
    has_all_names: bool = True
    """Whether these are all; if not, they may be anywhere."""


def look_at(project: bytes, path: bytes) -> InView:
    """Return what the view has at an absolute path, with the names that the gate finds."""
    with looking(project) as session:
        base, tree = session.base, session.state()
        rel = base.relative(path)
        shown = tree.resolve(rel) if rel is not None else None
        st = _stat(base, session.store, shown) if shown is not None else None
        if rel is None or shown is None or st is None:
            return InView()
        kind = stat.S_IFMT(st.st_mode)
        if kind == stat.S_IFDIR:
            return InView(kind)
        names = {entry.path() for entry in shown.staged.names} if shown.staged is not None else set()
        home = shown.base if shown.staged is None else shown.staged.home if shown.staged.links else None
        is_complete = True
        if home is not None and _is_linked(base, home):
            found, is_complete = find_names_at(base, home, limit=NAMES_LOOKED_AT)
            places = BasePlaces(tree)
            names.update(found, (place for one in found if (place := places.path_of(one)) is not None))
        names.discard(rel)
        return InView(kind, tuple(map(base.path, sorted(names))), is_complete)


def _stat(base: Base, store: Store, shown: Shown) -> os.stat_result | None:
    try:
        if shown.staged is not None:
            return os.lstat(store.path(shown.staged.ino))
        return base.lstat(shown.base) if shown.base is not None else None
    except OSError:
        return None


def _is_linked(base: Base, path: RelPath) -> bool:
    try:
        return base.lstat(path).st_nlink > 1
    except OSError:
        return False
