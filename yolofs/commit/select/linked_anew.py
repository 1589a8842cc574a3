"""Files with hard links of which two states change names: what is staged of them is told by all of
their names.

A name of such a file may be base's in one state and staged in the other.  So they are compared as
files, not name by name, before :mod:`yolofs.commit.select.compose` goes through the view.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

import msgspec

from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.commit.plan.survivors import Survivors
from yolofs.commit.select.base_afterwards import BaseAfterwards
from yolofs.commit.select.linked_files import LinkedFile, LinkedFiles, UntoldFile
from yolofs.commit.select.staged_anew import StagedAnew
from yolofs.journal.records import Keep
from yolofs.paths import ROOT, RelPath, join, split
from yolofs.state.tree import Tree
from yolofs.store.base import Base


class LinkedAnew:
    """Adds to ``anew`` what is staged of files with hard links, over base as ``first`` makes it.

    ``names``: those that ``first`` overrides.
    """

    def __init__(
        self,
        first: Tree,
        second: Tree,
        base: Base,
        names: Sequence[OverriddenName],
        survivors: Survivors,
        after: BaseAfterwards,
        anew: StagedAnew,
    ) -> None:
        self._first = first
        self._second = second
        self._base = base
        self._names = names
        self._survivors = survivors
        self._after = after
        self._anew = anew
        self.found = LinkedFiles(
            first,
            second,
            base,
            survivors,
            anew.shown_paths,
            place_of=after.place_of,
            is_far=after.goes_to_another_device,
        )
        self.paths: set[RelPath] = set()
        """The paths in the view of files that are told by all of their names."""

    def find(self) -> dict[RelPath, UntoldFile]:
        """Find the files with hard links of which both trees change names; return those with names
        that cannot be told apart, as :attr:`LinkedFiles.untold`.
        """
        self.found.find(self._names)
        return self.found.untold

    def check(self) -> None:
        """Find these files; refuse if their names cannot be told apart."""
        for path, one in self.find().items():
            self._anew.refuse(path, one.why)

    def count_removed(self) -> None:
        """Leave out of the names that the view lacks those in a directory that base has no more
        afterwards.
        """
        numbers = {number for number in self._anew.unlinked if self._is_base_again(number)}
        todo = [
            name.natural_path
            for name in self._names
            if name.natural_path is not None and _is_directory(name.natural_st)
        ]
        while todo if numbers else ():
            directory = todo.pop()
            if directory in self._survivors.name_of:
                continue
            for path in [join(directory, name) for name in self._base.names(directory)]:
                st = self._base.look(path)
                if st is None or path in self._survivors.name_of:
                    continue
                if _is_directory(st):
                    todo.append(path)
                elif self._base.number(st) in numbers and st.st_nlink > 1:
                    self._anew.unlinked[self._base.number(st)] -= 1

    def _is_base_again(self, number: int) -> bool:
        """Tell whether a file with hard links is one of base afterwards, and not staged."""
        first, second = self._first.linked.get(number), self._second.linked.get(number)
        return second is None or (first is not None and first.ino == second.ino)

    def add_records(self) -> set[RelPath]:
        """Add the records of files with hard links of which both have changed names.

        Return the paths in the view at which base has such a file afterwards.
        """
        in_base: set[RelPath] = set()
        for number, count in self.found.taken.items():
            self._anew.unlinked[number] = self._anew.unlinked.get(number, 0) - count
        for linked in self.found.told.values():
            self.paths.update(linked.view)
            in_base.update(path for path in linked.view if self._slot_of(path) in linked.after)
            if linked.is_same and len(linked.view) <= len(linked.after):
                self._add_same(linked)
            else:
                self._add_anew(linked)
        return in_base

    def _add_same(self, linked: LinkedFile) -> None:
        """Show by each name of the view one that base has afterwards; the others are hidden."""
        slots = {path: self._slot_of(path) for path in linked.view}
        places = iter(sorted(linked.after.difference(slots.values())))
        for path, slot in slots.items():
            if slot not in linked.after:
                self._anew.add(Keep(0, path, source=next(places)))

    def _slot_of(self, path: RelPath) -> RelPath | None:
        """Return the future base path of a path of the view, by its parent; None if the parent is
        not base's.
        """
        above, name = split(path)
        shown = self._second.resolve(above)
        place = self._after.place_of(shown.base) if shown is not None and shown.base is not None else None
        return join(place, name) if place is not None else None

    def _add_anew(self, linked: LinkedFile) -> None:
        """Stage the file by all of its names: none that base has shows it without an entry of its
        own.
        """
        place, staged = linked.place, linked.staged
        is_regular = stat.S_ISREG(self._base.lstat(linked.home).st_mode)  # others have all in their store inode
        has_data = place is not None and is_regular and self._after.is_content_kept(linked.home)
        if staged is None:
            ino = self._anew.copy(linked.home, data=not has_data)
        elif staged.origin is None or has_data:
            ino, has_data = staged.ino, staged.origin is not None
        else:
            ino = self._anew.with_data(staged)
        links = len(linked.after) if len(linked.after) > 1 else 0
        home, fingerprint = self._after.home_of(linked.home) or (None, None)  # it is a version of what comes back
        if place:
            home, fingerprint = place, self._after.fingerprint(linked.home, staged.base if staged is not None else None)
        record = Keep(
            0,
            ROOT,
            ino,
            origin=place if has_data else None,
            home=home,
            base=fingerprint,
            key=-linked.number if links else 0,
            links=links,
        )
        for path in linked.view:
            self._anew.add(msgspec.structs.replace(record, path=path), staged)

    def count_added(self) -> None:
        """Set how many names the view lacks of files that are told by all of them."""
        for linked in self.found.told.values():
            is_same = linked.is_same and len(linked.view) <= len(linked.after)
            shown = len(linked.view) if is_same else 0
            self._anew.unlinked[linked.number] = len(linked.after) - shown if len(linked.after) > 1 else 0


def _is_directory(st: os.stat_result | None) -> bool:
    return st is not None and stat.S_ISDIR(st.st_mode)
