"""Work common to all steps of a commit: keep base's old files, and leave notes about new and
replaced ones.

What is on another device is copied there, and its original deleted once that is durable.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TypeAlias

from yolofs.commit.apply import copy_log, kept_copies
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.places import Spot
from yolofs.commit.apply.preparing import Preparing
from yolofs.commit.apply.trees import copy_tree
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
)
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.store.copying import at
from yolofs.store.interfaces import StoreFiles
from yolofs.store.restored import InodeCtime
from yolofs.system import syscalls
from yolofs.system.busy_trees import remove_tree

UNMADE = b"-unmade"
"""The end of the names of notes about what was made and then removed, as the commit was being taken
back.
"""
MADE_BY_STEP = b"-is"
"""Stands before the inode number in the name of a note about what a step itself has made on another
device.
"""
Arrival: TypeAlias = Create | Place | Link | Duplicate
"""A step that puts something at its path, over something else if ``replaced`` says so."""
NO_LINK = frozenset({errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
"""What link(2) answers where another hard link cannot be: other device, too many, filesystem or
kernel forbids it.
"""


class Keeping(Preparing):
    """Keeps what steps replace or remove, and what later steps need to know of earlier ones."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare the folders in ``directory``, the commit's own (an absolute path).

        Raises:
            OSError: it cannot be prepared, or base cannot be opened.
        """
        super().__init__(plan, store, directory, durable=durable)
        self._given_modes = {step.path for step in plan.of(FinishDirectory) if step.ino is not None}
        """Of these directories the plan says which mode they are to have."""
        self._out_paths = {step.path for step in (*plan.of(Park), *plan.of(Remove))}
        self._set_aside: dict[int, Spot] = {}
        """Where things are that could not be moved to ``parked``, by number."""
        self._numbers_names: dict[int, bool] = {}
        """By number of a device, whether it may have an inode number for each name of a file."""
        self._leftovers: dict[Spot, FileNumbers] = {}
        """The second places of copied things, with the thing at each: only that one is deleted in
        the end, whoever has taken its name.
        """
        self._copied: set[InodeCtime] = set()
        """The ctimes, by inode number, of all that lies in copied directories."""
        self._marked: set[int] = set()
        """The inode numbers of what steps of this process have made or copied themselves."""
        self._swept: list[tuple[InodeCtime, InodeCtime]] = []
        """The inode ctimes of directories before and after something of the commit's own was
        deleted in them, when all steps were done.
        """
        self._names_copied: set[InodeCtime] = set()
        """The inode ctimes of files with hard links of which names were copied to what is kept:
        these names are leftovers.
        """
        self._given_again: list[InodeCtime] = []
        """The inode ctimes of directories that got their times again when all steps were done."""
        self.may_not_link = False
        """Whether a step failed as a store inode may not get a name where it is to be."""

    def _workplace(self, path: RelPath, number: int, ino: int | None = None) -> Spot:
        """Return a spot, on the device of ``path``, to make something in before it is put there.

        ``ino``: the store inode that it is made from.  If only the directory gives it its group,
        it is made there.
        """
        if ino is not None and self._store.shown_owner(ino) is not None:
            return self._beside(path, number)
        if self._directories.device(split(path)[0]) == self._device:
            return Spot(self._new, b"%d" % number)
        return self._beside(path, number)

    def _shelter(self, path: RelPath, number: int) -> Spot:
        """Return a spot on the device of ``path`` that no step moves: beside its topmost ancestor
        that moves.
        """
        top = path
        above = split(path)[0]
        while above:
            if above in self._out_paths:
                top = above
            above = split(above)[0]
        return self._beside(top, number)

    def _copy_to_kept(self, source: Spot, target: Spot, path: RelPath) -> None:
        """Copy what is kept of another device, and note which of its names are hard links: the
        copies are not.
        """
        self._unlocked(source)
        self._as_seen.check(os.lstat(self._at(source)))
        names = kept_copies.names_of_several(self._at(source), target.name)
        kept_copies.note_kept_copies(self._parking, names)
        self._names_copied.update(kept_copies.inode_ctimes_of(self._at(source), target.name, names))
        self._copy_tree(source, target, path)

    def _copy_tree(self, source: Spot, target: Spot, path: RelPath) -> None:
        """Copy across devices, durably: the original is a leftover then, to be deleted at the
        end.
        """
        part = self._new_part(target)
        left_out, copies = copy_tree(self._at(source), self._at(part))
        self._note(path, left_out)
        copy_log.add(self._parking, copies, durable=self._durable)
        self._end_part(target)

    def _new_part(self, target: Spot) -> Spot:
        """Return the spot to make a copy at that goes to ``target``; what a kill has left there is
        removed.
        """
        self._unlocked(target)
        part = self._part_of(target)
        with contextlib.suppress(FileNotFoundError):
            remove_tree(self._at(part))
        return part

    def _end_part(self, target: Spot) -> None:
        """Give a copy its name, now that all of it is made: it is durable before."""
        part = self._part_of(target)
        self._sync_beside(part)
        syscalls.rename_noreplace(self._fd(part), part.name, self._fd(target), target.name)

    def _keep(self, old: Spot, step: Arrival) -> None:
        name = b"%d" % step.number
        try:
            syscalls.rename_noreplace(self._fd(old), old.name, self._replaced.fd, name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy_to_kept(old, Spot(self._replaced, name), step.path)
            self._leave_over(old)

    def _leave_over(self, *spots: Spot) -> None:
        """Take note of what is to be deleted when all is done, as far as it is there."""
        for spot in spots:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                st = os.stat(spot.name, dir_fd=self._fd(spot), follow_symlinks=False)
                self._leftovers[spot] = st.st_dev, st.st_ino

    def _keep_before(self, old: Spot, step: Arrival) -> Spot:
        """Keep the file that a rename is about to replace, and return its place, on the device of
        the old name.
        """
        kept = Spot(self._replaced, b"%d" % step.number)
        if self._is_linked(old, kept):
            return kept
        is_far = not self._may_rename(self._fd(old), self._replaced.fd)
        target = self._away(step.path, step.number) if is_far else kept
        self._unlocked(target)
        if not is_far or not self._is_linked(old, target):
            self._note(step.path, copying.copy_node(self._at(old), self._at(self._new_part(target))))
            self._end_part(target)
        return target

    @staticmethod
    def _may_rename(one_fd: int, other_fd: int) -> bool:
        """Tell whether a rename may lead from one directory to another: they are on one device and
        mount.
        """
        return syscalls.device_and_mount(at(one_fd, b".")) == syscalls.device_and_mount(at(other_fd, b"."))

    def _is_linked(self, old: Spot, new: Spot) -> bool:
        """Give something another name, and tell whether that could be done."""
        try:
            os.link(old.name, new.name, src_dir_fd=self._fd(old), dst_dir_fd=self._fd(new), follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            return False
        return True

    def _mark_made(self, spot: Spot, step: Arrival | MakeDirectory) -> None:
        """Leave a note of which object was made for a step just now: what is at its path may be the
        host's.

        It is made durable before, as a reader of the note takes it for whole.
        """
        self._mark_number(spot, step.number)

    def _mark_number(self, spot: Spot, number: int) -> None:
        self._sync_beside(spot)
        inode = os.stat(self._at(spot), follow_symlinks=False).st_ino
        self._marked.add(inode)
        self._leave_note(b"%d%b-%d" % (number, MADE_BY_STEP, inode))
        self._sync_directory(Spot(self._new, b""))

    def _leave_note(self, note: bytes) -> None:
        with contextlib.suppress(FileExistsError):
            os.symlink(b"-", note, dir_fd=self._new.fd)

    def _mark_replaced(self, step: Arrival) -> None:
        """Leave a note of which object is replaced, if it is not the plan's: its directory came
        from another device.
        """
        inode = self._reach(step.path)[1].st_ino
        if inode != step.replaced:
            self._leave_note(b"%d-replaces-%d" % (step.number, inode))
            self._sync_directory(Spot(self._new, b""))

    def _sync_beside(self, spot: Spot) -> None:
        """Make durable what was done to a thing: it may not be found again after a crash, or be
        taken for whole.
        """
        if not self._durable:
            return
        if os.fstat(self._fd(spot)).st_dev == self._device:  # its directory may forbid to be opened
            syscalls.sync_filesystem(self._new.fd)
            return
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd(spot))
        try:
            syscalls.sync_filesystem(fd)
        finally:
            os.close(fd)

    def _sync_directory(self, spot: Spot) -> None:
        """Make the names in a spot's directory durable: another device may have before what follows
        from them.
        """
        if not self._durable:
            return
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd(spot))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
