"""What rules need to know of a path in the view: its type, and its other names (hard links)."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from yolofs.access.linked_names import NAMES_LOOKED_AT
from yolofs.cli.project.project import looking, session_directory
from yolofs.overlay.paths_by_key import BasePlaces
from yolofs.paths import RelPath, is_in
from yolofs.session.opening.root import known_root
from yolofs.state.hard_links import staged_for
from yolofs.state.link_names import find_names_at
from yolofs.state.tree import Shown
from yolofs.state.view_symlinks import StateLinks
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.symlinks import follow, follow_parent


class InView(NamedTuple):
    """What there is at a path."""

    path: bytes
    """Absolute, without the links on it."""
    link: bytes | None = None
    """Where it leads, absolute, if it is a symbolic link."""
    kind: int = stat.S_IFDIR
    """Its type, as ``stat.S_IFMT``; a directory where there is nothing, as one may be made
    there.
    """
    staged_names: tuple[bytes, ...] = ()
    """The other names of the file, absolute, that the view has noted."""
    names: tuple[bytes, ...] = ()
    """Those that base has besides, absolute: a change by one of all these is judged by all."""
    more_names_of: bytes | None = None
    """Where base has the file, absolute, if it has more names, which may be anywhere; None if these
    are all.
    """


def look_at_path(project: bytes, path: bytes, as_typed: bytes, *, follow_last: bool) -> InView:
    """Return what the view has at an absolute path, with the names that the gate finds.

    ``as_typed`` is the path with its links, ``path`` without those that base has on the way to its
    last component.  With ``follow_last`` a link there is followed.  For a path in base, the journal
    is replayed from its last checkpoint on: half a million records take some five seconds.
    """
    root = known_root(session_directory(project))
    if root is not None and not is_in(path, os.path.realpath(root)):
        return InView(path)
    with looking(project) as session:
        base, tree = session.base, session.state()
        target_of = StateLinks(tree, base, session.store).target
        path = (follow if follow_last else follow_parent)(as_typed, target_of).place
        rel = base.relative(path)
        shown = tree.resolve(rel) if rel is not None else None
        st = _stat(base, session.store, shown) if shown is not None else None
        if rel is None or shown is None or st is None:
            return InView(path)
        kind = stat.S_IFMT(st.st_mode)
        if kind == stat.S_IFDIR:
            return InView(path, kind=kind)
        link = follow(path, target_of).place if kind == stat.S_IFLNK else None
        staged = shown.staged if shown.staged is not None else staged_for(tree, base, st)
        noted = {entry.path() for entry in staged.names} if staged is not None else set()
        home = shown.base if staged is None else staged.home if staged.links else None
        found: set[RelPath] = set()
        is_complete = True
        if home is not None and _is_linked(base, home):
            in_base, is_complete = find_names_at(base, home, limit=NAMES_LOOKED_AT)
            places = BasePlaces(tree)
            found.update(in_base, (place for one in in_base if (place := places.path_of(one)) is not None))
        more_names_of = base.path(home) if home is not None and not is_complete else None
        names = _paths(base, noted - {rel}), _paths(base, found - noted - {rel})
        return InView(path, link, kind, *names, more_names_of)


def _paths(base: Base, names: set[RelPath]) -> tuple[bytes, ...]:
    return tuple(map(base.path, sorted(names)))


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
