"""Which thing is where after a crash: by inode number, time of birth, and the notes of steps."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from functools import cached_property

from yolofs.commit.apply.commit_directory import SETTLED
from yolofs.commit.apply.keeping import MADE_BY_STEP, UNMADE, Arrival
from yolofs.commit.apply.moving_out import spot_of_half_moved
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot, spot_of_copy
from yolofs.commit.apply.ready import MadeObject, Ready
from yolofs.commit.apply.steps import Steps
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
from yolofs.store.copying import at
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls
from yolofs.system.busy_trees import remove_tree
from yolofs.system.plain_files import is_there


class IdentifyingSteps(Steps):
    """Knows things of a commit by their identities."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self._parks = {step.number: step for step in plan.of(Park)}
        self._fetches = {step.number: step for step in plan.of(Fetch)}
        self._changed_paths = {step.path for step in (*plan.of(Rewrite), *plan.of(SetMetadata))}
        self._births: dict[int, int] = {}
        self._is_settled = False
        """Whether all steps are done for certain, and names in the store may be gone."""
        self._notes = _read_notes(map(os.fsencode, os.listdir(self._new.fd)))
        """The inode numbers that are noted, by what is noted of them; the folder may be large."""
        self._places = {step.number: step for step in plan.of(Place)}

    def recall_made(self, ready: Ready) -> None:
        """Take note of everything that was made before the first step, even if it was taken away
        again, and of what the directories were.
        """
        self._made = dict(ready.made)
        self._far.reopen()
        self._before = ready.directories
        self._kept_before = ready.kept
        self._recall_looks(ready)
        self._is_settled = is_there(os.path.join(self._parking, SETTLED))

    def forget_unmade(self, *, is_back: bool) -> None:
        """Forget what was made and is not there any more, so that it is made anew.

        ``is_back``: it was being taken back, and the disk may know more of that than was noted.
        """
        notes = set(map(os.fsencode, os.listdir(self._new.fd)))
        for step in self._plan.steps:
            if isinstance(step, Create | Duplicate | MakeDirectory | Rewrite) and step.number in self._made:
                if self._made[step.number].is_link:
                    continue
                if not is_back and b"%d%b" % (step.number, UNMADE) not in notes:
                    continue
                places = self._made_at(step.number), Spot(*split(step.path))
                if self._made[step.number].inode not in map(self._inode, places):
                    del self._made[step.number]

    @property
    def _copied_paths(self) -> frozenset[RelPath]:
        """The paths of steps whose thing had to be copied, as far as that is noted."""
        return frozenset(step.path for step in self._places.values() if self.made_by_step(step) is not None)

    def _recall_looks(self, ready: Ready) -> None:
        super()._recall_looks(ready)
        noted = {inode for what, inode in self._notes.items() if what.endswith(MADE_BY_STEP)}
        self._births = {inode: birth for inode, birth in ready.births.items() if inode not in noted}

    def made_by_step(self, step: Arrival | MakeDirectory) -> int | None:
        """Return the inode number of what a step has made itself, on another device, as it was
        noted.
        """
        return self._noted(b"%d%b" % (step.number, MADE_BY_STEP))

    def _linked(self, step: Arrival) -> int | None:
        """Return the inode number of the file that a link is another name of.

        After a power failure the link may be there while the name that it was made from is not.
        """
        if not isinstance(step, Link):
            return None
        there = self._inode(Spot(*split(step.existing)))
        made = self.made_for_link(step)
        return there if there is not None or made is None else made.inode

    def made_for_link(self, step: Link) -> MadeObject | None:
        """Return the file behind a link step's other name, if the commit made it before the first
        step; else None.
        """
        return self._made.get(self._numbers_of_files.get(step.existing, -1))

    @cached_property
    def _numbers_of_files(self) -> dict[RelPath, int]:
        """The numbers of the steps that bring in files that were made, by path."""
        return {step.path: step.number for step in self._plan.steps if isinstance(step, Create | Duplicate)}

    def _replaced_by(self, step: Arrival) -> int | None:
        """Return the inode number of what a step replaces, as it was noted, or else as the plan has
        it.
        """
        noted = self._noted(b"%d-replaces" % step.number)
        return noted if noted is not None else step.replaced

    def _name_of_note(self, step: Arrival) -> bytes:
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

    def _comes_from(self, step: Arrival | MakeDirectory) -> Spot:
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
                if self._directories.device(aside.directory) != self._device or self._stays_beside(number, aside):
                    return aside
        return self._in(self._parked, number)

    def _stays_beside(self, number: int, aside: Spot) -> bool:
        """Tell whether the parked thing, wherever it is now, is another user's directory and cannot
        move to another parent.
        """
        park, place = self._parks[number], self._places.get(number)
        for spot in (aside, *(Spot(*split(one.path)) for one in (place, park) if one is not None)):
            if self._inode(spot) == park.inode:
                path = self._at(spot)
                return not syscalls.may_leave_its_directory(path, os.lstat(path))
        return False

    def _is_on_device_of(self, step: Arrival, spot: Spot) -> bool:
        """Tell whether a rename can lead from a spot to a step's path: elsewhere, inode numbers
        mean nothing.
        """
        device = self._directories.device(split(step.path)[0])
        return os.fstat(self._fd(spot)).st_dev == device

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

    def recall(self, step: Step) -> None:
        """Take note of a step that is done, with the leftovers of its copies to another device."""
        match step:
            case Park():
                aside = self._shelter(step.path, step.number)
                if self._inode(aside) is not None or self._inode(spot_of_copy(aside)) is not None:
                    self._set_aside[step.number] = aside
            case Remove():
                self._recall_leftovers(self._shelter(step.path, step.number))
            case Create() if self.linked_from(step) is not None:
                pass
            case Create() | Place() | Link() | Duplicate():
                source, beside = self._comes_from(step), self._beside(step.path, step.number)
                spots = [] if isinstance(source.directory, Folder) else [source]  # what was replaced has come there
                away = self._away(step.path, step.number)
                self._recall_leftovers(spot_of_copy(source), *dict.fromkeys((*spots, beside, away)))
            case Fetch() | MakeDirectory() | Rewrite() | SetMetadata() | FinishDirectory():
                pass

    def _recall_leftovers(self, *spots: Spot) -> None:
        self._leave_over(*(spot for spot in spots if self._inode(spot) is not None))

    def _half_moved(self, step: Park | Remove) -> Spot | None:
        """Return where a directory lies that was being moved there name by name, None if none
        was.
        """
        half = spot_of_half_moved(self._shelter(step.path, step.number))
        return half if self._inode(half) is not None else None


def _read_notes(names: Iterable[bytes]) -> dict[bytes, int]:
    notes: dict[bytes, int] = {}
    for name in names:
        what, _, inode = name.rpartition(b"-")
        if inode.isdigit() and what:
            notes[what] = int(inode)
    return notes
