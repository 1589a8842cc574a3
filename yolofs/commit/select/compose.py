"""Two states over the same base, one after the other: what is left staged when base has become what
the first shows.

``first`` is a tree that is about to be committed, ``second`` one that shows the view.  The result
is a tree over base as ``first`` makes it that shows the very same view.  Each name of the view is
recorded by what it shows.  A thing of base that stays is shown from where it then lies.  What
``first`` takes out of base, or changes, has to be staged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from yolofs.changes.state_reader import has_work
from yolofs.commit.plan.kept_objects import KeptAndStore, kept_of
from yolofs.commit.plan.overridden_names import survey
from yolofs.commit.plan.survivors import Survivors
from yolofs.commit.select.back_in_base import comes_back_as
from yolofs.commit.select.base_afterwards import BaseAfterwards, ReturningFile
from yolofs.commit.select.linked_anew import LinkedAnew
from yolofs.commit.select.linked_files import UntoldFile
from yolofs.commit.select.staged_anew import ComposedRest, ShownName, StagedAnew
from yolofs.commit.select.what_base_had import records_of_what_base_had
from yolofs.journal.records import Fingerprint, Keep
from yolofs.paths import ROOT, RelPath, StoreIno, join, split
from yolofs.state.hard_links import has_data, staged_for
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base
from yolofs.store.store import Store, gone_on_failure


def compose(
    first: Tree,
    second: Tree,
    base: Base,
    store: Store,
    commits: bytes,
    *,
    known: Mapping[RelPath, StoreIno] = {},
    homes: Mapping[RelPath, ReturningFile] = {},
    may_part: bool = False,
    sign: Callable[[Keep, Staged | None], Keep] = lambda record, _: record,
) -> ComposedRest:
    """Return the staging over base after ``first`` that shows the same view as ``second`` over base
    now.

    Makes store inodes, which go again if it fails, and changes nothing else.  ``commits``: the
    directory of all commits.  ``known`` are store inodes equal to base's file at a path; all else
    is copied.  ``homes``: returning files by the base path of their present, renamed version; each
    is staged as a rename again.  With ``may_part``, a file that base changes and has on another
    disk then is parted into one for each name; else that is refused.  ``sign`` puts the time and
    the run into a record.

    Raises:
        HardLinksError: both change names of one file with hard links, or names would be parted.
        OSError: base cannot be read, or a store inode not be made.
    """
    composing = _Composing(first, second, base, store, commits, known, homes, may_part, sign)
    with gone_on_failure(store, composing.numbers):
        return composing.run()


def foretell(
    first: Tree,
    second: Tree,
    base: Base,
    store: Store,
    commits: bytes,
    *,
    homes: Mapping[RelPath, ReturningFile] = {},
    may_part: bool = False,
) -> ComposedRest:
    """Return what :func:`compose` would return, or raise what it would raise; make nothing.

    The store inodes that it would make are numbers alone.

    Raises:
        HardLinksError: both change names of one file with hard links, or names would be parted.
        OSError: base cannot be read.
    """
    return _Composing(first, second, base, store, commits, {}, homes, may_part, makes=False).run()


def untold_links(first: Tree, second: Tree, base: Base, store: Store, commits: bytes) -> dict[RelPath, UntoldFile]:
    """Return the files with hard links for which :func:`compose` would refuse at once, each by a
    path in base.

    Raises:
        OSError: base cannot be read.
    """
    if not (second.root.children or second.staged or second.unlinked):  # no need to go through the first one
        return {}
    return _Composing(first, second, base, store, commits, {}, {}, may_part=True, makes=False).untold_links()


class _ComposedDirectory(NamedTuple):
    """A directory of the view, and what it is in base afterwards."""

    path: RelPath
    """In the view."""
    entry: Entry | None
    """Of the second tree."""
    source: RelPath | None
    """Where its names come from in base now, if nothing overrides them."""
    place: RelPath | None
    """Where base has it afterwards, None if it does not."""


class _Composing:
    def __init__(
        self,
        first: Tree,
        second: Tree,
        base: Base,
        store: Store,
        commits: bytes,
        known: Mapping[RelPath, StoreIno],
        homes: Mapping[RelPath, ReturningFile],
        may_part: bool,
        sign: Callable[[Keep, Staged | None], Keep] = lambda record, _: record,
        *,
        makes: bool = True,
    ) -> None:
        self._first = first
        self._second = second
        self._base = base
        self._store = store
        self._all = KeptAndStore(store, commits)
        self._sign = sign
        self._names = list(survey(first, base))
        self._survivors = Survivors(first, base, self._all, self._names)
        self._after = BaseAfterwards(first, base, store, self._all, self._survivors, homes)
        self._anew = StagedAnew(second, base, store, self._after, known, may_part, sign, makes=makes)
        self._linked = LinkedAnew(first, second, base, self._names, self._survivors, self._after, self._anew)
        self._in_base: set[RelPath] = set()
        """The paths in the view at which base has something afterwards, or had it before the host
        took it.
        """
        self._hidden: list[Entry] = []
        """What base has afterwards at names at which the view shows something else, or nothing."""
        self._compared: set[RelPath] = set()
        """Where base has the directories afterwards that the view shows; each is gone through."""
        self._version_by_home: dict[RelPath, Staged] | None = None
        """The first tree's version of each base file that is staged in it; None until wanted."""
        self._left_alone: dict[RelPath, RelPath] = {}
        """The base paths at which the second tree has something else, and the first one leaves all
        as it is; where base has them afterwards.
        """

    @property
    def numbers(self) -> Sequence[StoreIno]:
        """The store inodes that were made so far."""
        return self._anew.found.numbers

    def run(self) -> ComposedRest:
        self._check_links()
        self._linked.count_removed()
        todo = [_ComposedDirectory(ROOT, self._second.root, ROOT, ROOT)]
        self._note_root()
        self._in_base |= self._linked.add_records()
        while todo:
            todo += self._compare(todo.pop())
        self._count_hidden()
        self._linked.count_added()
        for number, count in self._anew.unlinked.items():
            if count <= 0:
                continue
            self._anew.found.records.insert(0, self._sign(Keep(0, ROOT, source=ROOT, unlinked=(number, count)), None))
        self._add_unseen()
        self._add_nameless()
        self._part_what_still_shows()
        self._anew.found.records = [
            msgspec.structs.replace(record, replaces=True)
            if record.path in self._in_base and (record.ino is not None or record.source is not None)
            else record
            for record in self._anew.found.records
        ]
        self._anew.found.records.sort(key=lambda record: record.path.count(b"/") + 1 if record.path else 0)
        if self._anew.found.records:
            self._anew.found.records[:0] = [self._sign(record, None) for record in self._what_base_had()]
        return self._anew.found

    def _check_links(self) -> None:
        """Refuse if the names of files with hard links cannot be told apart."""
        self._linked.check()
        self._anew.check_parting(self._survivors.of.values())

    def untold_links(self) -> dict[RelPath, UntoldFile]:
        """Return the files with hard links whose names cannot be told apart."""
        return self._linked.find()

    def _what_base_had(self) -> list[Keep]:
        """Return what base had where the first tree leaves it alone.  Of files with hard links it
        is not known.
        """
        return records_of_what_base_had(
            self._second,
            self._left_alone,
            lambda path, top: RelPath(self._left_alone[top] + path[len(top) :]),
            self._base,
            is_sure=not (self._first.linked or self._first.unlinked),
        )

    # ---- the view, directory by directory

    def _compare(self, directory: _ComposedDirectory) -> list[_ComposedDirectory]:
        """Add the records of the names in a directory, and return the directories in it that are to
        be looked at.
        """
        below: list[_ComposedDirectory] = []
        if directory.place is not None:
            self._compared.add(directory.place)
        first = self._first.find(directory.place) if directory.place is not None else None
        names = set(directory.entry.children or ()) if directory.entry is not None else set()
        names.update((first.children or ()) if first is not None else ())
        if directory.place is None and directory.source is not None:
            names.update(self._base.names(directory.source))
        for name in sorted(names):
            thing = self._shown_name(directory, name)
            entry, rel = self._after.at_name(directory.place, name)
            path = join(directory.path, name)
            slot = join(directory.place, name) if directory.place is not None else None
            is_changed = first is not None and first.children is not None and name in first.children
            if not is_changed and slot is not None and directory.source is not None:
                natural = join(directory.source, name)
                if rel in (None, natural):
                    self._left_alone[natural] = slot
            if thing is None:
                lost = self._lost_directory(directory, name, slot)
                if lost is not None:
                    below.append(lost)
                elif entry is not None or rel is not None:
                    self._hide(path, entry)
                continue
            if entry is not None or rel is not None or self._was_in_base(thing.entry, first, name):
                self._in_base.add(path)
            found = self._show(path, thing, slot, entry, rel)
            if found is not None:
                below.append(found)
            if entry is not None:
                self._note_replaced(path, slot, entry)
        return below

    @staticmethod
    def _was_in_base(entry: Entry | None, first: Entry | None, name: bytes) -> bool:
        """Tell whether base had something at a name that the view has replaced and the first tree
        leaves alone.
        """
        is_changed = first is not None and first.children is not None and name in first.children
        return entry is not None and entry.had_base and not is_changed

    def _shown_name(self, directory: _ComposedDirectory, name: bytes) -> ShownName | None:
        entry = directory.entry.children.get(name) if directory.entry is not None and directory.entry.children else None
        if entry is not None:
            if entry.is_tombstone:
                return None
            if entry.staged is None and self._base.look(entry.base) is None:
                return None
            return ShownName(entry, entry.staged, entry.source)
        if directory.source is None:
            return None
        rel = join(directory.source, name)
        return ShownName(None, None, rel) if self._base.look(rel) is not None else None

    def _lost_directory(
        self, directory: _ComposedDirectory, name: bytes, slot: RelPath | None
    ) -> _ComposedDirectory | None:
        """Return what a name shows that is a directory which the host has removed, with staged work
        in it: that stays staged.  None of any other.
        """
        entry = directory.entry.children.get(name) if directory.entry is not None and directory.entry.children else None
        if entry is None or entry.base is None or entry.staged is not None or not has_work(entry):
            return None
        path, place = join(directory.path, name), self._after.place_of(entry.base)
        if place is not None and place != slot:
            self._anew.add(Keep(0, path, source=place))
        return _ComposedDirectory(path, entry, None, slot if place is None else place)

    def _hide(self, path: RelPath, entry: Entry | None) -> None:
        """Hide what base will have at a name."""
        self._anew.add(Keep(0, path))
        if entry is not None:
            self._hidden.append(entry)

    def _note_replaced(self, path: RelPath, slot: RelPath | None, entry: Entry) -> None:
        """Note what base will have at a name where the view shows something else."""
        record = self._anew.record_at(path)
        if record is not None and slot not in (record.source, record.origin):
            self._hidden.append(entry)

    def _count_hidden(self) -> None:
        """Count, for each hard-linked file that stays, the future names in base that the view
        lacks.
        """
        todo = self._hidden
        while todo:
            entry = todo.pop()
            if entry.children and entry.path() not in self._compared:
                todo += entry.children.values()
            staged = entry.staged
            if staged is None or staged.base is None or len(staged.names) < 2 or kept_of(staged.ino) is not None:
                continue
            if entry not in self._survivors.of and not self._is_copied(staged):
                self._anew.unlinked[staged.base.ino] = self._anew.unlinked.get(staged.base.ino, 0) + 1

    def _is_copied(self, staged: Staged) -> bool:
        """Tell whether base has a file afterwards as a copy, with another number."""
        if staged.home is None:
            return False
        place = self._after.place_of(staged.home)
        return place is not None and self._after.goes_to_another_device(staged.home, place)

    def _show(
        self, path: RelPath, thing: ShownName, slot: RelPath | None, there: Entry | None, rel: RelPath | None
    ) -> _ComposedDirectory | None:
        """Record what a name shows now; return it if it is a directory to look into.

        ``there`` and ``rel``: what base has at the name afterwards, as
        :meth:`BaseAfterwards.there` tells.
        """
        if path in self._linked.paths:
            return None
        if thing.staged is not None:
            return self._show_staged(path, thing, thing.staged, slot, there, rel)
        assert thing.base is not None
        st = self._base.lstat(thing.base)
        is_directory = stat.S_ISDIR(st.st_mode)
        place = self._after.place_of(thing.base)
        staged = staged_for(self._second, self._base, st)
        if staged is not None and not has_data(staged, self._base, os.lstat(self._store.path(staged.ino))):
            if st.st_nlink > 1:
                self._anew.refuse(path)
            staged = None
        if staged is not None:  # a name that shows what is staged at another
            if place is None:
                self._anew.refuse(path)
            if place != slot:
                self._anew.add(Keep(0, path, source=place))
        elif place is None:
            self._anew.stage(path, thing, st, slot, there)
        elif self._after.is_changed(thing.base, st) or (
            is_directory and self._after.loses_epoch(thing.entry, thing.base, st)
        ):
            self._anew.stage_again(path, thing, st, place)
        else:
            touched = self._after.touched(thing.entry, thing.base, st) if is_directory else 0
            if place != slot or touched:
                self._anew.add(Keep(0, path, source=place, touched_ns=touched))
        if not is_directory:
            return None
        return _ComposedDirectory(path, thing.entry, thing.base, place)

    def _show_staged(
        self,
        path: RelPath,
        thing: ShownName,
        staged: Staged,
        slot: RelPath | None,
        there: Entry | None,
        rel: RelPath | None,
    ) -> _ComposedDirectory | None:
        entry = thing.entry
        assert entry is not None
        same = self._first.staged.get(staged.ino)
        if same is not None and not staged.links and len(staged.names) != len(same.names):
            same = None  # it is made once more, with other names
        is_directory = stat.S_ISDIR(os.lstat(self._store.path(staged.ino)).st_mode)
        place = self._after.place_of(staged.origin) if staged.origin is not None else None
        if same is not None:
            place = self._place_of_same(path, staged, same, slot, there, rel)
            if place != slot or entry.touched_ns:
                self._anew.add(Keep(0, path, source=place, touched_ns=entry.touched_ns))
        elif self._comes_back(entry, there):
            return None
        else:
            self._anew.add(self._staged_record(path, entry, staged, place, slot, there), staged)
        return _ComposedDirectory(path, entry, staged.origin, place) if is_directory else None

    def _comes_back(self, entry: Entry, there: Entry | None) -> bool:
        """Tell whether base has afterwards, at the very name, just what is staged there: what a
        commit kept.
        """
        if there is None or there.staged is None or kept_of(there.staged.ino) is None or len(there.staged.names) != 1:
            return False
        return comes_back_as(entry, self._all.path(there.staged.ino), self._store)

    def _place_of_same(
        self,
        path: RelPath,
        staged: Staged,
        same: Staged,
        slot: RelPath | None,
        there: Entry | None,
        rel: RelPath | None,
    ) -> RelPath:
        """Return where base has afterwards what is staged in both trees."""
        if staged.links:
            st = self._base.look(rel)
            is_there = (there is not None and there.staged is same) or (
                st is not None and staged_for(self._first, self._base, st) is same
            )
            if slot is None or not is_there or staged.base is None:
                self._anew.refuse(path)
            self._anew.unlinked[staged.base.ino] = (
                self._anew.unlinked.get(staged.base.ino, 1) - 1
            )  # it is a name of base again
            return slot
        places = [entry.path() for entry in same.names]
        if there is not None and there.staged is same:
            return there.path()
        shown = [entry.path() for entry in staged.names]
        if len(places) == len(shown) == 1:  # the two paths may be equal, and lead through other directories
            return places[0]
        free = [place for place in places if place not in shown]
        others = [one for one in shown if one not in places]
        if path not in others or len(free) != len(others):
            self._anew.refuse(path)
        return free[others.index(path)]

    def _staged_record(
        self,
        path: RelPath,
        entry: Entry,
        staged: Staged,
        place: RelPath | None,
        slot: RelPath | None,
        there: Entry | None,
    ) -> Keep:
        """Return the record of what is staged in the second tree alone; ``place`` is where its data
        comes from.
        """
        is_directory = stat.S_ISDIR(os.lstat(self._store.path(staged.ino)).st_mode)
        ino, origin = staged.ino, place
        if not is_directory:
            ino, origin = self._anew.data_of(staged)
        home, fingerprint = None, None
        if staged.home is not None and not is_directory:
            home = self._after.place_of(staged.home)
            if home is None and origin is not None and self._base.look(staged.home) is None:
                home, fingerprint = staged.home, staged.base  # the host has taken it: a conflict, as before
            elif home is not None and not staged.links and self._after.goes_to_another_device(staged.home, home):
                home = None  # by a number that nobody knows yet; what it arrives with is noted
            elif home is not None:
                fingerprint = self._after.fingerprint(staged.home, staged.base)
        if is_directory and staged.home is not None and staged.home == place:
            home, fingerprint = self._after.directory_home(staged.home)
        if staged.links and home is None:
            self._anew.refuse(path)
        if home is None and not is_directory:
            home, fingerprint = self._after.home_of(staged.home) or self._after.comes_there(slot, there)
        if home is None and not is_directory and not staged.links:
            home, fingerprint = self._renamed_from(staged, path)
        is_linked = staged.base is not None and self._second.linked.get(staged.base.ino) is staged
        key = staged.key if isinstance(staged.key, int) and staged.key != staged.ino else 0
        return Keep(
            0,
            path,
            ino,
            origin=origin,
            home=home,
            base=fingerprint,
            key=key if home == staged.home or is_linked else 0,
            links=staged.links if is_linked else 0,
            touched_ns=entry.touched_ns,
        )

    def _renamed_from(self, staged: Staged, path: RelPath) -> tuple[RelPath | None, Fingerprint | None]:
        """Return where base has afterwards the first tree's version of a file that the view shows
        at another path, and its fingerprint; None for both if nowhere or there.

        The fingerprint of what a commit brings is known only when it is there: until then a
        conflict is told by the ctime that it arrived with.
        """
        if staged.home is None or len(staged.names) != 1:
            return None, None
        there, shown = self._first.find(staged.home), self._second.find(staged.home)
        if there is not None and shown is not None and shown.is_tombstone:
            home, fingerprint = self._after.comes_there(staged.home, there)
            if home is not None:
                return home, fingerprint
        if self._version_by_home is None:
            self._version_by_home = {one.home: one for one in self._first.staged.values() if one.home is not None}
        version = self._version_by_home.get(staged.home)
        if version is None or version.links or len(version.names) != 1 or kept_of(version.ino) is not None:
            return None, None
        place = version.names[0].path()
        return (place, None) if place != path else (None, None)

    # ---- the rest

    def _part_what_still_shows(self) -> None:
        """Make a renamed file a file of its own if the view also shows the file that comes back."""
        renamed = [record for record in self._anew.found.records if self._after.is_renamed(record.path, record.home)]
        if not renamed:
            return
        records: list[Keep] = sorted(self._anew.found.records, key=lambda record: record.path.count(b"/"))
        tree = Tree(records)
        sources = {entry.source for _, entry in tree.walk()}
        for record in renamed:
            home = record.home
            assert home is not None
            shown, above = tree.resolve(home), home
            is_moved = False
            while (above := split(above)[0]) and not is_moved:
                is_moved = above in sources and tree.find(above) is None
            if is_moved or (shown is not None and shown.base == home and shown.staged is None):
                index = self._anew.found.records.index(record)
                self._anew.found.records[index] = msgspec.structs.replace(record, home=None, base=None)

    def _note_root(self) -> None:
        """Add the root itself, where base's root will be different."""
        root, st = self._second.root, self._base.lstat(ROOT)
        if root.staged is not None:
            self._anew.add(Keep(0, ROOT, root.staged.ino, origin=ROOT, touched_ns=root.touched_ns), root.staged)
        elif self._after.is_changed(ROOT, st) or self._after.loses_epoch(root, ROOT, st):
            self._anew.stage_again(ROOT, ShownName(root, None, ROOT), st, ROOT)
        elif touched := self._after.touched(root, ROOT, st):
            self._anew.add(Keep(0, ROOT, source=ROOT, touched_ns=touched))

    def _add_unseen(self) -> None:
        """Add the files that the first tree changes and that the view shows as they are by names
        without an entry.
        """
        for name in self._names:
            rel = self._survivors.of.get(name.entry)
            st = self._base.look(rel)
            if rel is None or st is None or stat.S_ISDIR(st.st_mode) or st.st_nlink == 1:
                continue
            file = st.st_dev, st.st_ino
            is_done = (
                file in self._linked.found.told
                or file in self._anew.copies_of_base
                or staged_for(self._second, self._base, st) is not None
            )
            is_gone = self._second.unlinked.get(self._base.number(st), 0) >= st.st_nlink
            if not is_done and not is_gone and self._after.is_changed(rel, st):
                self._anew.stage_again(name.path, ShownName(None, None, rel), st, name.path, is_nameless=True)

    def _add_nameless(self) -> None:
        """Add the files that the view shows under names of base alone that nobody has looked at."""
        for staged in self._second.staged.values():
            if staged.names or staged.home is None or staged.ino in self._first.staged:
                continue
            if any(linked.staged is staged for linked in self._linked.found.told.values()):
                continue
            home = self._after.place_of(staged.home)
            if home is None:
                self._anew.refuse(staged.home)
            ino, origin = self._anew.data_of(staged)
            record = Keep(
                0,
                home,
                ino,
                origin=origin,
                home=home,
                base=self._after.fingerprint(staged.home, staged.base),
                key=staged.key if isinstance(staged.key, int) else 0,
                links=staged.links,
                is_nameless=True,
            )
            self._anew.add_nameless(record, staged)
