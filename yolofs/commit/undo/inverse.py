"""What takes a commit out of base again: an override tree over base as it is now that shows what
base had before.

Committing that tree undoes the commit.  Each name that the commit changed gets an entry: what it
removed or replaced shows as the very thing that it keeps (:mod:`yolofs.commit.plan.kept`), what it
moved as a redirect, what it made as nothing, and what it changed in place as a store inode with
what the file was.

A name is taken back only if base has there what the commit left.  Where another commit has changed
it since, it stays, and so does what cannot go without it; where the host has, that is told as
drift.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import TypeAlias, assert_never

import msgspec

from yolofs.commit.apply.commit_directory import PLAN
from yolofs.commit.apply.part_links import File, metadata_of
from yolofs.commit.plan.kept import Kept
from yolofs.commit.plan.plan import (
    Attributes,
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.commit.undo.applied import Applied, Later
from yolofs.journal.records import Fingerprint, Keep
from yolofs.paths import ROOT, RelPath, StoreIno, join, split
from yolofs.state.link_names import find_name_near
from yolofs.state.tree import Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system import syscalls

_ARRIVALS = (Create, Link, Duplicate, MakeDirectory, Place)
_Arrival: TypeAlias = Create | Link | Duplicate | MakeDirectory | Place
"""A step that puts something at its path."""


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
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be carried over, as :attr:`yolofs.commit.Outcome.left_out`."""
    copies: list[RelPath] = []
    """Where a hard link comes back as a file of its own, as no other name of the file was found."""

    def tree(self) -> Tree:
        """Return the tree."""
        return Tree(self.records)


def invert(
    applied: Applied,
    base: Base,
    store: Store,
    *,
    into: Store | None = None,
    later: Sequence[Later] = (),
    restored: Mapping[int, int] = {},
    force: bool = False,
) -> Inverse:
    """Return what undoes a commit that is done.  Makes store inodes, and changes nothing else.

    They are made in the session's ``store``, or in another one (``into``) where that is only to
    look.  ``later`` are the commits that came after it, ``restored`` the ctimes that are not the
    host's doing (:mod:`yolofs.store.restored`). With ``force`` what the host has changed is taken
    back, too, as far as that can be.

    Raises:
        OSError: base or what is kept cannot be read, or a store inode not be made.
    """
    return _Inverting(applied, base, store, into or store, later, restored, force=force).run()


class _Place(msgspec.Struct):
    """What is to show at one path."""

    source: RelPath | None = None
    """The thing of base that moves here."""
    kept: Kept | None = None
    """What comes back here."""
    opened: Kept | None = None
    """The directory that comes back here name by name, as not all in it is what was kept."""
    replaces: RelPath | None = None
    """The base path of what it takes the place of."""
    is_gone: bool = False
    was: Attributes | None = None
    """The metadata that the thing of base gets back."""
    content: int | None = None
    """The slot of the content that it gets back."""
    link: RelPath | None = None
    """The base path of a file of which this becomes a hard link again."""
    touched_ns: int = 0


def _order(item: tuple[RelPath, _Place]) -> int:
    """Return when the record of a place is made: what files become goes first, as others may be
    links of them.
    """
    place = item[1]
    return 0 if place.was is not None else 1 if place.link is not None else 2


class _Inverting:
    def __init__(
        self,
        applied: Applied,
        base: Base,
        store: Store,
        into: Store,
        later: Sequence[Later],
        restored: Mapping[int, int],
        *,
        force: bool,
    ) -> None:
        self._applied = applied
        self._moves = applied.moves
        self._commits = os.path.dirname(applied.directory)
        self._base = base
        self._store = store
        self._into = into
        self._later = later
        self._restored = restored
        self._force = force
        self._why_gone = f"commit {applied.number} does not keep what was there any more"
        again = max((one.number for one in later if one.applies_again), default=None)
        if again is not None:
            self._why_gone = f"it was taken back and applied again: yolofs undo {again}"
        self._found = Inverse()
        self._places: dict[RelPath, _Place] = {}
        """By the path at which it is to show."""
        self._arrivals = {
            step.path: (index, step) for index, step in enumerate(applied.plan.steps) if isinstance(step, _ARRIVALS)
        }
        self._removed = {step.path: step for step in applied.plan.steps if isinstance(step, Remove)}
        self._blocked: set[RelPath] = set()
        """Arrivals that stay."""
        self._touched = {one.path: one.mtime_ns for one in applied.ready.directories}
        """The times of directories before the commit."""
        self._sources: set[RelPath] = set()
        self._lone: dict[File, tuple[RelPath, Kept]] = {}
        """Where a file comes back of which base has no name, and what is kept of it: by its first
        name.
        """
        self._with_links: set[RelPath] = set()
        """Where files show that get further names, which is said with these."""
        self._brought: dict[Kept, Keep] = {}
        """The records of what comes back."""
        self._linked: dict[File, Keep] = {}
        """The records of files that have, or get, several names, by which file of base it is."""

    def run(self) -> Inverse:
        for index, arrival in self._arrivals.values():
            self._check_identity(index, arrival)
        while self._settle():
            pass
        for index, step in enumerate(self._applied.plan.steps):
            self._invert(index, step)
        self._open_up()
        self._sources = {place.source for place in self._places.values() if place.source is not None}
        for path, place in sorted(self._places.items(), key=_order):
            self._record(path, place)
        self._found.records.sort(key=lambda record: record.path.count(b"/") + 1 if record.path else 0)
        return self._found

    # ---- whose is it

    def _blame(self, path: RelPath, why: str = "") -> bool:
        """Note that a path is not as the commit left it; return whether that is to be passed over.

        If another commit has changed it, or if there is a reason why it cannot go, it stays; else
        it has drifted.
        """
        later = next((one for one in reversed(self._later) if one.touches(path)), None)
        if later is not None:
            if not later.takes_back:
                self._found.stays.setdefault(path, f"commit {later.number} has changed it since")
        elif why:
            self._found.stays.setdefault(path, why)
        else:
            self._found.drifted[path] = None
            return self._force
        return False

    def _is_by_later(self, path: RelPath) -> bool:
        return any(later.touches(path) for later in self._later)

    def _check_identity(self, index: int, step: _Arrival) -> None:
        """Block what a step put at its path if it is not there any more, or was changed since."""
        st = self._base.look(step.path)
        is_moved = isinstance(step, Place) and step.number in self._applied.parks
        if st is not None and self._is_it(index, step.path, st):
            is_directory = stat.S_ISDIR(st.st_mode) and isinstance(step, MakeDirectory | Place)
            if is_moved or is_directory or self._applied.is_as_left(st, self._store, self._restored):
                return
        elif is_moved:
            self._blame(step.path, "it is not there any more")
            self._blocked.add(step.path)
            return
        elif st is None and getattr(step, "replaced", None) is None and not self._is_by_later(step.path):
            return  # the host has removed it already
        if not self._blame(step.path):
            self._blocked.add(step.path)

    def _is_it(self, index: int, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether what is at a path is the thing that a step (by its index) has left there."""
        came = self._applied.came(index)
        return came in (None, st.st_ino) and self._applied.is_older(self._base.path(path), st)

    def _settle(self) -> bool:
        """Block what cannot go as something else stays; return whether there was anything."""
        before = len(self._blocked)
        for path, (_, step) in sorted(self._arrivals.items(), reverse=True):  # what is in a directory before that
            if path in self._blocked:
                continue
            park = self._applied.parks.get(step.number) if isinstance(step, Place) else None
            may_go = self._is_emptied(path) if isinstance(step, MakeDirectory) else True
            if not may_go or (park is not None and not self._is_free(park.path)):
                self._blocked.add(path)
        return len(self._blocked) != before

    def _is_emptied(self, directory: RelPath) -> bool:
        """Tell whether all in a directory that the commit made goes, too; note what does not."""
        try:
            names = self._base.names(directory)
        except OSError:
            return True
        is_emptied = True
        for name in names:
            path = join(directory, name)
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
        st = self._base.look(directory)
        if st is None or not stat.S_ISDIR(st.st_mode):
            self._blame(directory, "the directory is gone")
            return False
        now = join(directory, name)
        if now in self._arrivals:
            return now not in self._blocked
        return self._base.look(now) is None or self._blame(now)

    def _comes_back(self, directory: RelPath) -> bool:
        """Tell whether a directory comes back that the commit removed, with what it was in."""
        while directory:
            if directory in self._removed:
                kept = self._applied.kept(self._removed[directory].number)
                return kept is not None and self._is_free(directory)
            directory = split(directory)[0]
        return True

    # ---- where things show

    def _view(self, path: RelPath) -> RelPath:
        """Return where what base has at a path shows when all that may go has gone."""
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

    def _place(self, path: RelPath) -> _Place:
        return self._places.setdefault(path, _Place())

    # ---- what becomes of each name

    def _invert(self, index: int, step: Step) -> None:
        match step:
            case Place() | Create() | Link() | Duplicate() | MakeDirectory():
                if step.path not in self._blocked:
                    self._take_away(step)
            case Remove():
                if self._is_free(step.path):
                    self._keep(self._old_view(step.path), step.number)
            case Rewrite() | SetMetadata():
                self._set_back(index, step)
            case FinishDirectory():
                self._finish(index, step)
            case Park() | Fetch():
                pass
            case _:
                assert_never(step)

    def _take_away(self, step: _Arrival) -> None:
        """Let what the step brought in be gone, or where it was, and what it replaced be back."""
        if isinstance(step, Place) and step.number in self._applied.parks:
            self._place(self._view(step.path)).source = step.path
        above = split(step.path)[0]
        if (
            above not in self._blocked
            and above in self._arrivals
            and isinstance(self._arrivals[above][1], MakeDirectory)
        ):
            return  # it goes with its directory
        slot = self._slot(step.path)
        replaced = getattr(step, "replaced", None)
        if replaced is not None and not isinstance(step, MakeDirectory):
            self._keep(slot, step.number, replaces=step.path)
        else:
            self._place(slot).is_gone = True

    def _link(self, path: RelPath, file: File, kept: Kept) -> Kept | None:
        """Let a path be a hard link of a file of base again, or return what of the commit's own
        comes back there.
        """
        copy = os.lstat(kept.path(self._commits))
        name = find_name_near(self._base, file, path, is_good=lambda found: not self._goes(found))
        st = self._base.look(name)
        if st is not None and file[0] != copy.st_dev and not self._is_still(st, copy):
            name = None  # what was there is copied and gone, and another file may have got its number
        if name is not None and st is not None and not self._was_there(name, st, copy, kept):
            name = None
        if name is None:
            return self._link_kept(path, file, kept, copy)
        self._place(path).link = name
        return None

    def _was_there(self, name: RelPath, st: os.stat_result, copy: os.stat_result, kept: Kept) -> bool:
        """Tell whether a file of base is older than the commit: the host may have given its number
        to another since.
        """
        if stat.S_IFMT(st.st_mode) != stat.S_IFMT(copy.st_mode):
            return False
        birth_ns = syscalls.birth_ns(self._base.path(name))
        begun = os.lstat(os.path.join(self._commits, b"%d" % kept.commit, PLAN))
        return birth_ns is None or birth_ns <= begun.st_mtime_ns

    def _goes(self, path: RelPath) -> bool:
        """Tell whether what the commit brought to a path, or the directory that it made around it,
        is taken away.
        """
        index_and_step = self._arrivals.get(path)
        if index_and_step is not None:
            step = index_and_step[1]
            is_moved = isinstance(step, Place) and step.number in self._applied.parks
            return path not in self._blocked and not is_moved
        while path:
            path = split(path)[0]
            if path in self._arrivals:
                return path not in self._blocked and isinstance(self._arrivals[path][1], MakeDirectory)
        return False

    def _is_still(self, st: os.stat_result, copy: os.stat_result) -> bool:
        """Tell whether a file of base is that of which there is a copy: as it was, or as the commit
        has changed it.
        """
        if (st.st_size, st.st_mtime_ns) == (copy.st_size, copy.st_mtime_ns):
            return True
        is_changed = self._applied.changes_in_place(st.st_ino)
        return is_changed and self._applied.is_as_left(st, self._store, self._restored)

    def _link_kept(self, path: RelPath, file: File, kept: Kept, copy: os.stat_result) -> Kept:
        """Return what comes back at a path of a file that base has no more: all names of it become
        one file again.
        """
        known = self._lone.setdefault(file, (path, kept))
        if known == (path, kept):
            self._found.copies.append(path)
            return kept
        first, other = known
        if first in self._found.copies:
            self._found.copies.remove(first)
        st = os.lstat(other.path(self._commits))
        if (st.st_dev, st.st_ino) == (copy.st_dev, copy.st_ino) and copy.st_dev == file[0]:
            return kept  # both come back by a rename, as what they are
        self._place(first).kept = other
        return other

    def _keep(self, slot: RelPath, number: int, *, replaces: RelPath | None = None) -> None:
        """Let what the commit keeps be at a slot again; ``replaces``: what goes for it."""
        kept = self._applied.kept(number)
        if kept is None:
            self._found.stays.setdefault(slot, self._why_gone)
            return
        thing = Kept(self._applied.number, number)
        top = b"%d" % number
        if top in self._applied.parted:
            shown = self._link(slot, self._applied.parted[top], thing)
            if shown is None:
                return
            thing = shown
        for name, file in self._applied.parted.items():
            if name.startswith(top + b"/"):
                path, own = join(slot, name.partition(b"/")[2]), thing.below(name.partition(b"/")[2])
                other = self._link(path, file, own)
                if other not in (None, own):
                    self._place(path).kept = other
        place = self._place(slot)
        place.kept, place.replaces = thing, replaces
        place.touched_ns = self._time_of(slot, place.kept)

    def _open_up(self) -> None:
        """Have directories come back name by name in which something else is to show than what was
        kept there.
        """
        for path in list(self._places):
            above: list[RelPath] = []
            directory = path
            while directory:
                directory = split(directory)[0]
                above.append(directory)
            for directory in reversed(above):
                place = self._places.get(directory)
                if place is not None and place.kept is not None:
                    self._open(directory, place, place.kept)

    def _open(self, path: RelPath, place: _Place, kept: Kept) -> None:
        directory = kept.path(self._commits)
        place.kept, place.opened = None, kept
        for name in os.listdir(directory):
            below = join(path, name)
            if below not in self._places:
                inside = kept.below(name)
                self._places[below] = _Place(kept=inside, touched_ns=self._time_of(below, inside))

    def _time_of(self, path: RelPath, kept: Kept) -> int:
        """Return the time of a directory before anything was moved out of it; 0 if that is what it
        has.
        """
        touched = self._touched.get(path)
        is_directory = touched is not None and stat.S_ISDIR(os.lstat(kept.path(self._commits)).st_mode)
        return touched if is_directory and touched is not None else 0

    # ---- in place

    def _set_back(self, index: int, step: Rewrite | SetMetadata) -> None:
        is_first = step.inode is not None and (isinstance(step, SetMetadata) or step.is_first)
        now = self._moved_to(index, step) if is_first else step.path
        if now is None or step.was is None:
            return
        st = self._base.look(now)
        if st is None or stat.S_IFMT(st.st_mode) != stat.S_IFMT(step.was.mode) or not self._is_it(index, now, st):
            self._blame(now, "it is not there any more")
            return
        if not self._applied.is_as_left(st, self._store, self._restored) and not self._blame(now):
            return
        content = step.number if isinstance(step, Rewrite) else None
        if content is not None and self._applied.kept(content) is None:
            self._found.stays[now] = self._why_gone
            return
        place = self._place(self._view(now))
        place.source, place.was, place.content = now, step.was, content

    def _moved_to(self, index: int, step: Rewrite | SetMetadata) -> RelPath | None:
        """Return where a file is now that was changed before all that moves; by another name, if
        that has gone.
        """
        now = self._moves.after(step.path)
        line = self._applied.lines[index] if index < len(self._applied.lines) else None
        st = self._base.look(now)
        if line is None or line.came is None or (st is not None and st.st_ino == line.came.inode):
            return now
        return find_name_near(self._base, (line.came.device, line.came.inode), step.path)

    def _finish(self, index: int, step: FinishDirectory) -> None:
        """Give a directory back what it was itself; whatever is not there any more says so by
        itself.
        """
        st = self._base.look(step.path)
        if step.was is None or st is None or not stat.S_ISDIR(st.st_mode) or not self._is_it(index, step.path, st):
            return
        place = self._place(self._view(step.path))
        place.source = step.path
        if step.ino is not None:
            place.was = step.was
        if st.st_mtime_ns == step.mtime_ns:
            place.touched_ns = step.was.mtime_ns
            if not place.touched_ns and place.was is None:  # which a record cannot say: a store inode does
                place.was = self._as_it_is(step.path, st)

    def _as_it_is(self, path: RelPath, st: os.stat_result) -> Attributes:
        """Return what a directory of base is, but for its time, which is to be 0."""
        xattrs = copying.read_metadata(self._base.path(path)).xattrs
        found = tuple((os.fsencode(name), value) for name, value in xattrs)
        return Attributes(st.st_mode, st.st_uid, st.st_gid, st.st_atime_ns, 0, found)

    # ---- as records

    def _record(self, path: RelPath, place: _Place) -> None:
        if place.opened is not None:
            self._add(place, Keep(0, path, self._made_from(path, place.opened.path(self._commits), None, data=True)))
        elif place.kept is not None:
            self._add(place, self._kept(path, place, place.kept))
        elif place.link is not None:
            self._add_link(path, place.link)
        elif place.source is not None and place.was is not None:
            self._add(place, self._changed(path, place, place.source, place.was))
        elif place.source is not None:
            if path not in self._with_links:
                self._add(place, Keep(0, path, source=place.source))
        elif place.is_gone:
            self._add(place, Keep(0, path))

    def _add(self, place: _Place, record: Keep) -> None:
        self._found.records.append(msgspec.structs.replace(record, touched_ns=place.touched_ns))

    def _kept(self, path: RelPath, place: _Place, kept: Kept) -> Keep:
        """Return the record of what comes back; if it takes the place of a file, that is what it
        replaces.
        """
        known = self._brought.get(kept)
        if known is not None:
            return msgspec.structs.replace(known, path=path)
        now = place.replaces
        st = self._base.look(now)
        record = Keep(0, path, kept.ino)
        if st is not None and not stat.S_ISDIR(st.st_mode) and now not in self._sources:
            record = Keep(0, path, kept.ino, home=now, base=self._base.fingerprint(st))
        self._brought[kept] = record
        return record

    def _changed(self, path: RelPath, place: _Place, source: RelPath, was: Attributes) -> Keep:
        st = self._base.lstat(source)
        ino = self._made(path, source, was, place.content)
        if stat.S_ISDIR(st.st_mode):
            return Keep(0, path, ino, origin=source)
        links = st.st_nlink if st.st_nlink > 1 else 0
        has_data = stat.S_ISREG(st.st_mode) and place.content is None
        key = -self._base.number(st) if links else 0
        record = self._linked[st.st_dev, st.st_ino] = Keep(
            0,
            path,
            ino,
            origin=source if has_data else None,
            home=source,
            base=self._fingerprint(st),
            links=links,
            key=key,
        )
        return record

    def _add_link(self, path: RelPath, other: RelPath) -> None:
        """Let a path be a hard link of what base has at another."""
        st = self._base.lstat(other)
        known = self._linked.get((st.st_dev, st.st_ino))
        if known is None:
            links = st.st_nlink if st.st_nlink > 1 else 0
            known = self._linked[st.st_dev, st.st_ino] = Keep(
                0,
                self._view(other),
                self._made(path, other, None, None),
                origin=other if stat.S_ISREG(st.st_mode) else None,
                home=other,
                base=self._fingerprint(st),
                links=links,
                key=-self._base.number(st) if links else 0,
            )
            self._found.records.append(known)
            self._with_links.add(known.path)
        self._found.records.append(msgspec.structs.replace(known, path=path, touched_ns=0))

    def _fingerprint(self, st: os.stat_result) -> Fingerprint:
        return self._base.fingerprint(st)

    def _made(self, path: RelPath, other: RelPath, was: Attributes | None, content: int | None) -> StoreIno:
        """Make a store inode: what base has at another path, with the metadata and the content that
        it had.
        """
        source = self._base.path(other)
        if content is not None:
            source = Kept(self._applied.number, content).path(self._commits)
        return self._made_from(path, source, was, data=content is not None)

    def _made_from(self, path: RelPath, source: bytes, was: Attributes | None, *, data: bool) -> StoreIno:
        ino = self._into.reserve()
        left_out = self._into.copy_into(ino, source, data=data)
        self._found.numbers.append(ino)
        if was is not None:
            left_out = copying.write_metadata(self._into.path(ino), metadata_of(was))
        if left_out:
            self._found.left_out[path] = left_out
        return ino
