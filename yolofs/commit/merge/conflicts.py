"""Where base changed under what is staged.

What the override tree can tell:

* A file that was copied up: its fingerprint (mtime, size, number and ctime; of a directory the
  number, and which extended attributes the staged one lacks) is compared with what base has now,
  and its mode, user and group.
* Something renamed, or changed in its metadata only: its base path has to be there still.
* Something staged or moved into a directory of base: the directory has to be there still.
* A name that the view deleted, replaced or made anew: the tree says what base had there then
  (:attr:`~yolofs.state.tree.Tree.was`), and in a directory that went as a whole.  Anything else is
  the host's, however soon it came.  Mode, user and group count, further names of a file do not.
  Journals of earlier versions, and what an undo stages, do not say it.  Then it counts since when
  the view has something else there: what has changed since (by ctime, which no program can set
  back), the view did not know.  If base had something there and has nothing any more, the host has
  deleted it.

If base has the very text that it had, there is no conflict, whatever its times
(:mod:`yolofs.commit.merge.base_as_kept`).  Nor is a file that both sides changed to the same (git
does that with its index): if base has a file of the same content at the same name, and only their
times differ, a commit loses only a time.  Nor is an index of git's that the host has but looked at
(:mod:`yolofs.commit.merge.git_indexes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from yolofs.changes.changes import Aspect, Change, ChangeKind, compare
from yolofs.commit.merge.base_as_kept import still_as_kept
from yolofs.commit.merge.git_indexes import indexes_looked_at_alone
from yolofs.commit.plan.overridden_names import OverriddenName, survey
from yolofs.paths import RelPath
from yolofs.state.drift import has_changed, homes_known, is_gone, is_later
from yolofs.state.tree import Staged, Tree
from yolofs.store.base import Base
from yolofs.store.restored import InodeCtime
from yolofs.store.store import Store
from yolofs.text.git_split_index import is_shared_part


def find_conflicts(
    tree: Tree,
    base: Base,
    store: Store,
    *,
    names: Sequence[OverriddenName] | None = None,
    restored: AbstractSet[InodeCtime] = frozenset(),
    unset: AbstractSet[InodeCtime] = frozenset(),
) -> list[RelPath]:
    """Return the paths of the view whose commit would run over a change of base, sorted.

    Blocks while it reads files that both sides may have changed to the same.  If all known names of
    a file are gone, and base has it under others, its path is the one where base had it.  ``names``
    is the survey of the tree, if the caller already has it.  ``restored`` tells which ctimes are
    not the host's, and ``unset`` which looks are not (:mod:`yolofs.store.restored`).

    Raises:
        OSError: base cannot be read.
    """
    names = names if names is not None else list(survey(tree, base))
    in_use = _base_paths_in_use(tree, names)
    changed = _changed(tree, base, store, restored, unset)
    homes = {staged.home for staged in changed if not staged.names and staged.home is not None}
    found = [name for name in names if _is_conflict(name, tree, base, changed, in_use, restored)]
    agreed = _agreed(tree, base, store, [name for name in found if _may_agree(name)])
    return sorted(homes.union(name.path for name in found if name.path not in agreed))


def _changed(
    tree: Tree, base: Base, store: Store, restored: AbstractSet[InodeCtime], unset: AbstractSet[InodeCtime]
) -> set[Staged]:
    """Return the staged files whose base file has changed."""
    looks = [staged for staged in tree.staged.values() if has_changed(staged, base, store, restored, unset)]
    same = still_as_kept(base, store, [(staged.home, staged) for staged in looks if staged.home is not None])
    return {staged for staged in looks if staged.home is None or (staged.home, staged) not in same}


def _may_agree(name: OverriddenName) -> bool:
    """Tell whether both sides have a file of their own at this name, which no other name shows in
    base.
    """
    staged, here = name.entry.staged, name.natural_st
    if staged is None or here is None or name.is_cut_off:
        return False
    # git sets the time of the shared part of an index at each look, and never changes its content
    if staged.origin is not None and not is_shared_part(name.path):
        return False
    return staged.home in (None, name.natural_path) and not staged.links and here.st_nlink == 1


def _agreed(tree: Tree, base: Base, store: Store, names: Sequence[OverriddenName]) -> frozenset[RelPath]:
    """Return the paths that are no conflict after all: there the view and base show the same except
    for its time, or base has what it had, or the host has only refreshed git's index.
    """
    if not names:
        return frozenset()
    as_kept = _as_kept(base, store, names)
    names = [name for name in names if name.path not in as_kept]
    changes = compare(Tree(), tree, base, store, paths=[name.path for name in names])
    differing = {path: change for change in changes if not _is_time_alone(change) for path in change.paths}
    indexes = [(name, change) for name in names if (change := differing.get(name.path)) is not None]
    disagreed = differing.keys() - indexes_looked_at_alone(tree, base, store, indexes)
    return as_kept | (frozenset(name.path for name in names) - disagreed)


def _as_kept(base: Base, store: Store, names: Sequence[OverriddenName]) -> frozenset[RelPath]:
    """Return the paths of staged files that replace a base file which has not changed since."""
    new = [(name, name.natural_path, name.entry.staged) for name in names if name.natural_path is not None]
    places = [(natural, staged) for _, natural, staged in new if staged is not None and staged.home is None]
    same = still_as_kept(base, store, places)
    return frozenset(name.path for name, natural, staged in new if staged is not None and (natural, staged) in same)


def _is_time_alone(change: Change) -> bool:
    return change.kind is ChangeKind.METADATA and change.old_path is None and set(change.metadata) <= {Aspect.TIME}


def _base_paths_in_use(tree: Tree, names: Sequence[OverriddenName]) -> set[bytes]:
    """Return the base paths of objects that the view still shows, or has a version of with a
    fingerprint.
    """
    in_use: set[bytes] = {name.entry.source for name in names if name.entry.source is not None}
    in_use.update(homes_known(tree))
    return in_use


def _is_conflict(
    name: OverriddenName,
    tree: Tree,
    base: Base,
    changed: set[Staged],
    in_use: set[bytes],
    restored: AbstractSet[InodeCtime],
) -> bool:
    if name.is_cut_off:
        return True
    entry = name.entry
    if entry.staged is not None and entry.staged in changed:
        return True
    if name.source_st is None and entry.source is not None and not name.is_passing:
        return True
    if is_gone(entry, name.natural_path, name.natural_st) and not name.is_passing:
        return True
    return name.natural_path not in in_use and is_later(
        name.natural_st, name.natural_path, entry, tree, base, in_use, restored
    )
