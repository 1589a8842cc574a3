"""What the host has put in the place of a commit's files, or changed of them: it is told apart from
what is ours, and kept in the folder ``found``.

A thing is ours by its inode number and by what it was given: its size, time and bytes.  The number
alone tells only which thing it is, and the host may have written to that very thing.
"""

from __future__ import annotations

import errno
import os
import stat

from yolofs.commit.apply import step_log
from yolofs.commit.apply.given_attributes import digests_of, has_others
from yolofs.commit.apply.keeping import Arrival
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot, spot_of_copy
from yolofs.commit.apply.ready import Ready, looks_of
from yolofs.commit.apply.recovery.done_steps import DoneSteps
from yolofs.commit.apply.recovery.found_files import FOUND, place_for
from yolofs.commit.apply.trees import are_alike
from yolofs.commit.plan.plan import Create, Duplicate, Link, MakeDirectory, Place, Plan, Rewrite, Step
from yolofs.paths import split
from yolofs.store import copying
from yolofs.store.copying import PathDescriptor
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls
from yolofs.system.plain_files import make_directory


class SwappedOut(DoneSteps):
    """Keeps what the host has made of what steps have put in place."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`~yolofs.commit.apply.steps.Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self._in_store: dict[int, bytes] = {}
        """The paths of the store inodes that themselves have got names in base, by inode number."""

    def put_swapped_back(self, ready: Ready | None) -> None:
        """Put in order a rollback that was killed between two renames: the thing that was to make
        way lies at the old thing's place.

        Danger: it may be the only copy, and whatever is left there is removed.
        """
        for step in self._plan.steps:
            if not isinstance(step, Create | Place | Link | Duplicate) or step.replaced is None:
                continue
            target = Spot(*split(step.path))
            there = self._inode(target)
            if there != self._replaced_by(step):
                continue
            kept, source = self._in(self._replaced, step.number), self._comes_from(step)
            beside, away = self._beside(step.path, step.number), self._away(step.path, step.number)
            for spot in dict.fromkeys((kept, source, beside, away)):
                thing = self._inode(spot)
                if thing is None or (thing == there and self._is_on_device_of(step, spot)):
                    continue
                if isinstance(step, Place):
                    self._put_moved_in_order(step, spot, thing)
                elif thing in self._numbers_made(step, ready):
                    if self._was_changed(spot, step, step_log.LoggedStep()):
                        self._keep_found(spot, step)
                elif not self._is_copy_of_old(step, spot, target):
                    self._keep_found(spot, step)

    def _put_moved_in_order(self, step: Place, spot: Spot, thing: int) -> None:
        """Put the thing that a step moved, or another one from its path, where it belongs."""
        source = self._comes_from(step)
        is_moved = thing == self._moved(step)
        if is_moved and spot == source:
            return
        if is_moved and self._inode(source) is None:
            self._return(spot, source)
        elif thing == self.made_by_step(step) and self._is_copy_at(spot_of_copy(source), spot):
            beside = self._beside(step.path, step.number)
            if spot != beside:
                self._return(spot, beside)
        elif not self._is_copy_of_old(step, spot, Spot(*split(step.path))):
            self._keep_found(spot, step)
            if self._inode(spot_of_copy(source)) is not None and self._inode(source) is None:
                self._return(spot_of_copy(source), source)  # to be copied anew
                self._forget_notes(step.number)

    def _is_copy_at(self, original: Spot, spot: Spot) -> bool:
        """Tell whether something is a copy of what is at another spot, which nobody has changed."""
        return self._inode(original) is not None and are_alike(self._at(original), self._at(spot))

    def _is_copy_of_old(self, step: Arrival, spot: Spot, target: Spot) -> bool:
        """Tell whether something is the copy of what a step replaces.  The original is at
        ``target`` again, and the host may have changed it since.
        """
        st = os.stat(self._at(spot), follow_symlinks=False)
        was = self._looks.get(step.replaced, ()) if step.replaced is not None else ()
        return (not stat.S_ISDIR(st.st_mode) and looks_of(st) in was) or are_alike(self._at(spot), self._at(target))

    def _numbers_made(self, step: Arrival, ready: Ready | None) -> tuple[int | None, ...]:
        """Return the inode numbers of what was made for a step: it can be made again."""
        made = ready.made.get(step.number) if ready is not None else None
        return self.made_by_step(step), self._linked(step), made.inode if made is not None else None

    def _moved(self, step: Place) -> int:
        """Return the inode number that the plan has of what a step brings in."""
        return (self._parks.get(step.number) or self._fetches[step.number]).inode

    def _return(self, kept: Spot, source: Spot) -> None:
        syscalls.rename_noreplace(self._fd(kept), kept.name, self._unlocked(source), source.name)

    def _was_changed(self, spot: Spot, step: Arrival, said: step_log.LoggedStep) -> bool:
        """Tell whether the host has changed a file since a step brought it in."""
        st = os.stat(self._at(spot), follow_symlinks=False)
        made = self._made.get(step.number)
        if isinstance(step, Link) and self._inode(Spot(*split(step.existing))) is None:
            made = self.made_for_link(step)
        is_made = made is not None and st.st_ino == made.inode
        # before the log: going on with a commit puts there what the host has made of a file by then
        if made is not None and is_made and (st.st_size, st.st_mtime_ns) != (made.size, made.mtime_ns):
            return True
        if self._is_same(st, said.came):
            return False
        if isinstance(step, Create | Duplicate) and self._has_others_attributes(spot, step):
            return True
        if isinstance(step, Create):  # its ctime changes with a link of it, too
            return not self._is_as_staged(spot, step)
        if is_made:
            return False
        match step:
            case Link():  # what has another name is not lost with this one; else it is a copy, or the other went
                there = Spot(*split(step.existing))
                is_there = self._inode(there) is not None
                return self._names_in_base(st) == 1 and not (is_there and are_alike(self._at(spot), self._at(there)))
            case _:
                return said.came is None or st.st_size != said.came.size or not self._has_time(st, step)

    def _has_others_attributes(self, spot: Spot, step: Create | Duplicate | MakeDirectory) -> bool:
        """Tell whether the host has given something attributes since a step brought it in."""
        now, staged = copying.read_metadata(self._at(spot)), self._store.path(step.ino)
        return has_others(now, digests_of(staged), os.lstat(staged).st_mode)

    @staticmethod
    def _is_same(st: os.stat_result, came: step_log.ObjectIdentity | None) -> bool:
        """Tell whether nobody has touched a thing since the log was written."""
        return came is not None and (st.st_ino, st.st_ctime_ns) == (came.inode, came.ctime_ns)

    def _is_as_staged(self, spot: Spot, step: Create) -> bool:
        """Tell whether a file has the size, time and bytes that are staged for it."""
        st = os.stat(self._at(spot), follow_symlinks=False)
        if (st.st_size, st.st_mtime_ns) != (step.size, step.mtime_ns):
            return False
        try:
            return not stat.S_ISREG(st.st_mode) or self._has_staged_bytes(spot, step.ino)
        except OSError:
            return False

    def _names_in_base(self, st: os.stat_result) -> int:
        """Return how many names a file has, but for the one that the store has for it."""
        if not self._in_store:
            self._in_store.update((made.inode, self._store.own_path(step.ino)) for step, made in self._store_names)
        path = self._in_store.get(st.st_ino)
        return st.st_nlink - (path is not None and inode_at(path) == st.st_ino)

    def _has_time(self, st: os.stat_result, step: Arrival) -> bool:
        """Tell whether something has the time that a step has given it from the store."""
        try:
            return isinstance(step, Duplicate) and os.lstat(self._store.path(step.ino)).st_mtime_ns == st.st_mtime_ns
        except FileNotFoundError:
            return False

    def _copy_found(self, thing: PathDescriptor, step: Rewrite | Create) -> None:
        """Keep a copy of what the host has made of a file, durable before the file is written
        over.
        """
        found = os.path.join(self._parking, FOUND)
        make_directory(found)
        half = self._in(self._new, step.number)
        self._clear(half)
        copying.copy_node(thing, self._at(half))
        if self._durable:
            sync_path(self._at(half))
        os.rename(self._at(half), place_for(self._parking, step))
        if self._durable:
            sync_path(found)
            sync_path(self._parking)

    def _keep_found(self, spot: Spot, step: Step) -> None:
        found = os.path.join(self._parking, FOUND)
        make_directory(found)
        folder = Folder(found, os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            name = os.path.basename(place_for(self._parking, step))
            try:
                self._unlocked(spot)
                syscalls.rename_noreplace(self._fd(spot), spot.name, folder.fd, name)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._copy_tree(spot, Spot(folder, name), step.path)
                self._clear(spot)
        finally:
            os.close(folder.fd)


def sync_path(path: bytes) -> None:
    """Wait until a file, or the names in a directory, are durable."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def inode_at(path: bytes) -> int | None:
    """Return the inode number of what is at a path, None if nothing is."""
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return None
