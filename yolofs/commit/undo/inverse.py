"""Makes the override tree that takes a commit out of base again: over base as it is now it shows
base as it was before.

Committing that tree undoes the commit.  Each name that the commit changed gets an entry:

- What the commit removed or replaced shows as the thing that it keeps
  (:mod:`yolofs.commit.plan.kept_objects`).
- What it moved shows as a redirect, and what it made as nothing.
- What it changed in place shows as a store inode with the file as it was.

A name is taken back only if base has there what the commit left.  If a later commit has changed it,
it stays, and so does what cannot go without it.  If the host has, that is drift.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import assert_never

import msgspec

from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.overridden_names import survey
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    MetadataBefore,
    Park,
    Place,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.as_records import AsRecords
from yolofs.commit.undo.commits_around import NO_EARLIER_TIMES, EarlierTimes, LaterCommit
from yolofs.commit.undo.left_by_commit import is_before_moves
from yolofs.commit.undo.links_again import LinksAgain
from yolofs.commit.undo.made_anew import NOTHING_ANEW, MadeAnew
from yolofs.commit.undo.undoable_names import Inverse, NameAfterUndo, PuttingStep
from yolofs.journal.records import Keep
from yolofs.paths import ROOT, RelPath, StoreIno, join, split
from yolofs.state.link_names import find_name_near
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.restored import InodeCtime
from yolofs.store.store import Store, gone_on_failure
from yolofs.system.clock import is_kept_as


class _Inverting(LinksAgain, AsRecords):
    """One inverse; to be used once."""

    def run(self) -> Inverse:
        for index, arrival in self._arrivals.values():
            self._check_identity(index, arrival)
        self._check_links()
        while self._settle():
            pass
        for index, step in enumerate(self._applied.plan.steps):
            self._invert(index, step)
        self._open_up()
        self._link_to_what_comes_back()
        self._sources = {place.source for place in self._places.values() if place.source is not None}
        for path, place in sorted(self._places.items(), key=_order):
            self._record(path, place)
        self._found.records.sort(key=lambda record: record.path.count(b"/") + 1 if record.path else 0)
        self._count_names()
        return self._found

    def _check_links(self) -> None:
        """Block what would come back as a file of its own, as a later commit has its file."""
        for path, (index, step) in self._arrivals.items():
            if path in self._blocked:
                continue
            is_moved = isinstance(step, Place) and step.number in self._applied.parks
            if is_moved and isinstance(step, Place) and not self._may_move_back(index, step):
                self._blocked.add(path)
            if isinstance(step, MakeDirectory) or step.replaced is None:
                continue
            if not self._may_be_links(path, step.number):
                self._blocked.add(path)
        for path, removed in self._removed.items():
            if not self._may_be_links(path, removed.number):
                self._kept_away.add(path)
                if path in self._arrivals:  # which took its place
                    self._blocked.add(path)

    @property
    def numbers(self) -> Sequence[StoreIno]:
        """The store inodes that were made so far."""
        return self._found.numbers

    def _count_names(self) -> None:
        """Record, for each file with hard links, how many of its names in base are entries, so that
        these are not taken for names that were not found.
        """
        tree = self._found.tree()
        names = survey(tree, self._base) if tree.linked else ()
        numbers = [self._base.number(name.natural_st) for name in names if name.natural_st is not None]
        counts = Counter(number for number in numbers if number in tree.linked)
        self._found.records[:0] = [Keep(0, ROOT, source=ROOT, unlinked=found) for found in sorted(counts.items())]

    def _invert(self, index: int, step: Step) -> None:
        match step:
            case Place() | Create() | Link() | Duplicate() | MakeDirectory():
                if step.path not in self._blocked:
                    self._take_away(index, step)
            case Remove():
                is_back = step.number in self._back and self._kept_in(step.number) is None
                if step.path not in self._kept_away and not is_back and self._is_free(step.path):
                    self._keep(self._old_view(step.path), step.number, replaces=self._renamed_to(step.path))
            case Rewrite() | SetMetadata():
                self._set_back(index, step)
            case FinishDirectory():
                self._finish(index, step)
            case Park() | Fetch():
                pass
            case _:
                assert_never(step)

    def _renamed_to(self, old: RelPath) -> RelPath | None:
        """Return the base path of a file's version that the commit put under another name, if that
        goes: then both names go together.
        """
        index, step = self._versions.get(old, (0, None))
        st = self._base.look(step.path) if step is not None else None
        if step is None or st is None or step.path in self._blocked or st.st_nlink > 1 or not stat.S_ISREG(st.st_mode):
            return None
        return step.path if self._is_it(index, step.path, st) else None

    def _take_away(self, index: int, step: PuttingStep) -> None:
        """Let what the step brought in be gone, or back in its old place; let what it replaced be
        back.
        """
        if isinstance(step, Place) and step.number in self._applied.parks:
            slot = self._view(step.path)
            if not self._link_moved(index, step, slot):
                self._place(slot).source = step.path
                self._link_inside(step, slot)
                self._note_written(index, step, slot)
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

    def _note_written(self, index: int, step: Place, slot: RelPath) -> None:
        """Note where a file goes back that somebody other than a commit has changed."""
        st = self._base.look(step.path)
        if st is None or not stat.S_ISREG(st.st_mode) or self._is_as_left(index, step.path, st):
            return
        if not self._is_by_later(step.path, st):
            self._found.as_now.append(slot)

    def _keep(self, slot: RelPath, number: int, *, replaces: RelPath | None = None) -> None:
        """Let what the commit keeps be at a slot again; ``replaces``: what goes for it."""
        kept = self._kept_in(number)
        if kept is None:
            if number not in self._back:
                self._found.stays.setdefault(slot, self._why_gone)
            return
        if not self._applied.is_kept_as_it_was(number, kept):
            self._found.as_now.append(slot)
        if not self._applied.is_mode_kept(number, kept):
            self._found.left_out[slot] = ("mode",)
        thing = KeptObject(self._applied.number, number)
        top = b"%d" % number
        of = self._applied.files_of_kept_copies.get(top) or self._applied.kept_of_links(kept)
        if of is not None:
            shown = self._link(slot, of, thing)
            if shown is None:
                return
            thing = shown
        for name, file in self._applied.files_of_kept_copies.items():
            if name.startswith(top + b"/"):
                path, own = join(slot, name.partition(b"/")[2]), thing.below(name.partition(b"/")[2])
                other = self._link(path, file, own)
                if other not in (None, own):
                    self._place(path).kept = other
        for inside, link in self._links_of_brought_back(slot, thing, kept):
            self._place(join(slot, inside) if inside else slot).link = link
            if not inside:
                return
        place = self._place(slot)
        place.kept, place.replaces = thing, replaces
        place.touched_ns = self._time_of(slot, place.kept)

    def _open_up(self) -> None:
        """Have a directory come back name by name if something else is to show in it than what was
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

    def _open(self, path: RelPath, place: NameAfterUndo, kept: KeptObject) -> None:
        directory = kept.path(self._commits)
        place.kept, place.opened = None, kept
        for name in os.listdir(directory):
            below = join(path, name)
            if below not in self._places:
                inside = kept.below(name)
                self._places[below] = NameAfterUndo(kept=inside, touched_ns=self._time_of(below, inside))

    def _time_of(self, path: RelPath, kept: KeptObject) -> int:
        """Return the time of a directory before anything was moved out of it; 0 if it still has
        that time.
        """
        touched = self._touched.get(path)
        is_directory = touched is not None and stat.S_ISDIR(os.lstat(kept.path(self._commits)).st_mode)
        return touched if is_directory and touched is not None else 0

    def _set_back(self, index: int, step: Rewrite | SetMetadata) -> None:
        now = self._moved_to(index, step) if is_before_moves(step) else step.path
        if now is None or step.was is None:
            return
        lost = self._lost_at(split(now)[0])
        if lost is not None:
            self._blame(now, self._why_lost(lost, "its directory", "that"))
            return
        st = self._base.look(now)
        if st is None or stat.S_IFMT(st.st_mode) != stat.S_IFMT(step.was.mode) or not self._is_it(index, now, st):
            self._blame(now, "it is not there any more")
            return
        content = step.number if isinstance(step, Rewrite) else None
        kept = self._kept_in(content) if content is not None else None
        if not self._is_as_left(index, now, st):
            is_set_back = self._is_by_undo(now, st) and (content is None or kept is not None)
            if is_set_back and self._is_as_before(step.was, kept, now, st):
                return  # an undo of another commit may have done that
            if not self._blame(now, file=st):
                return
        if content is not None and kept is None:
            self._found.stays[now] = self._why_gone
            return
        if content is not None and kept is not None and not self._applied.is_kept_as_it_was(content, kept):
            self._found.as_now.append(self._view(now))
        place = self._place(self._view(now))
        if place.link is None:  # else the file of which it becomes a link gets that back
            place.source, place.was, place.content = now, step.was, content

    def _is_as_before(
        self, was: MetadataBefore, kept: os.stat_result | None, path: RelPath, st: os.stat_result
    ) -> bool:
        """Tell whether a file has the metadata again that it had before the commit, and the size
        that is ``kept``.
        """
        if kept is not None and kept.st_size != st.st_size:
            return False
        if (was.mode, was.uid, was.gid) != (st.st_mode, st.st_uid, st.st_gid):
            return False
        xattrs = tuple(
            (os.fsencode(name), value) for name, value in copying.read_base_metadata(self._base.path(path)).xattrs
        )
        return is_kept_as(was.mtime_ns, st.st_mtime_ns) and sorted(xattrs) == sorted(was.xattrs)

    def _moved_to(self, index: int, step: Rewrite | SetMetadata) -> RelPath | None:
        """Return where a file is now that a step changed before anything moved; if its name is
        gone, another name of it.
        """
        now = self._moves.after(step.path)
        came = self._applied.came(index)
        st = self._base.look(now)
        known = self._anew.known_by(self._left(came)) if came is not None else []
        if came is None or (st is not None and any(one.inode == st.st_ino for one in known)):
            return now
        return find_name_near(self._base, known, step.path)

    def _finish(self, index: int, step: FinishDirectory) -> None:
        """Give a directory its own metadata back; if it is not there any more, say so, unless only
        its time was changed.
        """
        if step.was is None:
            return
        lost, st = self._lost_at(step.path), self._base.look(step.path)
        if lost is not None or st is None or not self._is_it(index, step.path, st):
            if step.ino is not None:
                self._blame(step.path, self._why_not_there(step.path, lost))
            return
        place = self._place(self._view(step.path))
        place.source = step.path
        is_its_time = is_kept_as(step.mtime_ns, st.st_mtime_ns)
        before_ns = self._earlier_times.before(step.path, step.was.mtime_ns if is_its_time else st.st_mtime_ns)
        if step.ino is not None and self._may_be_set_back(index, step, st):
            place.was = msgspec.structs.replace(step.was, mtime_ns=before_ns)
        if is_its_time or before_ns != st.st_mtime_ns:
            place.touched_ns = before_ns
            if not place.touched_ns and place.was is None:  # which a record cannot say: a store inode does
                place.was = self._as_it_is(step.path, st)

    def _why_not_there(self, path: RelPath, lost: RelPath | None) -> str:
        """Return why a directory does not get its metadata back, given what :meth:`_lost_at` says
        of it.
        """
        if lost is None:
            return "it is not there any more"
        return self._why_lost(lost) if lost == path else self._why_lost(lost, "its directory", "that")

    def _may_be_set_back(self, index: int, step: FinishDirectory, st: os.stat_result) -> bool:
        """Tell whether a directory may get its metadata back: it has those that the commit gave it,
        or it is forced.
        """
        is_as_left = self._applied.has_metadata_left(index, step, st, self._store)
        if is_as_left is None:
            is_as_left = self._is_as_before_later(step.path, st)
        if is_as_left:
            is_as_left = not self._has_hosts_attributes(index, step, st)
        return is_as_left or self._blame(step.path)

    def _has_hosts_attributes(self, index: int, step: FinishDirectory, st: os.stat_result) -> bool:
        """Tell whether a directory has attributes that it neither had before the commit nor got."""
        if self._applied.is_unchanged(index, st):
            return False
        return self._has_others_attributes(index, step.path, st)

    def _as_it_is(self, path: RelPath, st: os.stat_result) -> MetadataBefore:
        """Return what something in base is, except for its time, which is to be 0."""
        xattrs = copying.read_base_metadata(self._base.path(path)).xattrs
        found = tuple((os.fsencode(name), value) for name, value in xattrs)
        return MetadataBefore(st.st_mode, st.st_uid, st.st_gid, st.st_atime_ns, 0, found)


def invert(
    applied: Applied,
    base: Base,
    store: Store,
    *,
    into: Store | None = None,
    later: Sequence[LaterCommit] = (),
    earlier_times: EarlierTimes = NO_EARLIER_TIMES,
    restored: AbstractSet[InodeCtime] = frozenset(),
    anew: MadeAnew = NOTHING_ANEW,
    force: bool = False,
) -> Inverse:
    """Return what undoes a commit that is done.  It makes store inodes, which are removed if it
    fails, and changes nothing else.

    They are made in the session's ``store``, or in another one (``into``) if the caller only wants
    to look.  ``later`` are the commits that came after it, ``earlier_times`` those of
    directories before earlier commits that are undone, ``restored`` the ctimes that are not the
    host's doing (:mod:`yolofs.store.restored`), ``anew`` what commits and undos have made anew.
    With ``force`` what the host has changed is taken back, too, as far as that can be.

    Raises:
        OSError: base or what is kept cannot be read, or a store inode not be made.
    """
    inverting = _Inverting(applied, base, store, into or store, later, earlier_times, restored, anew, force=force)
    with gone_on_failure(into or store, inverting.numbers):
        return inverting.run()


def _order(item: tuple[RelPath, NameAfterUndo]) -> int:
    """Return when the record of a place is made: what files become goes first, as others may be
    links of them.
    """
    place = item[1]
    return 0 if place.was is not None else 1 if place.link is not None else 2
