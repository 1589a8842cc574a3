"""Describes drift: how base changed at a path, when, and when the view changed it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Container
from enum import Enum

import msgspec

from yolofs.commit.merge.gone_from_base import paths_without_content
from yolofs.paths import RelPath, join
from yolofs.state.tree import Entry, Staged, Tree, natural_path
from yolofs.store.base import Base
from yolofs.store.store import Store


class DriftKind(Enum):
    """How base changed under what is staged."""

    CHANGED = "changed"
    """The file is the same, its content or metadata is not."""
    REPLACED = "replaced"
    """Another file is in its place."""
    GONE = "gone"
    """Nothing is in its place, or its directory is gone."""
    MADE = "made"
    """Something is, or has changed, at a name that the view made, deleted or replaced."""
    MARKED = "marked"
    """It has been merged, and has the marks of a conflict."""


class Drift(msgspec.Struct, frozen=True):
    """One path at which both sides changed."""

    path: RelPath
    """In the view; of a file whose known names are all gone the one that base has."""
    how: DriftKind
    base_ns: int | None
    """When base changed, None if that cannot be told (what is gone has no time)."""
    staged_ns: int | None
    """When the view changed it last; None if that cannot be told."""
    is_deleted: bool
    """Whether the view shows nothing there."""
    is_without_content: bool = False
    """Whether its content was in base alone, and is gone from there."""


def describe_drift(
    tree: Tree,
    base: Base,
    store: Store,
    paths: Collection[RelPath],
    marked: Container[RelPath],
    present: Tree | None = None,
) -> list[Drift]:
    """Return what is to be said of the conflicts at some paths, as
    :func:`yolofs.commit.merge.conflicts.find_conflicts` returns them.

    Those ``marked`` have the marks of a conflict.  ``present`` is what the view shows, if ``tree``
    has been made of parts of it: a file of such a state is younger than what was staged.

    Raises:
        OSError: base cannot be read.
    """
    without_content = paths_without_content(tree, base, store, paths)
    by_home = {staged.home: staged for staged in tree.staged.values() if not staged.names}
    found = []
    for path in paths:
        entry = tree.find(path)
        staged = entry.staged if entry is not None else by_home.get(path)
        how, st = _kind_and_stat(entry, staged, path, base, store)
        if path in marked:
            how = DriftKind.MARKED
        base_ns = st.st_ctime_ns if st is not None else None
        if st is not None and how is DriftKind.MADE and stat.S_ISDIR(st.st_mode):
            base_ns = max(st.st_ctime_ns, _newest_below(entry, path, base))
        is_deleted = entry is not None and entry.is_tombstone
        is_without_content = path in without_content
        staged_ns = _staged_in(present, path, store) if present is not None else None
        staged_ns = staged_ns or _staged_ns(entry, staged, store)
        found.append(Drift(path, how, base_ns, staged_ns, is_deleted, is_without_content))
    return found


def _newest_below(entry: Entry | None, path: RelPath, base: Base) -> int:
    """Return when something changed last in a directory of base of which the view shows nothing; 0
    if the view has the directory, or nothing is in it.  What cannot be read does not count.
    """
    if entry is not None and entry.source is not None:
        return 0
    newest = 0
    todo = [(entry and natural_path(entry)) or path]
    while todo:
        directory = todo.pop()
        with contextlib.suppress(OSError):
            for name in base.names(directory):
                below = join(directory, name)
                st = base.look(below)
                if st is not None:
                    newest = max(newest, st.st_ctime_ns)
                    todo += [below] if stat.S_ISDIR(st.st_mode) else []
    return newest


def _kind_and_stat(
    entry: Entry | None, staged: Staged | None, path: RelPath, base: Base, store: Store
) -> tuple[DriftKind, os.stat_result | None]:
    if staged is not None and staged.base is not None:
        st = base.look(staged.home)
        if st is None or _is_cut_off(entry, base):
            return DriftKind.GONE, None
        kind = stat.S_IFMT(os.lstat(store.path(staged.ino)).st_mode)
        is_same = base.number(st) == staged.base.ino and stat.S_IFMT(st.st_mode) == kind
        return (DriftKind.CHANGED if is_same else DriftKind.REPLACED), st
    st = base.look(natural_path(entry)) if entry is not None else base.look(path)
    if st is None or _is_cut_off(entry, base) or (staged is None and entry is not None and _is_lost(entry, base)):
        return DriftKind.GONE, None
    return DriftKind.MADE, st


def _is_lost(entry: Entry, base: Base) -> bool:
    return entry.base is not None and base.look(entry.base) is None


def _is_cut_off(entry: Entry | None, base: Base) -> bool:
    """Tell whether the directory of base that a name is to be put into is gone."""
    directory = entry.parent.source if entry is not None and entry.parent is not None else None
    if directory is None:
        return False
    st = base.look(directory)
    return st is None or not stat.S_ISDIR(st.st_mode)


def _staged_in(present: Tree, path: RelPath, store: Store) -> int | None:
    entry = present.find(path)
    return _staged_ns(entry, entry.staged, store) if entry is not None else None


def _staged_ns(entry: Entry | None, staged: Staged | None, store: Store) -> int | None:
    if staged is not None:
        try:
            return os.lstat(store.path(staged.ino)).st_ctime_ns
        except OSError:
            return None
    return (entry.since_ns or None) if entry is not None else None
