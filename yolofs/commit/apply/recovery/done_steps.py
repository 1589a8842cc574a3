"""Finds the steps of an interrupted commit that are done, from the files at their places, and
removes half-made files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import IO

from yolofs.commit.apply.keeping import Arrival
from yolofs.commit.apply.places import Spot, spot_of_copy
from yolofs.commit.apply.ready import MadeObject, looks_of
from yolofs.commit.apply.recovery.identities import IdentifyingSteps
from yolofs.commit.apply.step_log import LoggedStep
from yolofs.commit.plan.plan import (
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
from yolofs.paths import RelPath, split
from yolofs.store.copying import PathDescriptor

_CHUNK_BYTES = 1 << 20
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class DoneSteps(IdentifyingSteps):
    """Tells which steps are done."""

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
        """Tell whether something lies where base's own is to be, and is not that, or a copy of
        it.
        """
        there = self._inode(Spot(*split(path)))
        if there is None or not self._is_known(path):
            return False
        return there not in self._looks and not self._is_copied(path)

    def _is_not_bases(self, path: RelPath, thing: PathDescriptor, st: os.stat_result) -> bool:
        is_there_still = self._inode(Spot(*split(path))) == st.st_ino
        return (not is_there_still or self._is_the_hosts(path)) and super()._is_not_bases(path, thing, st)

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
        if self._inode(parked) is not None or self._inode(spot_of_copy(parked)) is not None:
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
        self._leave_over(aside)
        return True

    def _is_still_there(self, step: Remove) -> bool:
        """Tell whether what is to be removed from another device lies where it was."""
        try:
            is_far = self._directories.device(split(step.path)[0]) != self._device
        except (FileNotFoundError, NotADirectoryError):
            return False
        return is_far and self._inode(Spot(*split(step.path))) == step.inode

    def _has_arrived(self, step: Arrival) -> bool:
        """Tell whether a step has put its thing in place, and do the rest of it then; else clear
        half-made files.
        """
        source, beside = self._comes_from(step), self._beside(step.path, step.number)
        away = self._away(step.path, step.number)
        copied = spot_of_copy(source)
        if self._inode(copied) is None:
            spots = dict.fromkeys((source, beside, away))
            if self._is_in_place(step, [spot for spot in spots if self._is_on_device_of(step, spot)]):
                return self._inode(source) is None or self._is_on_device_of(step, source)
            is_whole = isinstance(step, Place) or step.number in self._made
            for spot in (source, beside):
                if not (is_whole and spot == source):
                    self._clear(spot)
            self._clear(away)  # another name or a copy of what is still in its place
            self._forget_notes(step.number)
            return False
        self._leave_over(copied)
        is_there = any(self._inode(spot) is not None for spot in (beside, away))
        if is_there and not self._is_in_place(step, [beside, away]):
            self._clear(away)
            self._swap_in(beside, step)
        return True

    def _is_in_place(self, step: Arrival, partners: Sequence[Spot]) -> bool:
        """Tell whether a step's path has its new thing; keep the old one, if the step had not yet.

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
        replaced, away = self._replaced_by(step), self._away(step.path, step.number)
        for spot in partners:
            old = self._inode(spot)
            if there != replaced and old is not None and (old == replaced or spot == away):
                self._clear(kept)  # the two have changed places
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

    def _is_copied(self, path: RelPath) -> bool:
        """Tell whether something, or a directory that it lies in, came from another device, as a
        copy.
        """
        while path:
            if path in self._copied_paths:
                return True
            path = split(path)[0]
        return False

    def _is_there_still(self, step: Park | Remove, said: LoggedStep) -> bool:
        """Tell whether a thing is still in its place though the log says that it went; a new file
        of the host's may have the same number.
        """
        spot = Spot(*split(step.path))
        if self._inode(spot) != step.inode:
            return False
        st = os.stat(spot.name, dir_fd=self._fd(spot), follow_symlinks=False)
        if said.went is None or st.st_ctime_ns <= said.went.ctime_ns or looks_of(st) in self._looks.get(st.st_ino, ()):
            return True
        if stat.S_ISDIR(st.st_mode) or st.st_nlink > 1:  # later steps may have changed it, and the disk has that alone
            return True
        place = self._places.get(step.number) if isinstance(step, Park) else None
        return place is not None and place.path in self._changed_paths

    def _was_never_named(self, step: Create, made: MadeObject) -> bool:
        """Tell whether a store inode has never got a name in base: that would have changed its
        ctime.
        """
        try:
            st = os.lstat(self._store.own_path(step.ino))
        except FileNotFoundError:
            return False
        return st.st_ino == made.inode and st.st_nlink == 1 and st.st_ctime_ns <= made.ctime_ns

    def _has_staged_bytes(self, spot: Spot, ino: int) -> bool:
        with (
            as_file(os.open(spot.name, READING, dir_fd=self._fd(spot))) as there,
            as_file(self._store.open(ino, os.O_RDONLY)) as wanted,
        ):
            return _have_same_bytes(there, wanted)


def _have_same_bytes(one: IO[bytes], other: IO[bytes]) -> bool:
    while chunk := one.read(_CHUNK_BYTES):
        if other.read(len(chunk)) != chunk:
            return False
    return not other.read(1)


def as_file(fd: int) -> IO[bytes]:
    """Return an open descriptor as a file to read from; closing it closes the descriptor."""
    return open(fd, "rb")
