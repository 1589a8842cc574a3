"""Git's index, when both sides have written to it: whether the host has only refreshed it.

``git status`` writes an index anew to remember when it last looked at which file.  If a commit
replaces what the host wrote in this way, nothing is lost: git looks again.  So there is no conflict
if the index in base says the same as

* what base had when the view put its own there, of which a copy was kept
  (:mod:`yolofs.state.kept_bases`): whatever the view did since, base did nothing;
* or what is staged.

Mode, owner and extended attributes have to be the same, too.

The other way round, the view may have only refreshed it: what is staged says the same as what base
had.  It has nothing of its own that could be lost, so base's version is to be taken.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from yolofs.changes.changes import Aspect, Change, ChangeKind
from yolofs.commit.merge.merging import UnmergeableError, read_base
from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.paths import RelPath, join, split
from yolofs.state.kept_bases import MOST_KEPT_BYTES, KeptBase, find_kept, known_by, owned
from yolofs.state.tree import Staged, Tree, natural_path
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.text.git_index_format import SIGNATURE, SharedOf, is_same_but_for_caches, may_be_index
from yolofs.text.git_split_index import NAME


def indexes_looked_at_alone(
    tree: Tree, base: Base, store: Store, differing: Iterable[tuple[OverriddenName, Change]]
) -> frozenset[RelPath]:
    """Return the paths at which the host has only refreshed git's index.  ``differing``: names of
    the view, each with its difference from base.

    Blocks while indexes of up to :data:`MOST_KEPT_BYTES` are read; a larger one is never among
    them.
    """
    indexes = [(name, change) for name, change in differing if _may_be(name, change)]
    if not indexes:
        return frozenset()
    wanted = {_place(name) for name, _ in indexes}
    kept = find_kept(store.directory, lambda path, known: (path, known) in wanted)
    return frozenset(
        name.path
        for name, change in indexes
        if _is_only_refreshed(tree, base, change, store, name, kept.get(_place(name)))
    )


def shared_parts(base: Base, index: RelPath, tree: Tree | None = None, store: Store | None = None) -> SharedOf:
    """Return what finds the shared parts of split indexes at a path of base: there, or staged."""

    def find(checksum: bytes) -> bytes:
        path = join(split(index)[0], NAME + checksum.hex().encode())
        with contextlib.suppress(OSError, UnmergeableError):
            content = read_base(base, path).content
            if content.endswith(checksum):
                return content
        shown = tree.resolve(path) if tree is not None else None
        if shown is None or shown.staged is None or store is None:
            return b""
        with contextlib.suppress(OSError), open(store.open(shown.staged.ino, os.O_RDONLY), "rb") as file:
            return file.read(MOST_KEPT_BYTES)
        return b""

    return find


def indexes_unchanged_here(tree: Tree, base: Base, store: Store, paths: Iterable[RelPath]) -> frozenset[RelPath]:
    """Return those of some ``paths``, where base has changed, at which the view has only refreshed
    git's index.

    Blocks while indexes of up to :data:`MOST_KEPT_BYTES` are read.
    """
    places = {path: place for path in paths if (place := _place_of_index(tree, base, path)) is not None}
    if not places:
        return frozenset()
    wanted = {(natural, known_by(staged)) for natural, staged in places.values()}
    kept = find_kept(store.directory, lambda path, known: (path, known) in wanted)
    return frozenset(
        path
        for path, (natural, staged) in places.items()
        if (was := kept.get((natural, known_by(staged)))) is not None
        and _is_unchanged_here(store, staged, was, shared_parts(base, natural, tree, store))
    )


def _place_of_index(tree: Tree, base: Base, path: RelPath) -> tuple[RelPath, Staged] | None:
    """Return what is staged in the place of a possible git index of base, and its path there; None
    if nothing is.
    """
    entry = tree.find(path)
    natural = natural_path(entry) if entry is not None else None
    if entry is None or entry.staged is None or natural is None:
        return None
    staged, here = entry.staged, base.look(natural)
    is_alone = len(staged.names) == 1 and not staged.links and staged.home in (None, natural)
    if staged.origin is not None or not is_alone or here is None or not stat.S_ISREG(here.st_mode):
        return None
    return (natural, staged) if may_be_index(natural, SIGNATURE) else None


def _is_unchanged_here(store: Store, staged: Staged, was: KeptBase, shared_of: SharedOf) -> bool:
    try:
        metadata = store.metadata(staged.ino)
        if not stat.S_ISREG(metadata.st.st_mode) or owned(metadata) != was.owned:
            return False
        with open(store.open(staged.ino, os.O_RDONLY), "rb") as file:
            return is_same_but_for_caches(file.read(MOST_KEPT_BYTES), was.content, shared_of)
    except OSError:
        return False


def _may_be(name: OverriddenName, change: Change) -> bool:
    sides = (change.old, change.new)
    return (
        change.kind is ChangeKind.MODIFIED
        and change.old_path is None
        and name.natural_path is not None
        and may_be_index(name.natural_path, SIGNATURE)
        and all(side is not None and stat.S_ISREG(side.type) and side.size <= MOST_KEPT_BYTES for side in sides)
    )


def _place(name: OverriddenName) -> tuple[RelPath, bytes]:
    """Return the key of :func:`find_kept` for the base file that a staged one took the place of."""
    assert name.natural_path is not None
    assert name.entry.staged is not None
    return name.natural_path, known_by(name.entry.staged)


def _is_only_refreshed(
    tree: Tree, base: Base, change: Change, store: Store, name: OverriddenName, kept: KeptBase | None
) -> bool:
    assert name.natural_path is not None
    assert change.new is not None
    shared_of = shared_parts(base, name.natural_path, tree, store)
    try:
        theirs = read_base(base, name.natural_path)
        if (
            kept is not None
            and kept.owned == owned(theirs.metadata)
            and is_same_but_for_caches(kept.content, theirs.content, shared_of)
        ):
            return True
        if not set(change.metadata) <= {Aspect.TIME}:
            return False
        with open(change.new.open(store), "rb") as file:
            return is_same_but_for_caches(file.read(MOST_KEPT_BYTES), theirs.content, shared_of)
    except (OSError, UnmergeableError):
        return False
