"""Committing what is staged in directories, or about files, that are gone from base.

A directory can be made again, empty, with what is staged in it.  A file whose content only base had
cannot be, as only its metadata is staged.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable

from yolofs.paths import RelPath, StoreIno
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base
from yolofs.store.interfaces import StorePaths


def missing_directories(tree: Tree, base: Base, paths: Iterable[RelPath]) -> dict[RelPath, StoreIno | None]:
    """Return the directories that base no longer has, and in which the view shows something at one
    of some paths.

    By path, parents first: the store inode of a directory that is staged itself, as its metadata
    was changed, else None.

    Raises:
        OSError: base cannot be read.
    """
    found: dict[RelPath, StoreIno | None] = {}
    for path in paths:
        entry = tree.find(path)
        if entry is None or entry.is_tombstone:
            continue
        above = entry.parent
        while above is not None and above.parent is not None and (directory := above.path()) not in found:
            if above.source is not None and not _is_directory(base, above.source):
                found[directory] = above.staged.ino if above.staged is not None else None
            above = above.parent
    return dict(sorted(found.items()))


def paths_without_content(tree: Tree, base: Base, store: StorePaths, paths: Iterable[RelPath]) -> frozenset[RelPath]:
    """Return those paths that show a file whose content was in base alone, and is gone from there.

    Raises:
        OSError: base or the store cannot be read.
    """
    entries = ((path, tree.find(path)) for path in paths)
    return frozenset(path for path, entry in entries if entry is not None and _is_without_content(entry, base, store))


def _is_without_content(entry: Entry, base: Base, store: StorePaths) -> bool:
    staged = entry.staged
    if staged is None or staged.origin is None or _is_staged_directory(staged, store):
        return False
    st = base.look(staged.origin)
    return st is None or stat.S_IFMT(st.st_mode) != stat.S_IFMT(store.lstat(staged.ino).st_mode)


def _is_staged_directory(staged: Staged, store: StorePaths) -> bool:
    return stat.S_ISDIR(store.lstat(staged.ino).st_mode)


def _is_directory(base: Base, rel: RelPath) -> bool:
    st = base.look(rel)
    return st is not None and stat.S_ISDIR(st.st_mode)
