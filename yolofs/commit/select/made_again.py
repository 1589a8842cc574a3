"""What else is staged in directories that base has no more, and that are made again.

Such a directory no longer leads to base.  What stays in it has to lie in a directory of the view;
what is said only of base's content there has no meaning any more.
"""

from __future__ import annotations

from collections.abc import Collection

from yolofs.paths import RelPath
from yolofs.state.tree import Entry, Tree, natural_path


def directories_of_others(
    tree: Tree, made_again: Collection[RelPath], dropped: Collection[RelPath]
) -> tuple[RelPath, ...]:
    """Return the further directories that base lost with those that are ``made_again``, and in
    which the view shows something else, parents first.

    What is ``dropped`` needs none.
    """
    found: set[RelPath] = set()
    for path, entry in tree.walk() if made_again else ():
        if entry.is_tombstone or _is_passed(entry) or path in dropped:
            continue
        found.update(_between(entry, made_again) or ())
    return tuple(sorted(found))


def is_left_over(entry: Entry, made_again: Collection[RelPath]) -> bool:
    """Tell whether an entry says only how base's content of a directory that is made again was
    changed, at a place that is not.
    """
    return (entry.is_tombstone or _is_passed(entry)) and _between(entry, made_again) is not None


def _between(entry: Entry, made_again: Collection[RelPath]) -> list[RelPath] | None:
    """Return the directories between an entry and one that is made again, if all these come from
    base.
    """
    found: list[RelPath] = []
    above = entry.parent
    while above is not None and above.parent is not None:
        if (path := above.path()) in made_again:
            return found
        if not _is_passed(above):
            return None
        found.append(path)
        above = above.parent
    return None


def _is_passed(entry: Entry) -> bool:
    """Tell whether an entry shows what base has in its place, and leads only to others below it."""
    return entry.staged is None and entry.base is not None and entry.base == natural_path(entry)
