"""Which other names (hard links) a file has in the view: a change by one of them is judged by all."""

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


class OtherNames(NamedTuple):
    """The other names of a file."""

    paths: tuple[bytes, ...] = ()
    """Absolute, as base has them."""
    is_complete: bool = True
    """Whether these are all; if not, they may be anywhere."""


def other_names(project: bytes, path: bytes) -> OtherNames:
    """Return the other names of the file at an absolute path, as the gate finds them."""
    with looking(project) as session:
        base, tree = session.base, session.state()
        rel = base.relative(path)
        shown = tree.resolve(rel) if rel is not None else None
        if rel is None or shown is None:
            return OtherNames()
        names = {entry.path() for entry in shown.staged.names} if shown.staged is not None else set()
        home = shown.base if shown.staged is None else shown.staged.home if shown.staged.links else None
        is_complete = True
        if home is not None and _is_linked(base, home):
            found, is_complete = find_names_at(base, home, limit=NAMES_LOOKED_AT)
            places = BasePlaces(tree)
            names.update(found, (place for one in found if (place := places.path_of(one)) is not None))
        names.discard(rel)
        return OtherNames(tuple(map(base.path, sorted(names))), is_complete)


def _is_linked(base: Base, path: RelPath) -> bool:
    try:
        st: os.stat_result = base.lstat(path)
    except OSError:
        return False
    return st.st_nlink > 1 and not stat.S_ISDIR(st.st_mode)
