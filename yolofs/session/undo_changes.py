"""Lists what an undo changes in base, name by name.

A directory that comes back is one object of its tree, whatever is in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from yolofs.changes.changes import Change, ChangeKind, Side, compare
from yolofs.commit.plan.kept_objects import KeptAndStore, KeptObject, kept_of
from yolofs.paths import RelPath, join
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.system.open_trees import OpenTree


def changes_of_undo(tree: Tree, base: Base, store: KeptAndStore) -> list[Change]:
    """Return the changes that lead from base to what an undo would make of it, sorted by path.

    Each thing in a directory that comes back has one of its own.  What cannot be looked at there is
    left out.

    Raises:
        OSError: base or the store cannot be read.
        YolofsError: the tree names a store inode that is not there.
    """
    changes = []
    for change in compare(Tree(), tree, base, store):
        changes.append(change)
        if change.new is not None and stat.S_ISDIR(change.new.type):
            changes.extend(_come_with(change.path, change.new, tree))
    return sorted(changes, key=lambda change: change.path)


def _come_with(path: RelPath, directory: Side, tree: Tree) -> Iterator[Change]:
    """Yield what is in a directory that comes back, but for what the tree shows itself."""
    kept = kept_of(directory.meta_ino) if directory.meta_ino is not None else None
    if kept is None:
        return
    with OpenTree(directory.meta) as opened:
        for name, st in opened.below(passes_over=True):
            rel = RelPath(name[1:])
            if tree.find(join(path, rel)) is None:
                yield Change(ChangeKind.ADDED, join(path, rel), new=_side(kept.below(rel), st, directory.meta + name))


def _side(kept: KeptObject, st: os.stat_result, path: bytes) -> Side:
    type_ = stat.S_IFMT(st.st_mode)
    has_data = type_ in (stat.S_IFREG, stat.S_IFLNK)
    return Side(
        type_,
        stat.S_IMODE(st.st_mode),
        st.st_uid,
        st.st_gid,
        st.st_mtime_ns,
        st.st_size if has_data else 0,
        st.st_rdev if type_ in (stat.S_IFBLK, stat.S_IFCHR) else 0,
        path,
        path if has_data else None,
        kept.ino if has_data else None,
        kept.ino,
    )
