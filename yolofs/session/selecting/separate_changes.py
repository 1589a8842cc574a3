"""Finds changes that have nothing to do with any other.  They can be dropped without a look at the
rest, however many changes there are.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence

from yolofs.changes.changes import Change, compare, compare_two
from yolofs.changes.state_reader import ShownNode, StateReader
from yolofs.paths import RelPath
from yolofs.state.tree import Entry, Tree, natural_path
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles


def compare_at(old: Tree, new: Tree, base: Base, store: StoreFiles, paths: Sequence[RelPath]) -> list[Change]:
    """Return the changes at or below some paths, as :func:`yolofs.changes.changes.compare`; faster
    where they stand apart.
    """
    found = changes_apart(old, new, base, store, paths)
    return found if found is not None else compare(old, new, base, store, paths=paths)


def changes_apart(old: Tree, new: Tree, base: Base, store: StoreFiles, paths: Sequence[RelPath]) -> list[Change] | None:
    """Return the changes at some paths, sorted, if each is a file with one name that base has at
    the same path, or nowhere, and ``old`` is base.  None if that is not so, or no path is given.

    Raises:
        YolofsError: the store lacks something that the state shows.
    """
    if not paths or not is_base(old):
        return None
    before, after = StateReader(old, base, store), StateReader(new, base, store)
    found: list[Change] = []
    for path in sorted(set(paths)):
        entry = new.find(path)
        if entry is None or not _is_apart(entry, path, base):
            return None
        was, now = _node(before, path), _node(after, path)
        if now is None or now.is_directory or (was is None) is not (entry.staged is not None and not entry.staged.home):
            return None  # base is changing just now
        change = compare_two(was, now, before, after)
        if change is not None:
            found.append(change)
    return found


def is_base(tree: Tree) -> bool:
    """Tell whether a state shows base, and nothing else."""
    root = tree.root
    return not (root.children or root.staged or root.touched_ns or tree.staged or tree.unlinked)


def _is_apart(entry: Entry, path: RelPath, base: Base) -> bool:
    staged = entry.staged
    if staged is None or entry.children or staged.links or len(staged.names) != 1:
        return False
    st = base.look(path)
    natural = natural_path(entry)
    if st is None:
        return natural in (None, path) and staged.home is None and staged.key == staged.ino
    return natural == path == staged.home == staged.key and st.st_nlink == 1 and not stat.S_ISDIR(st.st_mode)


def _node(state: StateReader, path: RelPath) -> ShownNode | None:
    node = state.root()
    for name in path.split(b"/") if path else ():
        node = state.child(node, name) if node is not None and node.is_directory else None
    return node
