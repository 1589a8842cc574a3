"""Units: groups of changes that are committed together or not at all.

Seen as names in directories, an override tree is a list of *slots*: one name in one directory,
which base fills with one thing and the view with another (or nothing).  A directory is known by its
base path, wherever it lies in the view, or, if it was born there, by its entry.  Slots that only
make sense together are one *unit*:

* both ends of a move, and so all slots of an exchange or a circle of renames,
* all names of a staged file, and all names that differ of a base file with hard links,
* a deleted directory and what was moved out of it, and a changed file with another name in it,
* a directory that an undo makes anew, and everything that comes back in it.

What a directory itself is (mode, owner, times) is a unit of its own, unless the directory has
moved.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from yolofs.changes.changes import Aspect, Change, ChangeKind, compare
from yolofs.paths import ROOT, RelPath, StoreIno, join, split
from yolofs.state.tree import Entry, Staged, Tree, natural_path
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles

DirectoryKey: TypeAlias = RelPath | Entry
"""A key for a directory: its base path, or the entry if it was born in the view."""


NOTHING_TOGETHER: Mapping[RelPath, RelPath] = {}


class Unit:
    """Changes that are committed together."""

    def __init__(self) -> None:
        self.slots: list[Entry] = []
        """Names that show something else than base has there."""
        self.directories: list[Entry] = []
        """Directories of base, in their places, that are something else themselves."""
        self.nameless: list[Staged] = []
        self.paths: dict[RelPath, None] = {}
        """All paths that it changes, before and after."""
        self.replaces = False
        """Whether base has something in one of its slots."""
        self.removed: list[RelPath] = []
        """Directories of base that go, with all that base still has in them."""
        self.linked: list[Staged] = []
        """Files that base may have more names for."""


class Units:
    """The units of one state; base is looked at once, when this is made."""

    def __init__(
        self,
        tree: Tree,
        base: Base,
        store: StoreFiles,
        whole: Collection[StoreIno] = (),
        together: Mapping[RelPath, RelPath] = NOTHING_TOGETHER,
    ) -> None:
        """Find them.  ``whole``: the new directories with which all goes together that is in them;
        ``together``: names of the view that go with what base has at another path.

        Raises:
            OSError: base or the store cannot be read.
        """
        self.tree = tree
        self._base = base
        self._store = store
        self._whole = frozenset(whole)
        self.slots: dict[Entry, RelPath] = {}
        """All names that show something else than base has there, with their paths in the view,
        parents first.
        """
        self.inner: dict[Entry, RelPath] = {tree.root: ROOT}
        """The other entries: what is in its place, directories as a rule."""
        self.numbers: dict[Entry, int] = {}
        """Of slots in which base has a file with several names, its number."""
        self._leaders: dict[Hashable, Hashable] = {}
        self.in_slot: dict[RelPath, Entry] = {}
        """The slots by the base paths that would show there without their entries."""
        self._directories: list[Entry] = []
        self.moved: dict[RelPath, Entry] = {}
        """The base paths that show somewhere else now, and the names under which they do."""
        for path, entry in tree.walk():
            self._take(path, entry)
        if tree.root.staged is not None:
            self._directories.append(tree.root)
        self.removed = {
            source: entry
            for source, entry in self.in_slot.items()
            if source not in self.moved and self._kind(source) == stat.S_IFDIR
        }
        """The directories of base that are gone from the view, with the slots that they were in."""
        self._tie()
        for path, place in together.items():
            found = tree.find(path)
            if found is not None and found in self.slots:
                self._unite(found, ("place", place))
        self.of: dict[Hashable, Unit] = {}
        """The unit of each slot, of each changed directory (``Directory`` of it), and of each
        nameless staged file.
        """
        self.all = self._collect()

    def _take(self, path: RelPath, entry: Entry) -> None:
        natural = natural_path(entry)
        staged = entry.staged
        if entry.is_tombstone and natural is None:
            return
        if staged is None and entry.base == natural:
            self.inner[entry] = path
            return
        if staged is not None and staged.origin == natural is not None and self._is_directory(staged):
            self.inner[entry] = path
            self._directories.append(entry)
            return
        self.slots[entry] = path
        if natural is not None:
            self.in_slot[natural] = entry
        source = source_of(entry)
        if source is not None and source != natural:
            self.moved[source] = entry

    def _is_directory(self, staged: Staged) -> bool:
        return stat.S_ISDIR(os.lstat(self._store.path(staged.ino)).st_mode)

    def _kind(self, rel: RelPath) -> int:
        st = self._base.look(rel)
        return stat.S_IFMT(st.st_mode) if st is not None else 0

    # ---- what belongs together

    def _tie(self) -> None:
        for entry in self.slots:
            natural, source = natural_path(entry), source_of(entry)
            for place in {natural, source} - {None}:
                assert place is not None
                self._unite(entry, ("place", place))
                number = self._number(place)
                if number is not None:
                    self._unite(entry, ("links", number))
                    if place == natural:
                        self.numbers[entry] = number
            if entry.staged is not None:
                self._unite(entry, entry.staged)
            self._tie_to_whole(entry)
        for staged in self.tree.staged.values():
            if staged.home is not None and (number := self._number(staged.home)) is not None:
                self._unite(staged, ("links", number))
            if not staged.names and staged.home is not None:
                self._tie_to_removed(staged, staged.home)
        for source, entry in self.moved.items():
            self._tie_to_removed(entry, source)
        if any(staged.links for staged in self.tree.staged.values()):  # else no other name of a removed file is changed
            for source, entry in self.removed.items():
                for number in self.links_below(source):
                    self._unite(entry, ("links", number))

    def _tie_to_whole(self, entry: Entry) -> None:
        above = entry.parent if self._whole else None
        while above is not None:
            if above in self.slots and above.staged is not None and above.staged.ino in self._whole:
                self._unite(entry, above)
            above = above.parent

    def links_below(self, directory: RelPath) -> Iterator[int]:
        """Yield the numbers of files with several names that base has below a removed directory,
        one for each name.

        Left out is what has been moved away.
        """
        todo = [directory]
        while todo:
            directory = todo.pop()
            for name in _names(self._base, directory):
                path = join(directory, name)
                st = self._base.look(path)
                if st is None or path in self.moved:
                    continue
                if stat.S_ISDIR(st.st_mode):
                    todo.append(path)
                elif st.st_nlink > 1:
                    yield self._base.number(st)

    def _number(self, rel: RelPath) -> int | None:
        """Return the number of a base file with several names, None of anything else."""
        st = self._base.look(rel)
        if st is None or stat.S_ISDIR(st.st_mode) or st.st_nlink < 2:
            return None
        return self._base.number(st)

    def _tie_to_removed(self, what: Entry | Staged, source: RelPath) -> None:
        """Tie a thing to the removed directory that it has left: the directory cannot go before it
        is empty.
        """
        while source:
            source = split(source)[0]
            if source in self.moved:
                return
            if source in self.removed:
                self._unite(what, self.removed[source])
                return

    def _unite(self, one: Hashable, other: Hashable) -> None:
        left, right = self._leader(one), self._leader(other)
        if left != right:
            self._leaders[left] = right

    def _leader(self, item: Hashable) -> Hashable:
        path = []
        while (above := self._leaders.get(item, item)) != item:
            path.append(item)
            item = above
        for passed in path:
            self._leaders[passed] = item
        return item

    # ---- what is no change

    def are_unchanged(self, unit: Unit, paths: Iterable[RelPath]) -> bool:
        """Tell whether base has just what the view has at some paths of a unit, except for new hard
        links of a file.
        """
        files = {entry.staged for entry in unit.slots if entry.staged is not None}
        return {staged.home for staged in files if self.is_unchanged(staged)}.issuperset(paths)

    def is_unchanged(self, staged: Staged) -> bool:
        """Tell whether a staged file is in its place and is what base has there: it is staged only
        because a link to it was made.
        """
        entry = self.in_slot.get(staged.home) if staged.home is not None else None
        if entry is None or entry.staged is not staged or self.slots[entry] != staged.home:
            return False
        return staged.home not in self._changes and self._has_base_time(staged)

    def _has_base_time(self, staged: Staged) -> bool:
        """Tell whether a staged file has the time of its base file.  Of a symlink that is not among
        the changes.
        """
        staged_ns = os.lstat(self._store.path(staged.ino)).st_mtime_ns
        return staged.base is None or staged_ns == staged.base.mtime_ns

    @cached_property
    def _changes(self) -> dict[RelPath, Change]:
        """All paths at which the view has something else than base."""
        changes = compare(Tree(), self.tree, self._base, self._store)
        return {path: change for change in changes for path in change.paths}

    # ---- what is a change of a time alone

    def is_in_place(self, entry: Entry) -> bool:
        """Tell whether a staged file with hard links shows at a name that base has for it."""
        staged, natural = entry.staged, natural_path(entry)
        if staged is None or staged.base is None or natural is None or self.slots.get(entry) != natural:
            return False
        return natural == staged.home or self.numbers.get(entry) == staged.base.ino

    def number_of_moved(self, entry: Entry) -> int | None:
        """Return the number of a base file with several names that is not staged and shows at
        another name than base has it.
        """
        return self._number(entry.base) if entry.base is not None else None

    def may_keep_time(self, staged: Staged) -> bool:
        """Tell whether base's file stays the same if only the time is not set: no other staged file
        is a version of it, and it is not replaced.
        """
        is_in_place = staged.origin is not None or staged.links > 0
        return is_in_place and staged.base is not None and self._versions[staged.base.ino] == 1

    @cached_property
    def _versions(self) -> Counter[int]:
        return Counter(staged.base.ino for staged in self.tree.staged.values() if staged.base is not None)

    def with_another_time(self, path: RelPath) -> RelPath | None:
        """Return where the view shows a regular file of base of which nothing but the time differs;
        None of anything else.
        """
        change = self._changes.get(path)
        if change is None or change.kind is not ChangeKind.METADATA or change.metadata != (Aspect.TIME,):
            return None
        return change.path if change.paths[0] == path else None

    def has_times_alone(self, unit: Unit) -> bool:
        """Tell whether a unit is nothing but other times of files with hard links."""
        if unit.removed or unit.directories or unit.nameless or not unit.slots:
            return False
        return all(
            self.is_in_place(entry) and self.with_another_time(self.slots[entry]) is not None for entry in unit.slots
        )

    # ---- the units

    def _collect(self) -> list[Unit]:
        units: dict[Hashable, Unit] = {}
        for entry, path in self.slots.items():
            unit = self.of[entry] = units.setdefault(self._leader(entry), Unit())
            unit.slots.append(entry)
            self._note_paths(unit, entry, path)
        for entry in self._directories:
            unit = self.of[directory_of(entry)] = units[entry] = Unit()
            unit.directories.append(entry)
            unit.paths.update({self.inner[entry]: None, directory_of_base(entry): None})
        for staged in self.tree.staged.values():
            if not staged.names:
                unit = self.of[staged] = units.setdefault(self._leader(staged), Unit())
                unit.nameless.append(staged)
                if staged.home is not None:
                    unit.paths[staged.home] = None
            elif staged.links and self.tree.unseen(staged):
                unit = units[self._leader(staged.names[0])]
            else:
                continue
            unit.linked.append(staged)
        for source, entry in self.removed.items():
            self.of[entry].removed.append(source)
        return list(units.values())

    def _note_paths(self, unit: Unit, entry: Entry, path: RelPath) -> None:
        natural, source = natural_path(entry), source_of(entry)
        replaces = natural is not None and self._kind(natural) != 0
        if natural is not None and replaces:
            unit.paths[natural] = None
            unit.replaces = True
        if not (entry.is_tombstone and replaces):
            unit.paths[path] = None
        if source is not None:
            unit.paths[source] = None


def _names(base: Base, directory: RelPath) -> list[bytes]:
    try:
        return base.names(directory)
    except OSError:
        return []


def source_of(entry: Entry) -> RelPath | None:
    """Return the base path of an entry's thing, whatever its name; None if the view made it."""
    staged = entry.staged
    if staged is None:
        return entry.base
    return staged.origin if staged.origin is not None else staged.home


def directory_of(entry: Entry) -> DirectoryKey:
    """Return which directory an entry shows."""
    source = entry.source
    return source if source is not None else entry


def directory_of_base(entry: Entry) -> RelPath:
    """Return the base path of a directory that base has."""
    source = entry.source
    assert source is not None
    return source
