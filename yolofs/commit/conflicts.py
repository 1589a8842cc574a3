"""Where base changed under what is staged.

What the override tree can tell:

* A file that was copied up: its fingerprint (mtime, size and number; of a directory the number only) is compared
  with what base has now.
* Something renamed, or changed in its metadata only: its base path has to be there still.
* Something staged or moved into a directory of base: the directory has to be there still.
* A name that the view deleted, replaced or made anew: the tree does not say what base had there then.  It does say
  when names in that directory last changed in the view; whatever base has there that changed after that (by ctime,
  which no program can set back) the view cannot have known.  What the host did before that moment and after the
  name's own change goes unnoticed, as does a change deep inside a directory that the view deleted.  Neither is lost:
  a commit keeps all that it replaces.

No conflict is a file that both sides have changed to the same, as git does with its index: if base has a file of the
same content at the very name, and nothing but their times differs, a commit loses nothing but a time.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence

from yolofs.base import Base
from yolofs.changes import Aspect, Change, Kind, compare
from yolofs.commit.survey import Name, look, survey
from yolofs.paths import RelPath
from yolofs.store import Store
from yolofs.tree import Staged, Tree

_CLOCK_SLACK_NS = 10_000_000
"""Record times come from the kernel's coarse clock, which is up to a tick (10 ms) behind that of file times."""


def find_conflicts(
    tree: Tree,
    base: Base,
    store: Store,
    *,
    names: Sequence[Name] | None = None,
    restored: Mapping[int, int] = {},
) -> list[RelPath]:
    """Return the paths of the view whose commit would run over a change of base, sorted.

    Blocks while it reads files that both sides may have changed to the same.  Of a file whose known names are all gone,
    and that base has under others, it is the path where base had it.  ``names`` is the survey of the tree, for who has
    it already, ``restored`` tells of which ctimes it is known that they are not the host's (:mod:`yolofs.restored`).

    Raises:
        OSError: base cannot be read.
    """
    names = names if names is not None else list(survey(tree, base))
    in_use = _base_paths_in_use(tree, names)
    nameless = (staged for staged in tree.staged.values() if not staged.names and _has_changed(staged, base))
    homes = {staged.home for staged in nameless if staged.home is not None}
    found = [name for name in names if _is_conflict(name, base, in_use, restored)]
    agreed = _agreed(tree, base, store, [name.path for name in found if _may_agree(name)])
    return sorted(homes.union(name.path for name in found if name.path not in agreed))


def _may_agree(name: Name) -> bool:
    """Tell whether both sides have a file of their own at this name, which no other name shows in base."""
    staged, here = name.entry.staged, name.here
    if staged is None or staged.origin is not None or here is None or name.is_cut_off:
        return False
    return staged.home in (None, name.natural) and not staged.links and here.st_nlink == 1


def _agreed(tree: Tree, base: Base, store: Store, paths: list[RelPath]) -> frozenset[RelPath]:
    """Return the paths at which the view and base show the same, but for its time."""
    if not paths:
        return frozenset()
    changes = compare(Tree(), tree, base, store, paths=paths)
    differing = {path for change in changes if not _is_time_alone(change) for path in change.paths}
    return frozenset(paths) - differing


def _is_time_alone(change: Change) -> bool:
    return change.kind is Kind.METADATA and change.old_path is None and set(change.metadata) <= {Aspect.TIME}


def _base_paths_in_use(tree: Tree, names: Sequence[Name]) -> set[bytes]:
    """Return the base paths whose objects the view still shows, under whatever name, or has a version of."""
    in_use: set[bytes] = {name.entry.source for name in names if name.entry.source is not None}
    in_use.update(staged.home for staged in tree.staged.values() if staged.home is not None)
    return in_use


def _is_conflict(name: Name, base: Base, in_use: set[bytes], restored: Mapping[int, int]) -> bool:
    if name.is_cut_off:
        return True
    entry = name.entry
    if entry.staged is not None and _has_changed(entry.staged, base):
        return True
    if name.held is None and entry.source is not None and not name.is_passing:
        return True
    return name.natural not in in_use and _is_newer_than_view(name, restored)


def _has_changed(staged: Staged, base: Base) -> bool:
    """Tell whether the base file is not what it was at copy-up."""
    if staged.base is None or staged.home is None:
        return False
    st = look(base, staged.home)
    if st is None:
        return True
    if stat.S_ISDIR(st.st_mode):
        return base.number(st) != staged.base.ino
    return base.fingerprint(st) != staged.base


def _is_newer_than_view(name: Name, restored: Mapping[int, int]) -> bool:
    """Tell whether what base has here changed after the view last changed a name in this directory."""
    parent = name.entry.parent
    if name.here is None or parent is None or not parent.touched_ns:
        return False
    if restored.get(name.here.st_ino) == name.here.st_ctime_ns:
        return False
    return name.here.st_ctime_ns > parent.touched_ns + _CLOCK_SLACK_NS
