"""Two states over the same base, one after the other: what is left staged when base has become what
the first shows.

``first`` is a tree that is about to be committed, ``second`` one that shows the view.  The result
is a tree over base as ``first`` makes it that shows the very same view.  Of what the view shows, it
tells by what it is: a thing of base that stays is shown from where it then lies; what ``first``
takes out of base, or changes, has to be staged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

import msgspec

from yolofs.commit.plan.kept import KeptAndStore, kept_of
from yolofs.commit.plan.overridden_names import survey
from yolofs.commit.plan.survivors import Survivors
from yolofs.commit.select.coming_back import comes_back_as
from yolofs.commit.select.linked_files import CannotTellError, LinkedFile, LinkedFiles
from yolofs.errors import HardLinksError
from yolofs.journal.records import Fingerprint, Keep, owner_of
from yolofs.paths import ROOT, RelPath, StoreIno, display, join, split
from yolofs.state.hard_links import staged_for
from yolofs.state.link_names import find_names_at
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.syscalls import device_and_mount


class Composed(msgspec.Struct):
    """What is left staged."""

    records: list[Keep] = []
    """The entries, parents before children; none if the view shows just what base will have."""
    numbers: list[StoreIno] = []
    """The store inodes that were made for it."""
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be carried over, as :attr:`yolofs.commit.Outcome.left_out`."""


def compose(
    first: Tree,
    second: Tree,
    base: Base,
    store: Store,
    commits: bytes,
    *,
    known: Mapping[RelPath, StoreIno] = {},
    sign: Callable[[Keep, Staged | None], Keep] = lambda record, _: record,
) -> Composed:
    """Return what is staged over base as ``first`` makes it, so that the view is what ``second``
    shows over base now.

    Makes store inodes, and changes nothing else.  ``commits``: the directory of all commits.
    ``known`` are store inodes that are just what base has at a path; of what is not in it a copy is
    made.  ``sign`` puts the time and the run into a record.

    Raises:
        HardLinksError: both change names of one file with hard links.
        OSError: base cannot be read, or a store inode not be made.
    """
    return _Composing(first, second, base, store, commits, known, sign).run()


def check_links(first: Tree, second: Tree, base: Base, store: Store, commits: bytes) -> None:
    """Check that :func:`compose` can tell the names of files with hard links apart, and make
    nothing.

    Raises:
        HardLinksError: both change names of one file with hard links.
        OSError: base cannot be read.
    """
    _Composing(first, second, base, store, commits, {}, lambda record, _: record).check_links()


class _Directory(NamedTuple):
    """A directory of the view, and what it is in base afterwards."""

    path: RelPath
    """In the view."""
    entry: Entry | None
    """Of the second tree."""
    source: RelPath | None
    """Where its names come from in base now, if nothing overrides them."""
    place: RelPath | None
    """Where base has it afterwards, None if it does not."""


class _Thing(NamedTuple):
    """What a name of the view shows."""

    entry: Entry | None
    staged: Staged | None
    base: RelPath | None
    """The path in base of what is not staged; of a staged directory where its names come from."""


class _Composing:
    def __init__(
        self,
        first: Tree,
        second: Tree,
        base: Base,
        store: Store,
        commits: bytes,
        known: Mapping[RelPath, StoreIno],
        sign: Callable[[Keep, Staged | None], Keep],
    ) -> None:
        self._first = first
        self._second = second
        self._base = base
        self._store = store
        self._all = KeptAndStore(store, commits)
        self._known = known
        self._sign = sign
        self._names = list(survey(first, base))
        self._survivors = Survivors(first, base, self._all, self._names)
        self._linked = LinkedFiles(
            first, second, base, self._survivors, place_of=self._place_of, is_far=self._goes_to_another_device
        )
        self._found = Composed()
        self._unlinked: dict[int, int] = dict(second.unlinked)
        self._copies: dict[tuple[int, int], StoreIno] = {}
        """Store inodes that stand for base files with several names, by device and inode number."""
        self._copied: dict[StoreIno, StoreIno] = {}
        """Those that stand for staged files whose data was in base and is not afterwards."""
        self._noted: set[RelPath] = set()
        self._told: set[RelPath] = set()
        """The paths in the view of files that are told by all of their names."""
        self._in_base: set[RelPath] = set()
        """The paths in the view at which base has something afterwards, or had it before the host
        took it.
        """

    def run(self) -> Composed:
        self.check_links()
        self._count_removed()
        todo = [_Directory(ROOT, self._second.root, ROOT, ROOT)]
        self._note_root()
        self._tell_links()
        while todo:
            todo += self._compare(todo.pop())
        self._count_told()
        for number, count in self._unlinked.items():
            if count <= 0:
                continue
            self._found.records.insert(0, self._sign(Keep(0, ROOT, source=ROOT, unlinked=(number, count)), None))
        self._add_unseen()
        self._add_nameless()
        self._found.records = [
            msgspec.structs.replace(record, replaces=True)
            if record.path in self._in_base and (record.ino is not None or record.source is not None)
            else record
            for record in self._found.records
        ]
        self._found.records.sort(key=lambda record: record.path.count(b"/") + 1 if record.path else 0)
        return self._found

    def check_links(self) -> None:
        """Find the files with hard links of which both change names; refuse if that cannot be
        told.
        """
        try:
            self._linked.find(self._names)
        except CannotTellError as error:
            self._refuse(error.args[0])

    def _tell_links(self) -> None:
        """Add the records of files with hard links of which both have changed names."""
        for number, count in self._linked.taken.items():
            self._unlinked[number] = self._unlinked.get(number, 0) - count
        for linked in self._linked.told.values():
            self._told.update(linked.view)
            self._in_base |= linked.after.intersection(linked.view)
            if linked.is_same and len(linked.view) <= len(linked.after):
                self._tell_same(linked)
            else:
                self._tell_anew(linked)

    def _tell_same(self, linked: LinkedFile) -> None:
        """Show by each name of the view one that base has afterwards; the others are hidden."""
        places = iter(sorted(linked.after.difference(linked.view)))
        for path in linked.view:
            if path not in linked.after:
                self._add(Keep(0, path, source=next(places)))

    def _tell_anew(self, linked: LinkedFile) -> None:
        """Stage the file by all of its names: none that base has shows it without an entry of its
        own.
        """
        place, staged = linked.place, linked.staged
        has_data = place is not None and self._is_content_kept(linked.home)
        if staged is None:
            ino = self._copy(linked.home, data=not has_data)
        elif staged.origin is None or has_data:
            ino, has_data = staged.ino, staged.origin is not None
        else:
            ino = self._with_data(staged)
        links = len(linked.after) if len(linked.after) > 1 else 0
        record = Keep(
            0,
            ROOT,
            ino,
            origin=place if has_data else None,
            home=place,
            base=self._fingerprint(linked.home, staged.base if staged is not None else None) if place else None,
            key=-linked.number if links else 0,
            links=links,
        )
        for path in linked.view:
            self._add(msgspec.structs.replace(record, path=path), staged)

    def _count_told(self) -> None:
        """Set how many names the view lacks of files that are told by all of them."""
        for linked in self._linked.told.values():
            is_same = linked.is_same and len(linked.view) <= len(linked.after)
            shown = len(linked.view) if is_same else 0
            self._unlinked[linked.number] = len(linked.after) - shown if len(linked.after) > 1 else 0

    def _count_removed(self) -> None:
        """Leave out of the names that the view lacks those in a directory that base has no more
        afterwards.
        """
        numbers = self._unlinked.keys() - self._second.linked.keys()
        todo = [name.natural for name in self._names if name.natural is not None and _is_directory(name.here)]
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
                    self._unlinked[self._base.number(st)] -= 1

    # ---- what base has afterwards

    def _place_of(self, rel: RelPath) -> RelPath | None:
        """Return where base has afterwards what it has at a path now, None if it has it no more."""
        names: list[bytes] = []
        while True:
            holder = self._survivors.name_of.get(rel)
            if holder is not None or not rel:
                place = holder.path() if holder is not None else ROOT
                break
            rel, name = split(rel)
            names.append(name)
        for name in reversed(names):
            entry = self._first.find(place)
            if entry is not None and entry.children and name in entry.children:
                return None
            place = join(place, name)
        return place

    def _change_of(self, rel: RelPath) -> Staged | None:
        """Return what the first tree makes of a thing of base that stays: other metadata, or other
        content.
        """
        holder = self._survivors.name_of.get(rel)
        if holder is not None and holder.staged is not None:
            return holder.staged
        st = self._base.look(rel)
        if st is None or stat.S_ISDIR(st.st_mode) or st.st_nlink == 1:
            return None
        return self._survivors.version_of(st)

    def _is_content_kept(self, rel: RelPath) -> bool:
        """Tell whether a thing of base that stays keeps its content."""
        change = self._change_of(rel)
        if change is None or change.origin is not None:
            return True
        st = self._base.lstat(rel)
        return not stat.S_ISREG(st.st_mode)

    def _fingerprint(self, rel: RelPath, known: Fingerprint | None = None) -> Fingerprint:
        """Return the fingerprint that a file of base has afterwards; ``known``: that it is to have
        been seen with.

        Of what the host has deleted it stays what is known.
        """
        here = self._base.look(rel)
        if here is None and known is not None:
            return known
        here = here if here is not None else self._base.lstat(rel)
        fingerprint = known if known is not None else self._base.fingerprint(here)
        change = self._change_of(rel)
        if change is None:
            return fingerprint
        st = self._survivors.st(change)
        size = fingerprint.size if change.origin is not None else st.st_size
        keeps_owner = (st.st_uid, st.st_gid) == (here.st_uid, here.st_gid)  # else it may not be ours to give
        return Fingerprint(st.st_mtime_ns, size, fingerprint.ino, owner_of(st) if keeps_owner else None)

    def _there(self, place: RelPath | None, name: bytes) -> tuple[Entry | None, RelPath | None]:
        """Return what base has at a name afterwards: an entry of the first tree, or the base path
        that it has now.
        """
        if place is None:
            return None, None
        entry = self._first.find(place)
        if entry is not None and entry.children and name in entry.children:
            child = entry.children[name]
            return (child, None) if not child.is_tombstone else (None, None)
        shown = self._first.resolve(place)
        if shown is None or shown.base is None:
            return None, None
        rel = join(shown.base, name)
        return None, rel if self._base.look(rel) is not None else None

    # ---- the view, directory by directory

    def _compare(self, directory: _Directory) -> list[_Directory]:
        """Add the records of the names in a directory, and return the directories in it that are to
        be looked at.
        """
        below: list[_Directory] = []
        first = self._first.find(directory.place) if directory.place is not None else None
        names = set(directory.entry.children or ()) if directory.entry is not None else set()
        names.update((first.children or ()) if first is not None else ())
        if directory.place is None and directory.source is not None:
            names.update(self._base.names(directory.source))
        for name in sorted(names):
            thing = self._thing(directory, name)
            entry, rel = self._there(directory.place, name)
            path = join(directory.path, name)
            slot = join(directory.place, name) if directory.place is not None else None
            if thing is None:
                if entry is not None or rel is not None:
                    self._hide(path, entry)
                continue
            if entry is not None or rel is not None or self._was_in_base(thing.entry, first, name):
                self._in_base.add(path)
            found = self._show(path, thing, slot, entry, rel)
            if found is not None:
                below.append(found)
        return below

    @staticmethod
    def _was_in_base(entry: Entry | None, first: Entry | None, name: bytes) -> bool:
        """Tell whether base had something at a name that the view has replaced and the first tree
        leaves alone.
        """
        is_changed = first is not None and first.children is not None and name in first.children
        return entry is not None and entry.had_base and not is_changed

    def _thing(self, directory: _Directory, name: bytes) -> _Thing | None:
        entry = directory.entry.children.get(name) if directory.entry is not None and directory.entry.children else None
        if entry is not None:
            if entry.is_tombstone:
                return None
            if entry.staged is None and self._base.look(entry.base) is None:
                return None
            return _Thing(entry, entry.staged, entry.source)
        if directory.source is None:
            return None
        rel = join(directory.source, name)
        return _Thing(None, None, rel) if self._base.look(rel) is not None else None

    def _hide(self, path: RelPath, entry: Entry | None) -> None:
        """Let a name show nothing that base has there afterwards."""
        self._add(Keep(0, path))
        todo = [entry] if entry is not None else []
        while todo:
            hidden = todo.pop()
            todo += hidden.children.values() if hidden.children else ()
            staged = hidden.staged
            if staged is None or staged.base is None or len(staged.names) < 2 or kept_of(staged.ino) is not None:
                continue
            if hidden not in self._survivors.of:  # the first tree makes it a hard link of what stays
                self._unlinked[staged.base.ino] = self._unlinked.get(staged.base.ino, 0) + 1

    def _show(
        self, path: RelPath, thing: _Thing, slot: RelPath | None, there: Entry | None, rel: RelPath | None
    ) -> _Directory | None:
        """Let a name show what it shows now; return it if it is a directory to be looked into.

        ``there`` and ``rel``: what base has at the name afterwards, as :meth:`_there` tells.
        """
        if path in self._told:
            return None
        if thing.staged is not None:
            return self._show_staged(path, thing, thing.staged, slot, there, rel)
        assert thing.base is not None
        st = self._base.lstat(thing.base)
        is_directory = stat.S_ISDIR(st.st_mode)
        place = self._place_of(thing.base)
        if staged_for(self._second, self._base, st) is not None:  # a name that shows what is staged at another
            if place is None:
                self._refuse(path)
            if place != slot:
                self._add(Keep(0, path, source=place))
        elif place is None:
            self._stage(path, thing, st, slot, there)
        elif self._is_changed(thing.base, st) or (is_directory and self._loses_epoch(thing.entry, thing.base, st)):
            self._stage_again(path, thing, st, place)
        else:
            touched = self._touched(thing.entry, thing.base, st) if is_directory else 0
            if place != slot or touched:
                self._add(Keep(0, path, source=place, touched_ns=touched))
        if not is_directory:
            return None
        return _Directory(path, thing.entry, thing.base, place)

    def _show_staged(
        self,
        path: RelPath,
        thing: _Thing,
        staged: Staged,
        slot: RelPath | None,
        there: Entry | None,
        rel: RelPath | None,
    ) -> _Directory | None:
        entry = thing.entry
        assert entry is not None
        same = self._first.staged.get(staged.ino)
        if same is not None and not staged.links and len(staged.names) != len(same.names):
            same = None  # it is made once more, with other names
        is_directory = stat.S_ISDIR(os.lstat(self._store.path(staged.ino)).st_mode)
        place = self._place_of(staged.origin) if staged.origin is not None else None
        if same is not None:
            place = self._place_of_same(path, staged, same, slot, there, rel)
            if place != slot or entry.touched_ns:
                self._add(Keep(0, path, source=place, touched_ns=entry.touched_ns))
        elif self._comes_back(entry, there):
            return None
        else:
            self._add(self._staged_record(path, entry, staged, place, slot, there), staged)
        return _Directory(path, entry, staged.origin, place) if is_directory else None

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
                self._refuse(path)
            self._unlinked[staged.base.ino] = self._unlinked.get(staged.base.ino, 1) - 1  # it is a name of base again
            return slot
        places = [entry.path() for entry in same.names]
        if there is not None and there.staged is same:
            return there.path()
        shown = [entry.path() for entry in staged.names]
        free = [place for place in places if place not in shown]
        others = [one for one in shown if one not in places]
        if path not in others or len(free) != len(others):
            self._refuse(path)
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
        """Return the record of what is staged in the second tree alone; ``place``: of what its data
        comes from.
        """
        is_directory = stat.S_ISDIR(os.lstat(self._store.path(staged.ino)).st_mode)
        ino, origin = staged.ino, place
        if not is_directory:
            ino, origin = self._data_of(staged)
        home, fingerprint = None, None
        if staged.home is not None and not is_directory:
            home = self._place_of(staged.home)
            if home is not None and not staged.links and self._goes_to_another_device(staged.home, home):
                home = None  # by a number that nobody knows yet; what it arrives with is noted
            elif home is not None:
                fingerprint = self._fingerprint(staged.home, staged.base)
        if staged.links and home is None:
            self._refuse(path)
        if home is None and not is_directory:
            home, fingerprint = self._comes_there(slot, there)
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

    def _data_of(self, staged: Staged) -> tuple[StoreIno, RelPath | None]:
        """Return what shows a staged file afterwards: a store inode, and where in base its data is,
        if it is there.
        """
        place = self._place_of(staged.origin) if staged.origin is not None else None
        if staged.origin is None or (place is not None and self._is_content_kept(staged.origin)):
            return staged.ino, place
        return self._with_data(staged), None

    def _with_data(self, staged: Staged) -> StoreIno:
        """Return a store inode that has the data, too, which a staged file had in base."""
        assert staged.origin is not None
        ino = self._copied.get(staged.ino)
        if ino is None:
            ino = self._copied[staged.ino] = self._copy(staged.origin, data=True)
            copying.copy_metadata(self._store.path(staged.ino), self._store.path(ino))
        return ino

    def _comes_there(self, slot: RelPath | None, there: Entry | None) -> tuple[RelPath | None, Fingerprint | None]:
        """Return the place and fingerprint of a file that comes back where another one is shown:
        that it replaces.
        """
        kept = kept_of(there.staged.ino) if there is not None and there.staged is not None else None
        if slot is None or there is None or there.staged is None or kept is None:
            return None, None
        st, path = self._survivors.st(there.staged), self._all.path(there.staged.ino)
        if stat.S_ISDIR(st.st_mode) or self._place_after(slot) != device_and_mount(path):  # it is copied, another then
            return None, None
        return slot, self._base.fingerprint(st)

    def _goes_to_another_device(self, rel: RelPath, place: RelPath) -> bool:
        """Tell whether a file of base is copied when the first tree puts it where it is to be."""
        is_there = self._base.look(rel) is not None  # else the host has deleted it
        return is_there and device_and_mount(self._base.path(rel)) != self._place_after(place)

    def _place_after(self, place: RelPath) -> tuple[int, int]:
        """Return the device and mount that something is on which the first tree puts in a place."""
        above = split(place)[0]
        while above:
            shown, there = self._first.resolve(above), self._base.look(above)
            if shown is not None and shown.base == above and there is not None:
                return device_and_mount(self._base.path(above))
            above = split(above)[0]  # it is made or moved there, to the device of the one above
        return device_and_mount(self._base.path(ROOT))

    # ---- what base has now and has not, or not so, afterwards

    def _is_changed(self, rel: RelPath, st: os.stat_result) -> bool:
        change = self._change_of(rel)
        if change is None:
            return False
        if change.origin is None and stat.S_ISREG(st.st_mode):
            return True
        new = copying.read_metadata(self._store.path(change.ino))
        old = copying.read_metadata(self._base.path(rel))
        is_directory = stat.S_ISDIR(st.st_mode)
        looks = (st.st_mode, st.st_uid, st.st_gid, 0 if is_directory else st.st_mtime_ns)
        wanted = (new.st.st_mode, new.st.st_uid, new.st.st_gid, 0 if is_directory else new.st.st_mtime_ns)
        return looks != wanted or sorted(new.xattrs) != sorted(old.xattrs)

    def _touched(self, entry: Entry | None, rel: RelPath, st: os.stat_result) -> int:
        """Return the time that a directory shows, if base has another one afterwards; else 0."""
        if entry is not None and entry.touched_ns:
            return entry.touched_ns
        return st.st_mtime_ns if self._gets_other_time(rel, st) else 0

    def _loses_epoch(self, entry: Entry | None, rel: RelPath, st: os.stat_result) -> bool:
        """Tell whether a directory shows the time 0, which only a store inode can say, and base has
        another then.
        """
        is_touched = entry is not None and entry.touched_ns
        return not st.st_mtime_ns and not is_touched and self._gets_other_time(rel, st)

    def _gets_other_time(self, rel: RelPath, st: os.stat_result) -> bool:
        holder = self._survivors.name_of.get(rel)
        if holder is None or (holder.staged is None and not holder.touched_ns):
            return False
        after = holder.touched_ns
        if not after and holder.staged is not None:
            after = self._survivors.st(holder.staged).st_mtime_ns
        return after != st.st_mtime_ns

    def _stage(
        self, path: RelPath, thing: _Thing, st: os.stat_result, slot: RelPath | None, there: Entry | None
    ) -> None:
        """Stage what base has no more afterwards."""
        assert thing.base is not None
        touched = thing.entry.touched_ns if thing.entry is not None else 0
        if stat.S_ISDIR(st.st_mode) or st.st_nlink == 1:
            home, fingerprint = (None, None) if stat.S_ISDIR(st.st_mode) else self._comes_there(slot, there)
            ino = self._content(thing.base)
            self._add(Keep(0, path, ino, home=home, base=fingerprint, touched_ns=touched))
            return
        file = st.st_dev, st.st_ino
        ino_or_none = self._copies.get(file)
        if ino_or_none is None:
            ino_or_none = self._copies[file] = self._linked_to_what_stays(thing.base, st) or self._content(thing.base)
        plain = Keep(0, path, ino_or_none)
        other = next((record for record in self._found.records if record.ino == ino_or_none), plain)
        self._add(msgspec.structs.replace(other, path=path, touched_ns=0))

    def _linked_to_what_stays(self, rel: RelPath, st: os.stat_result) -> StoreIno | None:
        """Stage another name of a file, which stays in base, so that names that do not can be links
        of it.
        """
        names, _ = find_names_at(self._base, rel)
        staying = [(name, place) for name in names if (place := self._place_of(name)) is not None]
        if not staying or self._second.linked or self._second.unlinked:
            if staying:
                self._refuse(rel)
            return None
        name, place = staying[0]
        path = self._path_in_view(name)
        if path is None:
            self._refuse(rel)
        has_data = self._is_content_kept(name) and stat.S_ISREG(st.st_mode)
        ino = self._copy(name, data=not has_data)
        links = self._links_after(st, names)
        key = -self._base.number(st) if links else 0
        fingerprint = self._fingerprint(name)
        if links:
            self._count_name(-key)
        self._noted.discard(path)
        self._found.records = [record for record in self._found.records if record.path != path]
        origin = place if has_data else None
        self._add(Keep(0, path, ino, origin=origin, home=place, base=fingerprint, key=key, links=links))
        return ino

    def _links_after(self, st: os.stat_result, names: Sequence[RelPath]) -> int:
        """Return how many names base has afterwards for a file that has these now; 0 for one."""
        version = self._survivors.version_of(st)
        made = [entry for entry in version.names if entry not in self._survivors.of] if version is not None else []
        count = st.st_nlink - sum(self._place_of(name) is None for name in names) + len(made)
        return count if count > 1 else 0

    def _count_name(self, number: int) -> None:
        """Note that one of the names that base has for a file is an entry now, and no other one
        beside it.
        """
        self._unlinked[number] = self._unlinked.get(number, 0) + 1

    def _path_in_view(self, rel: RelPath) -> RelPath | None:
        """Return where the view shows what base has at a path; None if that cannot be told, or it
        does not.
        """
        above, name = split(rel)
        while above:
            entry = self._second.find(above)
            if entry is not None and entry.source != above:
                return None
            above = split(above)[0]
        shown = self._second.resolve(rel)
        return rel if shown is not None and shown.base == rel and shown.staged is None and name else None

    def _stage_again(
        self, path: RelPath, thing: _Thing, st: os.stat_result, place: RelPath, *, is_nameless: bool = False
    ) -> None:
        """Stage what base has otherwise afterwards: as it is now."""
        assert thing.base is not None
        if stat.S_ISDIR(st.st_mode):
            ino = self._copy(thing.base, data=False)
            touched = thing.entry.touched_ns if thing.entry is not None else 0
            self._add(Keep(0, path, ino, origin=place, touched_ns=touched))
            return
        if st.st_nlink > 1 and self._goes_to_another_device(thing.base, place):
            self._part_names(path, thing.base, st, is_nameless=is_nameless)
            return
        file = st.st_dev, st.st_ino
        ino_or_none = self._copies.get(file)
        has_data = self._is_content_kept(thing.base) and stat.S_ISREG(st.st_mode)
        if ino_or_none is None:
            ino_or_none = self._copies[file] = self._copy(thing.base, data=not has_data)
        fingerprint = self._fingerprint(thing.base)
        links = self._links_after(st, find_names_at(self._base, thing.base)[0]) if st.st_nlink > 1 else 0
        key = -self._base.number(st) if links else 0
        origin = place if has_data else None
        if links and not is_nameless:
            self._count_name(self._base.number(st))
        record = Keep(0, path, ino_or_none, origin=origin, home=place, base=fingerprint, links=links, key=key)
        if not links and self._goes_to_another_device(thing.base, place):
            record = Keep(0, path, ino_or_none, origin=origin)
        if is_nameless:
            self._found.records.append(self._sign(msgspec.structs.replace(record, is_nameless=True), None))
        else:
            self._add(record)

    def _part_names(self, path: RelPath, rel: RelPath, st: os.stat_result, *, is_nameless: bool) -> None:
        """Stage each name of a file that comes to lie on another device as a file of its own, as it
        is now.

        By which number base has it afterwards nobody knows yet, so its names cannot be known by
        that.
        """
        names, _ = find_names_at(self._base, rel)
        shown = [path if name == rel else self._path_in_view(name) for name in names]
        if is_nameless or len(names) != st.st_nlink or None in shown:
            self._refuse(path)
        self._copies[st.st_dev, st.st_ino] = ino = self._copy(rel, data=True)
        for one in shown:
            if one is not None:
                self._add(Keep(0, one, ino if one == path else self._copy(rel, data=True)))
                self._found.left_out[one] = ("hard link",)

    def _content(self, rel: RelPath) -> StoreIno:
        """Return a store inode that is what base has at a path."""
        ino = self._known.get(rel)
        return ino if ino is not None else self._copy(rel, data=True)

    def _copy(self, rel: RelPath, *, data: bool) -> StoreIno:
        ino = self._store.reserve()
        left_out = self._store.copy_into(ino, self._base.path(rel), data=data)
        self._found.numbers.append(ino)
        if left_out:
            self._found.left_out[rel] = left_out
        return ino

    # ---- the rest

    def _note_root(self) -> None:
        """Add what the root itself is, where that is not what base's will be."""
        root, st = self._second.root, self._base.lstat(ROOT)
        if root.staged is not None:
            self._add(Keep(0, ROOT, root.staged.ino, origin=ROOT, touched_ns=root.touched_ns), root.staged)
        elif self._is_changed(ROOT, st) or self._loses_epoch(root, ROOT, st):
            self._stage_again(ROOT, _Thing(root, None, ROOT), st, ROOT)
        elif touched := self._touched(root, ROOT, st):
            self._add(Keep(0, ROOT, source=ROOT, touched_ns=touched))

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
                file in self._linked.told
                or file in self._copies
                or staged_for(self._second, self._base, st) is not None
            )
            is_gone = self._second.unlinked.get(self._base.number(st), 0) >= st.st_nlink
            if not is_done and not is_gone and self._is_changed(rel, st):
                self._stage_again(name.path, _Thing(None, None, rel), st, name.path, is_nameless=True)

    def _add_nameless(self) -> None:
        """Add the files that the view shows under names of base alone that nobody has looked at."""
        for staged in self._second.staged.values():
            if staged.names or staged.home is None or staged.ino in self._first.staged:
                continue
            if any(linked.staged is staged for linked in self._linked.told.values()):
                continue
            home = self._place_of(staged.home)
            if home is None:
                self._refuse(staged.home)
            ino, origin = self._data_of(staged)
            record = Keep(
                0,
                home,
                ino,
                origin=origin,
                home=home,
                base=self._fingerprint(staged.home, staged.base),
                key=staged.key if isinstance(staged.key, int) else 0,
                links=staged.links,
                is_nameless=True,
            )
            self._found.records.append(self._sign(record, staged))

    def _add(self, record: Keep, staged: Staged | None = None) -> None:
        if record.path in self._noted:
            return
        self._noted.add(record.path)
        self._found.records.append(self._sign(record, staged))

    def _refuse(self, path: RelPath) -> NoReturn:
        raise HardLinksError(
            f"{display(self._base.path(path))} has hard links that are staged and that this would change, too",
            hint="commit or abort what is staged first",
        )


def _is_directory(st: os.stat_result | None) -> bool:
    return st is not None and stat.S_ISDIR(st.st_mode)
