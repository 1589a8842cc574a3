"""Stages what base loses or gets changed, so that the view goes on showing it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import NamedTuple, NoReturn

import msgspec

from yolofs.commit.select.base_afterwards import BaseAfterwards
from yolofs.commit.select.shown_paths import ShownPaths
from yolofs.errors import HardLinksError
from yolofs.journal.records import Keep
from yolofs.paths import ROOT, RelPath, StoreIno, display, is_below, join
from yolofs.state.hard_links import staged_for
from yolofs.state.link_names import find_names_at
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base
from yolofs.store.store import Store

_UNMADE = 1 << 40
"""The first number for what is not made: above those of a store, below those of kept objects."""


class ComposedRest(msgspec.Struct):
    """What is left staged."""

    records: list[Keep] = []
    """The entries, parents before children; none if the view shows just what base will have."""
    numbers: list[StoreIno] = []
    """The store inodes that were made for it."""
    stands_for: dict[StoreIno, RelPath | StoreIno] = {}
    """What each of these shows: what base has at a path now, or a staged file whose data base
    has now.
    """
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be carried over, as
    :attr:`yolofs.commit.apply.execution.CommitOutcome.left_out`.
    """


class ShownName(NamedTuple):
    """What a name of the view shows."""

    entry: Entry | None
    staged: Staged | None
    base: RelPath | None
    """The path in base of what is not staged; of a staged directory where its names come from."""


class StagedAnew:
    """Collects the records of what is left staged, and makes the store inodes that they need."""

    def __init__(
        self,
        second: Tree,
        base: Base,
        store: Store,
        after: BaseAfterwards,
        known: Mapping[RelPath, StoreIno],
        may_part: bool,
        sign: Callable[[Keep, Staged | None], Keep],
        *,
        makes: bool = True,
    ) -> None:
        """``second``: what the view shows; ``known``, ``may_part`` and ``sign`` as for
        :func:`~yolofs.commit.select.compose.compose`.  Unless it ``makes`` them, the store inodes
        are numbers alone.
        """
        self._second = second
        self._base = base
        self._store = store
        self._after = after
        self.shown_paths = ShownPaths(second)
        self._known = known
        self._may_part = may_part
        self._sign = sign
        self._unmade = None if makes else count(_UNMADE)
        self.found = ComposedRest()
        self.unlinked: dict[int, int] = dict(second.unlinked)
        """How many names that base has for a file the view lacks, by the file's number."""
        self.copies_of_base: dict[tuple[int, int], StoreIno] = {}
        """Store inodes that stand for base files with several names, by device and inode number."""
        self._copies_of_staged: dict[StoreIno, StoreIno] = {}
        """Those that stand for staged files whose data was in base and is not afterwards."""
        self._noted: dict[RelPath, Keep] = {}

    def check_parting(self, rels: Iterable[RelPath]) -> None:
        """Refuse if names of a file at one of these base paths, or in a directory there, would be
        parted, and may not be.
        """
        for rel in sorted(rels) if not self._may_part else ():
            st, place = self._base.look(rel), self._after.place_of(rel)
            if st is None or place is None or not (stat.S_ISDIR(st.st_mode) or st.st_nlink > 1):
                continue
            shown = self.shown_paths.path(rel)
            is_near = shown is not None and self._base.mount_above(shown) != self._base.mount_above(place)
            if not is_near or not self._after.goes_to_another_device(rel, place):
                continue
            if stat.S_ISDIR(st.st_mode):
                self._check_parting_below(rel)
            elif staged_for(self._second, self._base, st) is None:
                self._refuse_parting(rel)

    def _check_parting_below(self, directory: RelPath) -> None:
        """Refuse if a directory takes some names of a file to another disk, and leaves others."""
        after = self._after.place_of(directory) or ROOT
        taken: Counter[tuple[int, int]] = Counter()
        found: dict[tuple[int, int], tuple[RelPath, os.stat_result]] = {}
        todo = [directory]
        for above in todo:
            for name in self._base.names(above):
                rel = join(above, name)
                st, place = self._base.look(rel), self._after.place_of(rel)
                if st is None or place is None:
                    continue
                if stat.S_ISDIR(st.st_mode):
                    todo.append(rel)
                elif st.st_nlink > 1 and is_below(place, after):
                    taken[st.st_dev, st.st_ino] += 1
                    found.setdefault((st.st_dev, st.st_ino), (rel, st))
        for file, (rel, st) in sorted(found.items(), key=lambda item: item[1][0]):
            if taken[file] != st.st_nlink and staged_for(self._second, self._base, st) is None:
                self._refuse_parting(rel)

    def _refuse_parting(self, rel: RelPath) -> NoReturn:
        raise HardLinksError(
            f"{display(self._base.path(rel))} is a hard link of a file that the view still shows, and would be no"
            " longer: it is to go to another disk, where it is another file",
            hint="yolofs travel to that generation, and then yolofs commit, takes all of it",
        )

    def stage(
        self, path: RelPath, thing: ShownName, st: os.stat_result, slot: RelPath | None, there: Entry | None
    ) -> None:
        """Stage what base will no longer have."""
        assert thing.base is not None
        touched = thing.entry.touched_ns if thing.entry is not None else 0
        if stat.S_ISDIR(st.st_mode) or st.st_nlink == 1:
            home, fingerprint = None, None
            if not stat.S_ISDIR(st.st_mode):
                home, fingerprint = self._after.home_of(thing.base) or self._after.comes_there(slot, there)
            ino = self._content(thing.base)
            self.add(Keep(0, path, ino, home=home, base=fingerprint, touched_ns=touched))
            return
        file = st.st_dev, st.st_ino
        ino_or_none = self.copies_of_base.get(file)
        if ino_or_none is None:
            ino_or_none = self.copies_of_base[file] = self._linked_to_what_stays(thing.base, st) or self._content(
                thing.base
            )
        home, fingerprint = self._after.home_of(thing.base) or (None, None)
        plain = Keep(0, path, ino_or_none, home=home, base=fingerprint)
        other = next((record for record in self.found.records if record.ino == ino_or_none), plain)
        self.add(msgspec.structs.replace(other, path=path, touched_ns=0))

    def stage_again(
        self, path: RelPath, thing: ShownName, st: os.stat_result, place: RelPath, *, is_nameless: bool = False
    ) -> None:
        """Stage, as it is now, what base will have in another version."""
        assert thing.base is not None
        if stat.S_ISDIR(st.st_mode):
            ino = self.copy(thing.base, data=False)
            touched = thing.entry.touched_ns if thing.entry is not None else 0
            home, fingerprint = self._after.directory_home(thing.base)
            self.add(Keep(0, path, ino, origin=place, home=home, base=fingerprint, touched_ns=touched))
            return
        is_copied = self._after.goes_to_another_device(thing.base, place)  # to a number that nobody knows yet
        if st.st_nlink > 1 and is_copied:
            self._part_names(path, thing.base, st, is_nameless=is_nameless)
            return
        file = st.st_dev, st.st_ino
        ino_or_none = self.copies_of_base.get(file)
        has_data = self._after.is_content_kept(thing.base) and stat.S_ISREG(st.st_mode)
        if ino_or_none is None:
            ino_or_none = self.copies_of_base[file] = self.copy(thing.base, data=not has_data)
        fingerprint = self._after.fingerprint(thing.base)
        names = find_names_at(self._base, thing.base)[0] if st.st_nlink > 1 else [thing.base]
        gets_links = not is_copied and self._after.gets_links_back(st)  # else its names are new files to the view
        links = self._after.links_after(st, names) if st.st_nlink > 1 or gets_links else 0
        key = -self._base.number(st) if links else 0
        origin = place if has_data else None
        if links and not is_nameless and self.record_at(path) is None:  # else it is counted already
            self.count_name(self._base.number(st))
        record = Keep(0, path, ino_or_none, origin=origin, home=place, base=fingerprint, links=links, key=key)
        if is_copied:
            record = Keep(0, path, ino_or_none, origin=origin)
        if is_nameless:
            self.add_nameless(msgspec.structs.replace(record, is_nameless=True))
        else:
            self.add(record)

    def _linked_to_what_stays(self, rel: RelPath, st: os.stat_result) -> StoreIno | None:
        """Stage another name of a file that stays in base; names that do not stay can then be its
        links.
        """
        names, _ = find_names_at(self._base, rel)
        staying = [(name, place) for name in names if (place := self._after.place_of(name)) is not None]
        if not staying:
            return None
        if self._base.number(st) in self._second.linked or self._base.number(st) in self._second.unlinked:
            self.refuse(rel)
        name, place = next((one for one in staying if not self._after.goes_to_another_device(*one)), (None, None))
        if name is None or place is None:  # base gets copies, by numbers that nobody knows yet
            return self._stage_as_one([name for name, _ in staying], rel)
        path = self._path_in_view(name)
        if path is None:
            self.refuse(rel)
        has_data = self._after.is_content_kept(name) and stat.S_ISREG(st.st_mode)
        ino = self.copy(name, data=not has_data)
        links = self._after.links_after(st, names)
        key = -self._base.number(st) if links else 0
        fingerprint = self._after.fingerprint(name)
        if links:
            self.count_name(-key)
        origin = place if has_data else None
        self._replace(Keep(0, path, ino, origin=origin, home=place, base=fingerprint, key=key, links=links))
        return ino

    def _stage_as_one(self, names: list[RelPath], rel: RelPath) -> StoreIno:
        """Stage names of a file of base, which has it at ``rel``, as one new file; return its store
        inode.
        """
        ino = self._content(rel)
        for name in names:
            path = self._path_in_view(name)
            if path is None:
                self.refuse(rel)
            self._replace(Keep(0, path, ino))
        return ino

    def _replace(self, record: Keep) -> None:
        """Add a record in the place of that which there may be for its path."""
        self._noted.pop(record.path, None)
        self.found.records = [one for one in self.found.records if one.path != record.path]
        self.add(record)

    def _part_names(self, path: RelPath, rel: RelPath, st: os.stat_result, *, is_nameless: bool) -> None:
        """Stage each name of a file that comes to lie on another device as a file of its own, as it
        is now.

        Nobody knows yet which number it will have in base, so its names cannot be known by that.
        """
        if not self._may_part:
            self._refuse_parting(rel)
        names, _ = find_names_at(self._base, rel)
        shown = [path if name == rel else self._path_in_view(name) for name in names]
        if is_nameless or len(names) != st.st_nlink or None in shown:
            self.refuse(path)
        self.copies_of_base[st.st_dev, st.st_ino] = ino = self.copy(rel, data=True)
        for one in shown:
            if one is not None:
                self.add(Keep(0, one, ino if one == path else self.copy(rel, data=True)))
                self.found.left_out[one] = ("hard link",)

    def data_of(self, staged: Staged) -> tuple[StoreIno, RelPath | None]:
        """Return what shows a staged file afterwards: a store inode, and where in base its data is,
        if it is there, or was before the host took it.
        """
        if staged.origin is not None and self._base.look(staged.origin) is None:
            return staged.ino, staged.origin
        place = self._after.place_of(staged.origin) if staged.origin is not None else None
        if staged.origin is None or (place is not None and self._after.is_content_kept(staged.origin)):
            return staged.ino, place
        return self.with_data(staged), None

    def with_data(self, staged: Staged) -> StoreIno:
        """Return a store inode that has the data, too, which a staged file had in base."""
        assert staged.origin is not None
        ino = self._copies_of_staged.get(staged.ino)
        if ino is None:
            ino = self._copies_of_staged[staged.ino] = self.copy(staged.origin, data=True)
            if self._unmade is None:
                self._store.give(ino, self._store.metadata(staged.ino))
            self.found.stands_for[ino] = staged.ino
        return ino

    def _content(self, rel: RelPath) -> StoreIno:
        """Return a store inode that is what base has at a path."""
        ino = self._known.get(rel)
        return ino if ino is not None else self.copy(rel, data=True)

    def copy(self, rel: RelPath, *, data: bool) -> StoreIno:
        """Return a store inode that is a copy of what base has at a path, made now."""
        if self._unmade is not None:
            ino = StoreIno(next(self._unmade))
            self.found.stands_for[ino] = rel
            return ino
        ino = self._store.reserve()
        self.found.numbers.append(ino)
        self.found.stands_for[ino] = rel
        left_out = self._store.copy_into(ino, self._base.path(rel), data=data)
        if left_out:
            self.found.left_out[rel] = left_out
        return ino

    def _path_in_view(self, rel: RelPath) -> RelPath | None:
        """Return the view's path of the thing at a base path; None if the view does not show it as
        base has it.
        """
        path = self.shown_paths.path(rel)
        shown = self._second.resolve(path) if path else None
        return path if shown is not None and shown.base == rel and shown.staged is None else None

    def count_name(self, number: int) -> None:
        """Note that one of the names that base has for a file is an entry now, and no other one
        beside it.
        """
        self.unlinked[number] = self.unlinked.get(number, 0) + 1

    def add(self, record: Keep, staged: Staged | None = None) -> None:
        """Add a record, unless there is one for its path."""
        if record.path in self._noted:
            return
        self._noted[record.path] = record
        self.found.records.append(self._sign(record, staged))

    def record_at(self, path: RelPath) -> Keep | None:
        """Return the record that was added for a path, None if there is none."""
        return self._noted.get(path)

    def add_nameless(self, record: Keep, staged: Staged | None = None) -> None:
        """Add the record of a file that the view shows by no entry of its own."""
        self.found.records.append(self._sign(record, staged))

    def refuse(self, path: RelPath, why: str = "what becomes of each name cannot be told") -> NoReturn:
        """Raise HardLinksError about a path of base; ``why`` is the reason."""
        raise HardLinksError(
            f"{display(self._base.path(path))} has hard links that are staged and that this would change, too: {why}",
            hint="commit all that is staged first (yolofs commit), or drop it (yolofs abort)",
        )
