"""Finishing a commit that a crash interrupted: the steps that are left, told from those done by
what is where.

The log says which steps are done for certain.  After a killed process only the next one is in
doubt; after a power failure several may be, as the log is not waited for.  So each step that is
left is first looked at: every one of them moves something between places that only this commit
uses, or may simply be done again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Sequence
from typing import IO, TypeAlias

from yolofs.commit.apply.commit_directory import SETTLED
from yolofs.commit.apply.found import FOUND, is_mixture, place_for, places_of
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot, copied_from
from yolofs.commit.apply.ready import Looks, Made, Ready, looks_of
from yolofs.commit.apply.step_log import Line
from yolofs.commit.apply.steps import MADE_BY_STEP, UNMADE, Steps, half_of
from yolofs.commit.apply.trees import ctimes_below, remove_tree
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.store.copying import at
from yolofs.store.store import StoreFiles
from yolofs.system import syscalls

_Arrival: TypeAlias = Create | Place | Link | Duplicate
_CHUNK_BYTES = 1 << 20
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class ResumedSteps(Steps):
    """Does what is left of the steps."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self._parks = {step.number: step for step in plan.steps if isinstance(step, Park)}
        self._fetches = {step.number: step for step in plan.steps if isinstance(step, Fetch)}
        self._changed_paths = {step.path for step in plan.steps if isinstance(step, Rewrite | SetMetadata)}
        self._looks: dict[int, Looks] = {}
        self._births: dict[int, int] = {}
        self._is_settled = False
        """Whether all steps are done for certain, and names in the store may be gone."""
        self._notes = _read_notes(map(os.fsencode, os.listdir(self._new.fd)))
        """The inode numbers that are noted, by what is noted of them; the folder may be large."""
        self._places = {step.number: step for step in plan.steps if isinstance(step, Place)}

    def recall_made(self, ready: Ready, *, is_back: bool = False) -> None:
        """Take note of what was made before the first step, and of what the directories were.

        ``is_back``: it was being taken back, and the disk may know more of that than was noted.
        """
        notes = set(map(os.fsencode, os.listdir(self._new.fd)))
        self._made = dict(ready.made)
        self._far.reopen()
        self._before = ready.directories
        self._recall_looks(ready)
        for step in self._plan.steps:
            if isinstance(step, Create | Duplicate | MakeDirectory | Rewrite) and step.number in self._made:
                if self._made[step.number].is_link:
                    continue
                if not is_back and b"%d%b" % (step.number, UNMADE) not in notes:
                    continue
                places = self._made_at(step.number), Spot(*split(step.path))
                if self._made[step.number].inode not in map(self._inode, places):
                    del self._made[step.number]
        self._is_settled = os.path.lexists(os.path.join(self._parking, SETTLED))

    @property
    def _copied_paths(self) -> frozenset[RelPath]:
        """Where things are put that had to be copied, as far as that is noted."""
        return frozenset(step.path for step in self._places.values() if self.made_by_step(step) is not None)

    def _recall_looks(self, ready: Ready) -> None:
        self._looks = ready.looks
        noted = {inode for what, inode in self._notes.items() if what.endswith(MADE_BY_STEP)}
        self._births = {inode: birth for inode, birth in ready.births.items() if inode not in noted}

    def recall(self, step: Step) -> None:
        """Take note of a step that is done: of what it left where it had to be copied to another
        device.
        """
        match step:
            case Park():
                aside = self._shelter(step.path, step.number)
                if self._inode(aside) is not None or self._inode(copied_from(aside)) is not None:
                    self._set_aside[step.number] = aside
            case Remove():
                self._recall_leftovers(self._shelter(step.path, step.number))
            case Create() if self.linked_from(step) is not None:
                pass
            case Create() | Place() | Link() | Duplicate():
                source, beside = self._comes_from(step), self._beside(step.path, step.number)
                spots = [] if isinstance(source.directory, Folder) else [source]  # what was replaced has come there
                self._recall_leftovers(copied_from(source), *dict.fromkeys((*spots, beside)))
            case Fetch() | MakeDirectory() | Rewrite() | SetMetadata() | FinishDirectory():
                pass

    def _recall_leftovers(self, *spots: Spot) -> None:
        self._leftovers += [spot for spot in spots if self._inode(spot) is not None]

    def do(self, step: Step) -> None:
        """Do one step, or the rest of it, unless it is done.

        Raises:
            OSError: it could not be done; ESTALE if something else lies where that is to be that it
                moves away.
        """
        if not self._is_done(step):
            self._check_victim(step)
            super().do(step)

    def _half_moved(self, step: Park | Remove) -> Spot | None:
        """Return where a directory lies that was being moved there name by name, None if none
        was.
        """
        half = half_of(self._shelter(step.path, step.number))
        return half if self._inode(half) is not None else None

    def _move_out(self, path: RelPath, folder: Folder, number: int) -> None:
        aside = self._shelter(path, number)
        if self._inode(half_of(aside)) is None:
            super()._move_out(path, folder, number)
            return
        self._directories.forget(path)
        self._move_by_names(Spot(*split(path)), aside, number)
        self._move_on(aside, folder, number, path)

    def _check_victim(self, step: Step) -> None:
        """Check that a step would move away what the plan says; what the host has put there since
        stays.
        """
        match step:
            case Park() | Remove() if self._half_moved(step) is not None:
                return
            case Park() | Remove():
                number: int | None = step.inode
            case Create() | Place() | Link() | Duplicate():
                number = self._replaced_by(step)
            case _:
                return
        there = self._inode(Spot(*split(step.path)))
        if number is not None and there not in (number, None) and not self._is_copied(step.path):
            raise OSError(errno.ESTALE, "the host has put something else there meanwhile")

    def _is_copied(self, path: RelPath) -> bool:
        """Tell whether something, or a directory that it lies in, came from another device, as a
        copy.
        """
        while path:
            if path in self._copied_paths:
                return True
            path = split(path)[0]
        return False

    def redo(self, step: Step, said: Line) -> None:
        """Do a step again that the log says is done, if a power failure has undone it.

        The log may have reached the disk before what it tells of.  What the host has done since is
        left alone: so it is done again only where what it moves is still where it was, or where
        nobody has touched the thing since.
        """
        match step:
            case Park() | Remove():
                if self._is_there_still(step, said):
                    self.do(step)
            case Link():
                if self._inode(Spot(*split(step.path))) is None and self._linked(step) is not None:
                    self.do(step)
            case Create() if (made := self.linked_from(step)) is not None:
                if self._was_never_named(step, made):
                    self.do(step)
            case MakeDirectory():
                if self._inode(self._comes_from(step)) is not None:
                    self.do(step)
            case Create() | Place() | Duplicate():
                source = self._comes_from(step)
                is_copied = self._inode(copied_from(source)) is not None  # the copy may not be in its place yet
                is_beside = is_copied and self._inode(self._beside(step.path, step.number)) is not None
                if is_beside or self._inode(source) is not None:
                    self.do(step)
            case Rewrite() | SetMetadata():
                spot, then = Spot(*split(step.path)), said.came
                now = self._seen(spot)
                if now is None or then is None or now.inode != then.inode or now.ctime_ns > then.ctime_ns:
                    return
                if isinstance(step, Rewrite) and self._has_data(step):
                    self._note(step.path, copying.copy_metadata(self._store.path(step.ino), self._at(spot)))
                else:
                    super().do(step)
            case Fetch() | FinishDirectory():
                self.do(step)

    def _is_there_still(self, step: Park | Remove, said: Line) -> bool:
        """Tell whether what the log says went is where it was; what the host has made there may
        have got its number.
        """
        spot = Spot(*split(step.path))
        if self._inode(spot) != step.inode:
            return False
        st = os.stat(spot.name, dir_fd=self._fd(spot), follow_symlinks=False)
        if said.went is None or st.st_ctime_ns <= said.went.ctime_ns or looks_of(st) == self._looks.get(st.st_ino):
            return True
        if stat.S_ISDIR(st.st_mode) or st.st_nlink > 1:  # later steps may have changed it, and the disk has that alone
            return True
        place = self._places.get(step.number) if isinstance(step, Park) else None
        return place is not None and place.path in self._changed_paths

    def _was_never_named(self, step: Create, made: Made) -> bool:
        """Tell whether a store inode has never got a name in base: that would have changed its
        ctime.
        """
        try:
            st = os.lstat(self._store.own_path(step.ino))
        except FileNotFoundError:
            return False
        return st.st_ino == made.inode and st.st_nlink == 1 and st.st_ctime_ns <= made.ctime_ns

    def release_store(self) -> None:
        """Take the names in the store away, but for those of which base has no other: the host has
        removed them.
        """
        for step, made in self._store_names:
            path = self._store.own_path(step.ino)
            with contextlib.suppress(FileNotFoundError):
                st = os.lstat(path)
                if st.st_ino == made.inode and st.st_nlink > 1:
                    os.unlink(path)

    def ctimes_of_copies(self) -> dict[int, int]:
        """Return the same of what was copied before the crash: what has changed since the note of
        it is the host's.
        """
        found: dict[int, int] = {}
        for step in self._places.values():
            if self.made_by_step(step) is None:
                continue
            noted_ns = os.stat(self._name_of_note(step), dir_fd=self._new.fd, follow_symlinks=False).st_ctime_ns
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                below = ctimes_below(self._at(self._reach(step.path)[0]))
                found.update({inode: ctime for inode, ctime in below.items() if ctime <= noted_ns})
        return found | super().ctimes_of_copies()

    def _has_data(self, step: Rewrite) -> bool:
        """Tell whether a file has the data that it was given."""
        return self._has_staged_bytes(self._reach(step.path)[0], step.ino)

    def _has_staged_bytes(self, spot: Spot, ino: int) -> bool:
        with (
            _reading(os.open(spot.name, _READING, dir_fd=self._fd(spot))) as there,
            _reading(self._store.open(ino, os.O_RDONLY)) as wanted,
        ):
            return _have_same_bytes(there, wanted)

    def _is_done(self, step: Step) -> bool:
        match step:
            case Park():
                return self._is_parked(step)
            case Remove():
                return self._is_removed(step)
            case Fetch():
                return self._inode(self._kept_at(step)) != step.inode
            case MakeDirectory() if step.number in self._made:
                return self._inode(self._made_at(step.number)) is None
            case MakeDirectory():
                return self._is_directory_made(step)
            case Create() if (made := self.linked_from(step)) is not None:
                return self._is_settled or self._inode(Spot(*split(step.path))) == made.inode
            case Create() | Place() | Link() | Duplicate():
                return self._has_arrived(step)
            case Rewrite(is_first=True) if self._inode(Spot(*split(step.path))) != step.inode:
                return True
            case SetMetadata(inode=None):
                return self._is_the_hosts(step.path)
            case SetMetadata():
                return self._inode(Spot(*split(step.path))) != step.inode
            case Rewrite() | FinishDirectory():
                return False

    def _is_the_hosts(self, path: RelPath) -> bool:
        """Tell whether nothing lies at a path that base had anywhere before the commit, or a copy
        of that.
        """
        there = self._inode(Spot(*split(path)))
        return bool(self._looks) and there is not None and there not in self._looks and not self._is_copied(path)

    def _is_directory_made(self, step: MakeDirectory) -> bool:
        """Tell whether a directory is there that was not made before the first step: it lies on
        another device.
        """
        there = self._inode(Spot(*split(step.path)))
        if not step.number:  # an earlier version made it in its place
            return there is not None
        if there is not None and there == self.made_by_step(step):
            return True
        self._clear(self._beside(step.path, step.number))
        self._forget_notes(step.number)
        return False

    def _is_parked(self, step: Park) -> bool:
        if self._half_moved(step) is not None:
            return False
        self.recall(step)
        parked = self._in(self._parked, step.number)
        if self._inode(parked) is not None or self._inode(copied_from(parked)) is not None:
            return True
        if step.number in self._set_aside or self._inode(Spot(*split(step.path))) == step.inode:
            return step.number in self._set_aside
        place = self._places[step.number]  # it may have gone on to there, and the log does not tell
        there = self._inode(Spot(*split(place.path)))
        return there is not None and there in (step.inode, self.made_by_step(place))

    def _is_removed(self, step: Remove) -> bool:
        if self._half_moved(step) is not None:
            return False
        kept = self._in(self._replaced, step.number)
        aside = self._shelter(step.path, step.number)
        if self._inode(aside) is None:
            if self._inode(kept) is not None and self._is_still_there(step):
                self._clear(kept)  # a copy, which another device had before its own had what it was copied from aside
            return self._inode(kept) is not None
        self._clear(kept)  # a copy to this device, perhaps not whole
        self._copy_to_kept(aside, kept, step.path)
        self._leftovers.append(aside)
        return True

    def _is_still_there(self, step: Remove) -> bool:
        """Tell whether what is to be removed from another device lies where it was."""
        try:
            is_far = self._directories.device(split(step.path)[0]) != self._device
        except (FileNotFoundError, NotADirectoryError):
            return False
        return is_far and self._inode(Spot(*split(step.path))) == step.inode

    def _back_up(self, spot: Spot, st: os.stat_result, step: Rewrite) -> None:
        """Keep, besides, what is neither what the file was nor surely ours: the host may have
        written it meanwhile.
        """
        kept = self._in(self._replaced, step.number)
        if self._inode(kept) is not None:
            was = os.lstat(self._at(kept))
            is_as_before = (st.st_size, st.st_mtime_ns) == (was.st_size, was.st_mtime_ns)
            if not is_as_before and not self._is_half_written(spot, step):
                self._copy_found(spot, step)
        super()._back_up(spot, st, step)

    def _copy_found(self, spot: Spot, step: Rewrite | Create) -> None:
        """Keep a copy of what the host has made of a file, durable before the file is written
        over.
        """
        found = os.path.join(self._parking, FOUND)
        os.makedirs(found, 0o700, exist_ok=True)
        half = self._in(self._new, step.number)
        self._clear(half)
        copying.copy_node(self._at(spot), self._at(half))
        if self._durable:
            sync_path(self._at(half))
        os.rename(self._at(half), place_for(self._parking, step))
        if self._durable:
            sync_path(found)
            sync_path(self._parking)

    def _is_half_written(self, spot: Spot, step: Rewrite) -> bool:
        """Tell whether a file that is kept already holds nothing but what it was, what it is to be,
        or what is found.

        What was found is kept as well: it was so before it was written over once more.
        """
        kept = self._in(self._replaced, step.number)
        found = places_of(self._parking, step)[:-1]
        with contextlib.ExitStack() as opened:
            there = opened.enter_context(_reading(os.open(spot.name, _READING, dir_fd=self._fd(spot))))
            parts = [opened.enter_context(_reading(os.open(kept.name, _READING, dir_fd=self._fd(kept))))]
            with contextlib.suppress(FileNotFoundError):  # the store may have lost it
                parts.append(opened.enter_context(_reading(self._store.open(step.ino, os.O_RDONLY))))
            parts += [opened.enter_context(_reading(os.open(path, _READING))) for path in found]
            return is_mixture(there, parts)

    def _has_arrived(self, step: _Arrival) -> bool:
        """Tell whether a step has put its thing in place, or do what is left of that; else clear
        what is half made.
        """
        source, beside = self._comes_from(step), self._beside(step.path, step.number)
        copied = copied_from(source)
        if self._inode(copied) is None:
            spots = dict.fromkeys((source, beside))
            if self._is_in_place(step, [spot for spot in spots if self._is_on_device_of(step, spot)]):
                return self._inode(source) is None or self._is_on_device_of(step, source)
            is_whole = isinstance(step, Place) or step.number in self._made
            for spot in (source, beside):
                if not (is_whole and spot == source):
                    self._clear(spot)
            self._forget_notes(step.number)
            return False
        self._leftovers.append(copied)
        if self._inode(beside) is not None and not self._is_in_place(step, [beside]):
            self._swap_in(beside, step)
        return True

    def _is_in_place(self, step: _Arrival, partners: Sequence[Spot]) -> bool:
        """Tell whether a step's path has what it is to have; keep what was there, if that was left
        undone.

        ``partners``: where that may have come from by a rename.
        """
        target, kept = Spot(*split(step.path)), self._in(self._replaced, step.number)
        there = self._inode(target)
        if step.replaced is None:
            source = self._comes_from(step)
            if source in partners and (isinstance(step, Place) or step.number in self._made):
                return self._inode(source) is None  # whatever is at the path: that may be the host's
            known = self.made_by_step(step)
            if known is not None or isinstance(step, Link):
                return there is not None and there in (known, self._linked(step))
            return there is not None and all(self._inode(spot) is None for spot in partners)
        replaced = self._replaced_by(step)
        for spot in partners:
            if self._inode(spot) == replaced and there != replaced:  # the two have changed places
                self._clear(kept)
                self._keep(spot, step)
                return True
        if self._inode(kept) is not None:
            if there is None and self._inode(self._comes_from(step)) is None:
                return True  # the host has removed it since
            if there is not None and there != replaced:
                return True
            if there is not None:
                self._clear(kept)  # another name or a copy of what is still in its place
        return False

    def made_by_step(self, step: _Arrival | MakeDirectory) -> int | None:
        """Return the inode number of what a step has made itself, on another device, as it was
        noted.
        """
        return self._noted(b"%d%b" % (step.number, MADE_BY_STEP))

    def _linked(self, step: _Arrival) -> int | None:
        return self._inode(Spot(*split(step.existing))) if isinstance(step, Link) else None

    def _replaced_by(self, step: _Arrival) -> int | None:
        """Return the inode number of what a step replaces, as it was noted, or else as the plan has
        it.
        """
        noted = self._noted(b"%d-replaces" % step.number)
        return noted if noted is not None else step.replaced

    def _name_of_note(self, step: _Arrival) -> bytes:
        return b"%d%b-%d" % (step.number, MADE_BY_STEP, self._notes[b"%d%b" % (step.number, MADE_BY_STEP)])

    def _forget_notes(self, number: int) -> None:
        inode = self._notes.pop(b"%d%b" % (number, MADE_BY_STEP), None)
        if inode is not None:
            os.unlink(b"%d%b-%d" % (number, MADE_BY_STEP, inode), dir_fd=self._new.fd)

    def _leave_note(self, note: bytes) -> None:
        super()._leave_note(note)
        for what, inode in _read_notes([note]).items():
            self._notes[what] = inode
            if what.endswith(MADE_BY_STEP):
                self._births.pop(inode, None)

    def _noted(self, what: bytes) -> int | None:
        return self._notes.get(what)

    def _comes_from(self, step: _Arrival | MakeDirectory) -> Spot:
        """Return where what a step brings in is made, or was parked."""
        if isinstance(step, Place):
            return self._set_aside.get(step.number) or self._parked_at(step.number)
        return self._made_at(step.number)

    def _parked_at(self, number: int) -> Spot:
        """Return where something is, or was, parked, or is to be again."""
        if number not in self._parks:  # it was fetched
            return self._in(self._parked, number)
        aside = self._shelter(self._parks[number].path, number)
        if not isinstance(aside.directory, Folder):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # the host has moved or removed it
                if self._directories.device(aside.directory) != self._device:
                    return aside
        return self._in(self._parked, number)

    def _is_on_device_of(self, step: _Arrival, spot: Spot) -> bool:
        """Tell whether a rename can lead from a spot to a step's path: elsewhere, inode numbers
        mean nothing.
        """
        device = self._directories.device(split(step.path)[0])
        return os.fstat(self._fd(spot)).st_dev == device

    # ---- places

    @staticmethod
    def _in(folder: Folder, number: int) -> Spot:
        return Spot(folder, b"%d" % number)

    def _inode(self, spot: Spot) -> int | None:
        """Return the inode number of what is at a spot, None if nothing is.

        It is negative, so that it is nobody's, if something else had that number before.
        """

        def look(fd: int) -> int:
            number = os.stat(spot.name, dir_fd=fd, follow_symlinks=False).st_ino
            born_ns = self._births.get(number)
            if born_ns is None or syscalls.birth_ns(at(fd, spot.name)) == born_ns:
                return number
            return -number

        try:
            if isinstance(spot.directory, Folder):
                return look(spot.directory.fd)
            return self._directories.within(spot.directory, look)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno != errno.EBADF:  # a folder on another device that is gone
                raise
            return None

    def _clear(self, spot: Spot) -> None:
        if self._inode(spot) is not None:
            self._unlocked(spot)
            remove_tree(self._at(spot))


def sync_path(path: bytes) -> None:
    """Wait until a file, or the names in a directory, are durable."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _reading(fd: int) -> IO[bytes]:
    return open(fd, "rb")


def _have_same_bytes(one: IO[bytes], other: IO[bytes]) -> bool:
    while chunk := one.read(_CHUNK_BYTES):
        if other.read(len(chunk)) != chunk:
            return False
    return not other.read(1)


def _read_notes(names: Iterable[bytes]) -> dict[bytes, int]:
    notes: dict[bytes, int] = {}
    for name in names:
        what, _, inode = name.rpartition(b"-")
        if inode.isdigit() and what:
            notes[what] = int(inode)
    return notes
