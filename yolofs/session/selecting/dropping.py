"""Taking back in a view what is not to be there of the changes that led to it.

If base has just what is wanted, and nothing else depends on the change, the state is written anew
without it.  Everything else is done by the operations that a mount calls: contents and metadata in
place, then names, one after the other as each becomes possible.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from yolofs.changes.changes import Change, ChangeKind, compare
from yolofs.changes.hunks import PLACES, Hunk, HunkKind, read_text
from yolofs.changes.picks import apply_picks
from yolofs.commit.select.restate import restate
from yolofs.commit.select.units import Unit, Units
from yolofs.errors import HardLinksError, YolofsError
from yolofs.journal.records import Keep, marker_of_whole_state
from yolofs.overlay import RENAME_NOREPLACE, Overlay
from yolofs.overlay.inodes import Attr, Inode
from yolofs.paths import RelPath, absolute, display, is_below, join, split
from yolofs.progress import Check, go_on, told_as_progress
from yolofs.session.authors import authors_of
from yolofs.session.journal_copy import JournalCopy
from yolofs.session.selecting.placing import ChangesByPlace, PlacesNow
from yolofs.session.selecting.separate_changes import is_base
from yolofs.session.selecting.wanted_hunks import WantedHunks, has_place, old_path
from yolofs.session.state_files import StateFiles
from yolofs.session.view_writer import MetadataWriter, ViewWriter
from yolofs.state.tree import Tree
from yolofs.store import file_data
from yolofs.system.clock import coarse_clock_ns

_CONTENT = frozenset({HunkKind.TEXT, HunkKind.BINARY})
_PARKED = b".yolofs-hunk-%b"
"""The name of what is on its way, while another thing is in its place.

It ends in what nobody can foresee. Otherwise another user of the directory could take it, or any
number.
"""


def take_hunks_back(
    trying: JournalCopy,
    old: Tree,
    kept: WantedHunks,
    places: ChangesByPlace,
    *,
    is_apart: bool = False,
    check: Check = go_on,
) -> dict[RelPath, tuple[str, ...]]:
    """Have the state beside a session show the old state with just the kept hunks; what cannot be
    set is returned.

    With ``is_apart`` the changes are not all that there are, but depend on no others
    (:mod:`yolofs.session.selecting.separate_changes`).  ``kept`` has to be settled
    (:mod:`yolofs.session.selecting.dependencies`).  What was there before is a generation.
    ``check`` is called again and again, and may raise.

    Raises:
        HardLinksError: it would part the names of one file.
        OSError: something cannot be read or written.
    """
    if all(map(kept.is_whole, range(len(kept.changes)))):
        return {}
    anew = _Anew()
    if is_apart:
        anew = _show_base_again(trying, kept, places)
        if anew.done.issuperset(kept.indices()):
            return {}
    present = trying.state()
    if is_base(old) and not is_apart:
        anew = _restate_without(trying, old, kept, places, check)
    check()
    state = trying.present()
    overlay = Overlay(trying.base, trying.store, trying.journal, state.tree, fresh_from=state.fresh_from)
    try:
        taking = _TakingBack(
            overlay, StateFiles(trying, old), StateFiles(trying, present), kept, places, anew.done, check
        )
        taking.remove(anew.again)
        taking.contents()
        taking.names()
        return taking.left_out
    finally:
        overlay.close()


# ---- what is taken out


class _Anew(NamedTuple):
    """The result of writing a state anew."""

    done: frozenset[int] = frozenset()
    """The changes that are taken back."""
    again: tuple[RelPath, ...] = ()
    """Things that come back with a deleted directory, and are to be deleted again; parents come
    after their content.
    """


def _restate_without(trying: JournalCopy, old: Tree, kept: WantedHunks, places: ChangesByPlace, check: Check) -> _Anew:
    """Write the state anew without the changes that are wholly taken back and depend on nothing."""
    present = trying.state()
    units = Units(present, trying.base, trying.store).all
    check()
    gone = _gone_for_good(kept, places)
    alone: list[Unit] = []
    less: list[Unit] = []
    for unit in units:
        if _stands_alone(unit, kept, places, gone):
            alone.append(unit)
        elif _comes_back(unit, kept, places):
            less.append(unit)
    for wanted in ([*alone, *less], alone) if less else (alone,):
        dropped = {path for unit in wanted for path in unit.paths}
        if not dropped:
            continue
        authors = authors_of(trying.live_changes)
        check()
        restated = restate(present, trying.base, trying.store, authors, dropped=dropped)
        if not dropped.issuperset(restated.dropped):  # others would go with it
            continue
        trying.append(marker_of_whole_state(coarse_clock_ns()), *restated.records)
        check()
        left = compare(old, trying.state(), trying.base, trying.store, progress=told_as_progress(check))
        again = {path for unit in wanted for path in _below(unit.removed, gone)}
        return _Anew(_done(left, kept, places), tuple(sorted(again, reverse=True)))
    return _Anew()


def _show_base_again(trying: JournalCopy, kept: WantedHunks, places: ChangesByPlace) -> _Anew:
    """Take out the changes of base's files that are wholly taken back; they depend on no others."""
    back = [
        index
        for index, change in enumerate(places.changes)
        if kept.is_none(index) and change.kind is not ChangeKind.ADDED
    ]
    now_ns = coarse_clock_ns()
    paths = [places.changes[index].path for index in back]
    trying.append(*(Keep(now_ns, path, source=path) for path in paths))
    return _Anew(frozenset(back))


def _stands_alone(unit: Unit, kept: WantedHunks, places: ChangesByPlace, gone: Sequence[RelPath]) -> bool:
    """Tell whether all changes of a unit are wholly taken back."""
    touched = {index for path in unit.paths for index in places.by_path.get(path, ())}
    if not touched or not all(map(kept.is_none, touched)):
        return False
    return not _below(unit.removed, gone)


def _comes_back(unit: Unit, kept: WantedHunks, places: ChangesByPlace) -> bool:
    """Tell whether a unit only takes deletions back, although some of what lay in them stays
    deleted.  Then base's own files come back, with all of their names.
    """
    touched = {index for path in unit.paths for index in places.by_path.get(path, ())}
    return bool(touched) and all(
        kept.is_none(index) and places.changes[index].kind is ChangeKind.DELETED for index in touched
    )


def _gone_for_good(kept: WantedHunks, places: ChangesByPlace) -> list[RelPath]:
    """Return the sorted paths of the old state at which what lay there is to be gone for good."""
    return sorted(path for path, index in places.left.items() if not kept.is_none(index))


def _below(tops: Iterable[RelPath], paths: Sequence[RelPath]) -> list[RelPath]:
    """Return which of sorted paths are at or below some others."""
    found: list[RelPath] = []
    for top in tops:
        if not top:
            return list(paths)
        at = bisect_left(paths, top)
        found += paths[at : at + 1] if paths[at : at + 1] == [top] else []
        found += paths[bisect_left(paths, top + b"/") : bisect_left(paths, top + b"0")]  # "0" follows "/"
    return found


def _done(left: list[Change], kept: WantedHunks, places: ChangesByPlace) -> frozenset[int]:
    """Return the changes that are taken back; ``left`` are those that remain."""
    old = {old_path(change) for change in left if change.old is not None}
    back = {
        index
        for index, change in enumerate(places.changes)
        if change.old is not None and kept.is_none(index) and old_path(change) not in old
    }
    moving = PlacesNow(places)
    moving.back.update(index for index in back if places.changes[index].kind is ChangeKind.RENAMED)
    new = {change.path for change in left if change.kind is ChangeKind.ADDED}
    return frozenset(back) | {
        index
        for index, change in enumerate(places.changes)
        if change.old is None and kept.is_none(index) and moving.new(change.path) not in new
    }


# ---- what is done by operations


class _DropStep(NamedTuple):
    """Something to be done to a name."""

    change: int
    act: Callable[[int], bool]
    """Does it if it is possible, and tells whether it was."""


class _TakingBack(ViewWriter):
    """Takes changes back in a view."""

    def __init__(
        self,
        overlay: Overlay,
        files: StateFiles,
        present: StateFiles,
        kept: WantedHunks,
        places: ChangesByPlace,
        done: frozenset[int],
        check: Check,
    ) -> None:
        """``files`` are those of the old state, ``done`` are changes that are taken back already;
        ``check`` is called before each other one.
        """
        super().__init__(overlay, files)
        self._check = check
        self._present = present
        self._kept = kept
        self._changes = places.changes
        self._places = places
        self._moving = PlacesNow(places)
        self._moving.back.update(index for index in done if self._changes[index].kind is ChangeKind.RENAMED)
        self._todo = [index for index in kept.indices() if index not in done]
        self._waiting: set[int] = set()
        """The changes of which what was there is not brought back yet."""

    def remove(self, paths: Iterable[RelPath]) -> None:
        """Remove what has come back with its directory, which may lie elsewhere now."""
        for path in map(self._moving.old, paths):
            with self.inode_at(path) as inode:
                is_directory = inode.is_directory
            with self.parent(path) as (parent, name):
                (self.overlay.rmdir if is_directory else self.overlay.unlink)(parent, name)

    # ---- contents and metadata, in place

    def contents(self) -> None:
        """Take back what changes nothing of names."""
        for index in self._todo:
            self._check()
            change = self._changes[index]
            if change.kind in (ChangeKind.DELETED, ChangeKind.TYPE) or (
                change.kind is ChangeKind.ADDED and self._kept.is_none(index)
            ):
                continue
            if any(hunk.kind not in PLACES or self._kept.of(index).get(hunk.id) for hunk in self._gone(index)):
                self._take_back_in_place(index)

    def _gone(self, index: int) -> list[Hunk]:
        """Return the hunks that are not wholly there."""
        kept = self._kept.of(index)
        return [hunk for hunk in self._kept.file(index).hunks if hunk.id not in kept or kept[hunk.id] is not None]

    def _take_back_in_place(self, index: int) -> None:
        change = self._changes[index]
        path = self._moving.path_of_new(index)
        kinds = {hunk.kind for hunk in self._gone(index)}
        if HunkKind.TARGET in kinds or self._is_other_with_names(change, path):
            self._replace(index, path)
            return
        with self.looked_up(path) as (inode, here):
            if change.kind is ChangeKind.ADDED or kinds & _CONTENT:
                self._write(index, inode)
            self._set_metadata(index, path, inode, here, kinds)

    def _is_other_with_names(self, change: Change, path: RelPath) -> bool:
        """Tell whether a file has more names, and is not the one that was there: it was replaced by
        a link.
        """
        here = self.look(path)
        if here is None or here.nlink < 2 or stat.S_ISDIR(here.mode) or change.old is None:
            return False
        there = self.files.look(old_path(change))
        now = self._present.look(change.path)
        return there is None or now is None or there.identity != now.identity

    def _replace(self, index: int, path: RelPath) -> None:
        """Replace the present thing by the earlier one, if it cannot be changed into that."""
        change, kept = self._changes[index], self._kept.of(index)
        gone = self._gone(index)
        stays = [hunk for hunk in self._kept.file(index).hunks if hunk not in gone and hunk.kind not in PLACES]
        if stays and change.new is not None and change.new.type == stat.S_IFREG:
            raise self._parted(path)
        there = self.files.look(old_path(change))
        assert there is not None
        with self.parent(path) as (parent, name):
            self.overlay.unlink(parent, name)
        self.make_one(path, there)
        self.finish_one(path, there)
        if change.new is not None and any(hunk.kind is HunkKind.OWNER and hunk.id in kept for hunk in stays):
            with self.inode_at(path) as inode:
                self.overlay.setattr(inode, uid=change.new.uid, gid=change.new.gid)

    def _parted(self, path: RelPath) -> HardLinksError:
        where = display(absolute(self.files.reader.base.root, path))
        return HardLinksError(
            f"a part of {where} cannot go without the rest: it has more names (hard links), and would lose one",
            hint="pick all hunks of it, or none: yolofs hunks",
        )

    def _write(self, index: int, inode: Inode) -> None:
        """Give a file the content that it is to have."""
        change, hunks, kept = self._changes[index], self._kept.file(index).hunks, self._kept.of(index)
        text = None
        if any(hunk.id in kept for hunk in hunks if hunk.kind not in (HunkKind.RENAMED, HunkKind.BINARY)):
            before = read_text(change.old, self.files.reader.store)
            text = apply_picks(before, hunks, kept) if before is not None else None
        overlay = self.overlay
        overlay.open(inode, os.O_WRONLY | os.O_TRUNC)
        try:
            fd = overlay.descriptors.of(inode, write=True)
            if text is not None:
                _write_all(fd, text)
            else:
                assert change.old is not None
                source = change.old.open(self.files.reader.store)
                try:
                    file_data.copy_data(source, fd, change.old.size)
                finally:
                    os.close(source)
        finally:
            overlay.release(inode, writer=True)

    def _set_metadata(self, index: int, path: RelPath, inode: Inode, here: Attr, kinds: set[HunkKind]) -> None:
        change, kept = self._changes[index], self._kept.of(index)
        old = change.old
        metadata = MetadataWriter(self.overlay, inode, here)
        missed: list[str] = []
        if old is not None and HunkKind.OWNER in kinds:
            missed += metadata.set_owner(old.uid, old.gid)
        if old is not None and HunkKind.XATTRS in kinds:
            missed += metadata.set_xattrs(old.metadata())
        mode = old.mode if old is not None and HunkKind.MODE in kinds else stat.S_IMODE(here.mode)
        if stat.S_IMODE(self.overlay.getattr(inode).mode) != mode and not stat.S_ISLNK(here.mode):
            missed += metadata.set_mode(mode)
        is_as_it_was = HunkKind.TIME in kinds or (
            bool(kinds & _CONTENT)
            and not any(hunk.kind in _CONTENT and hunk.id in kept for hunk in self._kept.file(index).hunks)
        )
        if old is not None and is_as_it_was:
            missed += metadata.set_times(here.atime_ns, old.mtime_ns)
        if missed:
            self.left_out[path] = tuple(missed)

    # ---- names

    def names(self) -> None:
        """Take back changes of places: what came goes, and what went or moved comes back."""
        steps: list[_DropStep] = []
        for index in self._todo:
            kind = self._changes[index].kind
            if not has_place(self._changes[index]) or self._kept.has_place(index):
                continue
            if kind in (ChangeKind.ADDED, ChangeKind.TYPE):
                steps.append(_DropStep(index, self._remove))
            if kind in (ChangeKind.DELETED, ChangeKind.TYPE):
                self._waiting.add(index)
                steps.append(_DropStep(index, self._bring))
            if kind is ChangeKind.RENAMED:
                steps.append(_DropStep(index, self._move))
        brought = [step.change for step in steps if step.act == self._bring]
        while steps:
            left: list[_DropStep] = []
            for step in steps:
                self._check()
                if not step.act(step.change):
                    left.append(step)
            if len(left) == len(steps) and not self._park(left):
                raise YolofsError(
                    "the names cannot be put back one by one, so nothing is done", hint="pick more of them, or all"
                )
            steps = left
        for index in reversed(brought):
            self._finish_directory(index)

    def _remove(self, index: int) -> bool:
        path = self._moving.new(self._changes[index].path)
        with self.inode_at(path) as inode:
            is_directory = inode.is_directory
            if is_directory and self.overlay.names(inode):
                return False
        with self.parent(path) as (parent, name):
            (self.overlay.rmdir if is_directory else self.overlay.unlink)(parent, name)
        return True

    def _can_have(self, index: int) -> RelPath | None:
        """Return the path that something of the old state goes to, None if it is not possible
        yet.
        """
        path = self._moving.old_slot(index)
        directory = split(old_path(self._changes[index]))[0]
        while directory:
            other = self._places.left.get(directory)
            if other is not None and other in self._waiting:
                return None
            directory = split(directory)[0]
        above = self.look(split(path)[0])
        if above is None or not stat.S_ISDIR(above.mode) or self.look(path) is not None:
            return None
        return path

    def _move(self, index: int) -> bool:
        path, here = self._can_have(index), self._moving.path_of_new(index)
        if path is None or is_below(path, here):
            return False
        self._rename(here, path)
        self._moving.parked.pop(index, None)
        self._moving.back.add(index)
        return True

    def _rename(self, here: RelPath, there: RelPath) -> None:
        with self.parent(here) as (parent, name), self.parent(there) as (new_parent, new_name):
            self.overlay.rename(parent, name, new_parent, new_name, RENAME_NOREPLACE)

    def _park(self, steps: list[_DropStep]) -> bool:
        """Put one of the things that wait for each other's places beside its own; return whether
        there is one.
        """
        for step in steps:
            index = step.change
            if step.act != self._move or index in self._moving.parked:
                continue
            directory, here = self._moving.directory_of_old(index), self._moving.path_of_new(index)
            above = self.look(directory)
            if above is None or not stat.S_ISDIR(above.mode) or is_below(directory, here):
                continue
            name = _PARKED % os.urandom(8).hex().encode()
            self._rename(here, join(directory, name))
            self._moving.parked[index] = name
            return True
        return False

    def _bring(self, index: int) -> bool:
        path = self._can_have(index)
        if path is None:
            return False
        there = self.files.look(old_path(self._changes[index]))
        if there is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), old_path(self._changes[index]))
        if not there.is_directory and there.st.st_nlink > 1 and there.side.ino is None:
            raise self._parted(old_path(self._changes[index]))
        self.make_one(path, there)
        if not there.is_directory:
            self.finish_one(path, there)
        self._waiting.discard(index)
        return True

    def _finish_directory(self, index: int) -> None:
        there = self.files.look(old_path(self._changes[index]))
        if there is not None and there.is_directory:
            self.finish_one(self._moving.old_slot(index), there)


def _write_all(fd: int, data: bytes) -> None:
    view, at = memoryview(data), 0
    while at < len(data):
        at += os.pwrite(fd, view[at:], at)
