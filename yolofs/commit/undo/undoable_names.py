"""Decides, for each name that a commit changed, whether it may be undone, and where it shows then.

A name goes back only if base has there what the commit left.  If a later commit has changed it, it
stays, and so does what cannot go without it.  If the host has, that is drift.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import msgspec

from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    Link,
    MakeDirectory,
    MetadataBefore,
    Place,
    Remove,
)
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.commits_around import EarlierTimes, LaterCommit
from yolofs.commit.undo.git_indexes_left import is_only_refreshed
from yolofs.commit.undo.left_by_commit import LeftByCommit
from yolofs.commit.undo.made_anew import MadeAnew, ObjectByDisk
from yolofs.journal.records import Keep
from yolofs.paths import ROOT, RelPath, StoreIno, display, join, split
from yolofs.state.tree import Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.restored import InodeCtime
from yolofs.store.store import Store
from yolofs.system.disks import OnDisk
from yolofs.system.git_exclude import without_own_line

ARRIVALS = (Create, Link, Duplicate, MakeDirectory, Place)
PuttingStep: TypeAlias = Create | Link | Duplicate | MakeDirectory | Place
"""A step that puts something at its path."""

INSIDE_STAYS = "something in it stays"
"""Why a directory stays that could go by itself."""


class Inverse(msgspec.Struct):
    """What undoes one commit."""

    records: list[Keep] = []
    """The entries, parents before children."""
    drifted: dict[RelPath, None] = {}
    """The paths of base at which the host has changed what the commit left."""
    stays: dict[RelPath, str] = {}
    """What cannot be taken back, by path in base, and why."""
    numbers: list[StoreIno] = []
    """The store inodes that were made for it."""
    together: dict[RelPath, RelPath] = {}
    """Future links of files that stay, each with the base path of the copy on another device that
    goes: both or neither.
    """
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be carried over, as
    :attr:`yolofs.commit.apply.execution.CommitOutcome.left_out`.
    """
    directories_anew: dict[int, int] = {}
    """By store inode that becomes a directory anew: the inode number of the directory that is kept.
    """
    copies: list[RelPath] = []
    """Where a hard link comes back as a file of its own, as no other name of the file was found."""
    as_now: list[RelPath] = []
    """Where a file comes back as it is now, and not as base had it: somebody has written to it
    since the commit has moved it, or while it was kept.
    """

    def tree(self) -> Tree:
        """Return the tree."""
        return Tree(self.records)


class NameAfterUndo(msgspec.Struct):
    """What is to show at one path."""

    source: RelPath | None = None
    """The thing of base that moves here."""
    kept: KeptObject | None = None
    """What comes back here."""
    opened: KeptObject | None = None
    """The directory that comes back here name by name, as not all in it is what was kept."""
    replaces: RelPath | None = None
    """The base path of what it takes the place of."""
    is_gone: bool = False
    was: MetadataBefore | None = None
    """The metadata that the thing of base gets back."""
    content: int | None = None
    """The slot of the content that it gets back."""
    link: RelPath | None = None
    """The base path of a file of which this becomes a hard link again."""
    touched_ns: int = 0


class UndoableNames(LeftByCommit):
    """Tells what may be undone, and where it shows then."""

    def __init__(
        self,
        applied: Applied,
        base: Base,
        store: Store,
        into: Store,
        later: Sequence[LaterCommit],
        earlier_times: EarlierTimes,
        restored: AbstractSet[InodeCtime],
        anew: MadeAnew,
        *,
        force: bool,
    ) -> None:
        super().__init__(applied, base, anew)
        self._moves = applied.moves
        self._commits = os.path.dirname(applied.directory)
        self._store = store
        self._into = into
        self._later = later
        self._earlier_times = earlier_times
        self._restored = restored
        self._force = force
        self._why_gone = f"commit {applied.number} does not keep what was there any more"
        again = max((one.number for one in later if one.applies_again), default=None)
        if again is not None:
            self._why_gone = f"it was taken back and applied again: yolofs undo {again}"
        self._opened = frozenset[int]().union(*(one.opened for one in later))
        """The slots of directories that are not kept whole any more."""
        self._back = frozenset[int]().union(*(one.brought_back for one in later))
        """The slots whose kept thing an undo of a part has brought back, whatever became of it
        since.
        """
        self._names_back = self._slots_of_names(frozenset[RelPath]().union(*(one.arrivals for one in later)))
        """The slots of names that an undo of a part has brought back, maybe as hard links of each
        other: then what is kept there has stayed.
        """
        self._back |= self._names_back
        self._found = Inverse()
        self._places: dict[RelPath, NameAfterUndo] = {}
        """By the path at which it is to show."""
        self._arrivals = {
            step.path: (index, step) for index, step in enumerate(applied.plan.steps) if isinstance(step, ARRIVALS)
        }
        fetched = {step.number: step.home for step in applied.plan.steps if isinstance(step, Fetch)}
        homes = {
            path: step.home if isinstance(step, Create) else fetched.get(getattr(step, "number", -1))
            for path, (_, step) in self._arrivals.items()
            if isinstance(step, Create | Place)
        }
        self._versions = {home: self._arrivals[path] for path, home in homes.items() if home is not None}
        """Arrivals that are versions of a base file with another name, by that name."""
        self._removed = {step.path: step for step in applied.plan.steps if isinstance(step, Remove)}
        self._lost: dict[RelPath, RelPath | None] = {}
        """By directory of base, what :meth:`_lost_at` has found."""
        self._blocked: set[RelPath] = set()
        """Arrivals that stay."""
        self._kept_away: set[RelPath] = set()
        """What the commit removed and that does not come back."""
        self._touched = {one.path: one.mtime_ns for one in applied.ready.directories}
        """The times of directories before the commit."""
        self._sources: set[RelPath] = set()
        self._lone: dict[FileNumbers, tuple[RelPath, KeptObject]] = {}
        """Returning files without a name in base, each with its first path and its kept object."""
        self._moved_links: dict[OnDisk, RelPath] = {}
        """The base paths of files whose copied names become links again, by the former identity."""
        self._with_links: set[RelPath] = set()
        """Paths of files that get further names; the records of these names say so."""
        self._linked_to: set[RelPath | None] | None = None
        """The files of base of which others become links, once all places are known."""
        self._brought: dict[KeptObject, Keep] = {}
        """The records of what comes back."""
        self._linked: dict[FileNumbers, Keep] = {}
        """The records of files that have, or get, several names, by which file of base it is."""

    def _blame(self, path: RelPath, why: str = "", *, file: os.stat_result | None = None) -> bool:
        """Note that a path is not as the commit left it; return whether that is to be passed over.

        If another commit has changed it, or if there is a reason why it cannot go, it stays; else
        it has drifted.  ``file``: what is there, if others may know it by another name.
        """
        known = self._was_known_by(path, file) if file is not None else ()
        touching = list(self._touching(path, known))
        later = next((one for one in touching if not one.takes_back or one.touches(path)), None)
        if later is None and touching:  # a part of the undo was about another name of the file
            later = touching[0]
        if later is not None:
            if not later.takes_back:
                self._stays_after(later, path)
        elif why:
            self._found.stays.setdefault(path, why)
        else:
            self._found.drifted[path] = None
            return self._force
        return False

    def _stays_after(self, later: LaterCommit, path: RelPath) -> None:
        self._found.stays.setdefault(
            path, f"commit {later.number} has changed it since; first: yolofs undo {later.number}"
        )

    def _touching(self, path: RelPath, known: Sequence[OnDisk]) -> Iterator[LaterCommit]:
        """Yield the later commits about a path, newest first, without those of which a part was
        undone there, and the undos of these; if nothing else is left, all.
        """
        touching = [one for one in reversed(self._later) if one.touches(path, known)]
        before, is_any = None, False
        for one in touching:
            if before is not None and one.number >= before:
                continue
            if one.undoes is None or one.undoes <= self._applied.number:
                is_any = True
                yield one
            else:
                before = one.undoes
        if not is_any:
            yield from touching

    def _is_as_left(self, index: int, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether nobody has changed what a step (by its index) left at a path, but for the
        line by which git ignores the link ``.yolofs``.
        """
        before = without_own_line(self._base.path(path), st)
        return self._is_just_as_left(index, path, st) or (
            before.st_size != st.st_size and self._is_just_as_left(index, path, before)
        )

    def _is_just_as_left(self, index: int, path: RelPath, st: os.stat_result) -> bool:
        restored = self._restored_at(path, st)
        if not self._applied.is_as_left(index, st, self._store, restored):
            return False
        return self._applied.is_unchanged(index, st) or not self._has_others_attributes(index, path, st)

    def _has_others_attributes(self, index: int, path: RelPath, st: os.stat_result, mode: int | None = None) -> bool:
        """Tell whether what a step (by its index) left at a path has extended attributes that are
        not from this commit; the arguments are as for :meth:`Applied.has_others_attributes`.
        """
        now = copying.read_base_metadata(self._base.path(path), st=st)
        return self._applied.has_others_attributes(index, now, mode)

    def _is_directory_as_left(self, index: int, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether a directory that the commit has made or brought back has the mode and owner
        that this left, and no attributes that it did not give.
        """
        has_access = self._applied.has_access_left(index, st, self._store)
        return has_access and not self._has_others_attributes(index, path, st)

    def _blame_inside(self, step: Place) -> None:
        """Note what the host, or a later commit, has made or changed in a tree that the commit, an
        undo, has brought back; block the tree if there is any that is not to be passed over.
        """
        found = list[RelPath]()
        for path, st in self._all_below(step.path):
            if path in self._arrivals or not self._applied.was_changed_since(self._base.path(path), st):
                continue
            if (st.st_ino, st.st_ctime_ns) in self._restored_at(path, st):
                continue
            changed_in = next((one for one in reversed(self._later) if path in one.times and not one.takes_back), None)
            if changed_in is not None and not self._is_by_later(path, st):
                self._stays_after(changed_in, path)
                found.append(path)
            elif not self._blame(path, file=st):
                found.append(path)
        if found:
            self._block_with(step.path, found, INSIDE_STAYS)

    def _all_below(self, directory: RelPath) -> Iterator[tuple[RelPath, os.stat_result]]:
        """Yield all below a directory of base, where that may be looked at."""
        todo = [directory]
        for place in todo:
            with contextlib.suppress(PermissionError):
                for path in self._names_in(place):
                    st = self._base.look(path)
                    if st is None:
                        continue
                    yield path, st
                    if stat.S_ISDIR(st.st_mode):
                        todo.append(path)

    def _is_copy_as_left(self, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether nobody has changed a file that the commit copied with its directory."""
        restored = self._restored_at(path, st)
        known = self._was_known_by(path, st)
        return any(self._applied.is_file_as_left(file, st, self._store, restored) for file in known)

    def _restored_at(self, path: RelPath, st: os.stat_result) -> AbstractSet[InodeCtime]:
        """Return the ctimes that tell that a file is what this commit had left at a path.

        A ctime set by an undo counts only if that undo brought back this commit's version, not if
        it took back this commit or an earlier one.
        """
        return self._restored if self._is_as_before_later(path, st) else frozenset()

    def _is_as_before_later(self, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether undos have taken back all that later commits have changed at a path."""
        before, known = None, self._was_known_by(path, st)
        for one in reversed(self._later):
            if (before is not None and one.number >= before) or not one.touches(path, known):
                continue
            if one.undoes is None or one.undoes <= self._applied.number:
                return False
            before = one.undoes
        return True

    def _is_by_later(self, path: RelPath, file: os.stat_result | None = None) -> bool:
        """Tell whether a later commit is about a path; ``file``: as for :meth:`_blame`."""
        known = self._was_known_by(path, file) if file is not None else ()
        return any(later.touches(path, known) for later in self._later)

    def _is_by_undo(self, path: RelPath, file: os.stat_result) -> bool:
        """Tell whether the last of the later commits about a path that is in force there is an
        undo; ``file`` as for :meth:`_blame`.
        """
        last = next(self._touching(path, self._was_known_by(path, file)), None)
        return last is not None and last.undoes is not None

    def _check_identity(self, index: int, step: PuttingStep) -> None:
        """Block a step's path if what the step put there is gone, or was changed since."""
        st = self._base.look(step.path)
        is_moved = isinstance(step, Place) and step.number in self._applied.parks
        lost = self._lost_at(split(step.path)[0])
        has_own_reason = is_moved or getattr(step, "replaced", None) is not None
        if lost is not None and (has_own_reason or not self._went_with(lost, step.path)):
            self._blame(step.path, self._why_lost(lost, "its directory", "that"))
            self._blocked.add(step.path)
            return
        is_it = st is not None and self._is_it(index, step.path, st)
        has_replaced = is_moved and getattr(step, "replaced", None) is not None
        if is_it and has_replaced and self._kept_in(step.number) is None:
            self._found.stays.setdefault(step.path, self._why_gone)
            self._blocked.add(step.path)
            return
        if st is not None and is_it:
            is_directory = stat.S_ISDIR(st.st_mode) and isinstance(step, MakeDirectory | Place)
            is_as_left = self._is_directory_as_left if is_directory else self._is_as_left
            if is_moved or is_as_left(index, step.path, st):
                if is_directory and not is_moved and isinstance(step, Place):
                    self._blame_inside(step)
                return
            if isinstance(step, Link) and self._is_set_back(step.path, st):
                return
        elif is_moved:
            self._blame(step.path, "it is not there any more")
            self._blocked.add(step.path)
            return
        elif st is None and getattr(step, "replaced", None) is None and self._is_free_again(step.path):
            return  # the host has removed it already, or an undo of a part has
        elif getattr(step, "number", None) in self._back or (
            st is not None and self._is_back(getattr(step, "replaced", None), step.path, st)
        ):
            self._blocked.add(step.path)  # so there is nothing to take back
            return
        if not self._is_by_later(step.path) and is_only_refreshed(self._applied, step, self._base, self._store):
            return
        if not self._blame(step.path, file=st if is_it else None):
            self._blocked.add(step.path)

    def _is_free_again(self, path: RelPath) -> bool:
        """Tell whether a path at which nothing is was emptied by no commit in force, but at most by
        an undo of a part of this one.
        """
        return all(one.takes_back for one in self._touching(path, ()))

    def _went_with(self, lost: RelPath, path: RelPath) -> bool:
        """Tell whether something new is taken for gone as the directory ``lost`` is, in which it
        was: the commit has brought that directory, or an undo of a part has taken this away.
        """
        return lost in self._arrivals or next(self._touching(path, ()), None) is not None

    def _is_back(self, inode: int | None, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether base has at a path what the commit took away or replaced there, by its
        inode number before that.
        """
        if inode is None:
            return False
        was = ObjectByDisk(OnDisk(None, inode), self._applied.ready.births.get(inode, 0))
        now = self._object_at(path, st)
        return was.may_be(now) and self._applied.is_older(self._base.path(path), st)

    def _is_set_back(self, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether a file is as an undo of a part of the commit has made it, under another of
        its names.
        """
        known = self._was_known_by(path, st)
        is_ours = any(one.takes_back and one.touches(path, known) for one in self._later)
        return is_ours and (st.st_ino, st.st_ctime_ns) in self._restored

    def _kept_in(self, slot: int) -> os.stat_result | None:
        """Return what the commit keeps in a slot; None if it does not keep all of it any more, or
        if the name is back.
        """
        return self._applied.kept(slot) if slot not in self._opened | self._names_back else None

    def _slots_of_names(self, names: AbstractSet[RelPath]) -> frozenset[int]:
        """Return the slots of what base had, before the commit, at names of now."""
        steps = self._applied.plan.steps if names else ()
        removed = {
            one.number for one in steps if isinstance(one, Remove) and {*self._present_names(one.path)[1:]} & names
        }
        replaced = {
            one.number
            for one in steps
            if isinstance(one, Create | Place | Link | Duplicate) and one.replaced is not None and one.path in names
        }
        return frozenset(removed | replaced)

    def _settle(self) -> bool:
        """Block what cannot be undone because something else stays; return whether anything was
        blocked.
        """
        before = len(self._blocked)
        for path, (_, step) in sorted(self._arrivals.items(), reverse=True):  # what is in a directory before that
            if path in self._blocked:
                continue
            park = self._applied.parks.get(step.number) if isinstance(step, Place) else None
            may_go = self._is_emptied(path) if isinstance(step, MakeDirectory) else True
            if not may_go:
                self._block_with(path, self._names_in(path), INSIDE_STAYS)
            elif park is not None and not self._is_free(park.path):
                self._block_with(path, self._present_names(park.path), "its old place is taken or gone")
        return len(self._blocked) != before

    def _block_with(self, path: RelPath, others: Iterable[RelPath], why: str) -> None:
        """Block what cannot be undone as others stay; report it if one of those is reported."""
        self._blocked.add(path)
        if any(other in self._found.stays for other in others):
            self._found.stays.setdefault(path, why)

    def _names_in(self, directory: RelPath) -> list[RelPath]:
        try:
            return [join(directory, name) for name in self._base.names(directory)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _present_names(self, old: RelPath) -> list[RelPath]:
        """Return where a name is now that base had at a path before the commit, if anywhere."""
        above, name = split(old)
        directory = self._moves.after(above)
        return [] if directory is None else [directory, join(directory, name)]

    def _is_emptied(self, directory: RelPath) -> bool:
        """Tell whether all in a directory that the commit made goes, too; note what does not."""
        is_emptied = True
        for path in self._names_in(directory):
            if path in self._arrivals:
                is_emptied = is_emptied and path not in self._blocked
            elif not self._blame(path):
                is_emptied = False
        return is_emptied

    def _is_free(self, old: RelPath) -> bool:
        """Tell whether something may come back to where base had it; note why not."""
        above, name = split(old)
        directory = self._moves.after(above)
        if directory is None:
            return self._comes_back(above)
        lost = self._lost_at(directory)
        if lost is not None:
            self._blame(lost, self._why_lost(lost))
            return False
        now = join(directory, name)
        if now in self._arrivals:
            return now not in self._blocked
        return self._base.look(now) is None or self._blame(now)

    def _lost_at(self, directory: RelPath) -> RelPath | None:
        """Of a directory and those above it, return the topmost that base no longer has, or that
        something else is in the place of; None if base has them all.
        """
        if not directory:
            return None
        if directory not in self._lost:
            lost = self._lost_at(split(directory)[0])
            st = self._base.look(directory) if lost is None else None
            is_there = st is not None and stat.S_ISDIR(st.st_mode)
            self._lost[directory] = lost if lost is not None or is_there else directory
        return self._lost[directory]

    def _why_lost(self, lost: RelPath, what: str = "", it: str = "it") -> str:
        """Return why something stays: the directory ``lost`` is gone from base.  ``what`` is
        "its directory", empty if the path is that directory itself.
        """
        which = f"{what} {display(self._base.path(lost))}" if what else "it"
        return f"the host has moved or removed {which} since; put {it} back, then: yolofs undo {self._applied.number}"

    def _comes_back(self, directory: RelPath) -> bool:
        """Tell whether a directory comes back that the commit removed, with what it was in."""
        while directory:
            if directory in self._kept_away:
                return False
            if directory in self._removed:
                kept = self._kept_in(self._removed[directory].number)
                return kept is not None and self._is_free(directory)
            directory = split(directory)[0]
        return True

    def _view(self, path: RelPath) -> RelPath:
        """Return the future view path of the thing at a base path, after all that may go."""
        if not path:
            return ROOT
        _, step = self._arrivals.get(path, (0, None))
        if isinstance(step, Place) and path not in self._blocked and step.number in self._applied.parks:
            return self._old_view(self._applied.parks[step.number].path)
        above, name = split(path)
        return join(self._view(above), name)

    def _old_view(self, old: RelPath) -> RelPath:
        """Return where a name shows then that base had at a path before the commit."""
        above, name = split(old)
        if not above:
            return old
        now = self._moves.after(above)
        return join(self._view(now) if now is not None else self._old_view(above), name)

    def _slot(self, path: RelPath) -> RelPath:
        """Return where the name shows then that is ``path`` now."""
        above, name = split(path)
        return join(self._view(above), name)

    def _place(self, path: RelPath) -> NameAfterUndo:
        return self._places.setdefault(path, NameAfterUndo())
