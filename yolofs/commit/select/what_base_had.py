"""Records of what base had under all that stays staged, for the next journal."""

from __future__ import annotations

from collections.abc import Callable, Collection

from yolofs.journal.records import Keep
from yolofs.paths import ROOT, RelPath, split
from yolofs.state.tree import Tree
from yolofs.store.base import Base


def records_of_what_base_had(
    tree: Tree,
    hidden: Collection[RelPath],
    place_of: Callable[[RelPath, RelPath], RelPath | None],
    base: Base,
    *,
    is_sure: bool = True,
) -> list[Keep]:
    """Return what base had at the ``hidden`` paths and below them when ``tree`` took that over.

    ``place_of`` tells where base will have such a path, None for nowhere; it gets the hidden path,
    too.  What comes to another device gets another number, and what was there is not known any
    more; nothing of it is if it is not ``is_sure``.  To be signed.
    """
    records = []
    for path, was in tree.was.items():
        top = _nearest(path, hidden)
        place = place_of(path, top) if top is not None else None
        if place is None:
            continue
        is_known = is_sure and (place == path or base.mount_above(place) == base.mount_above(path))
        records.append(Keep(0, ROOT, source=ROOT, had=place, was=was if is_known else None))
    return records


def _nearest(path: RelPath, hidden: Collection[RelPath]) -> RelPath | None:
    """Return which of the hidden paths a path is, or lies below, None if none."""
    above = path
    while above not in hidden:
        if not above:
            return None
        above = split(above)[0]
    return above
