"""Undoing what a commit has done to files in place: their content is written back, their metadata
set back.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from yolofs.commit.apply import step_log
from yolofs.commit.apply.directories import rename_with
from yolofs.commit.apply.part_links import metadata_of
from yolofs.commit.apply.places import Spot
from yolofs.commit.apply.ready import Looks, looks_of
from yolofs.commit.apply.resume import ResumedSteps
from yolofs.commit.plan.plan import (
    FinishDirectory,
    Link,
    MetadataBefore,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
)
from yolofs.paths import RelPath, StoreIno, split
from yolofs.store import copying, file_data
from yolofs.store.copying import PathDescriptor
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls

_OPENED = (0o600, stat.S_IWUSR, stat.S_IRWXU)
"""What is added to the mode of something to work on it."""


class Meanwhile(NamedTuple):
    """What the host has done while a commit was going on: paths of base."""

    found: list[RelPath]
    """Where it had put or changed something, which is in the folder ``found`` now."""
    gone: list[RelPath]
    """What base had there had been put into a directory that the host has moved or removed
    since.
    """
    left: list[RelPath]
    """What base had there stays in the commit's directory, as there is no directory any more to put
    it back into.
    """
    written: list[RelPath]
    """Paths at which a step had put a store inode itself and the host wrote to it: this version is
    staged now.
    """
    given: list[RelPath]
    """What it has given another mode or owner, which stays."""
    lost: list[RelPath]
    """What base had there is no longer kept: somebody has removed it from the commit's folder."""
    left_out: Mapping[RelPath, tuple[str, ...]] = {}
    """What could not be given back to what is there: names such as ``times``."""


class BackInPlace(ResumedSteps):
    """Undoes what was done in place."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`~yolofs.commit.apply.steps.Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self.meanwhile = Meanwhile([], [], [], [], [], [])
        self._written: list[Spot] = []
        self._late: list[Rewrite | SetMetadata | FinishDirectory] = []
        self._gone: dict[RelPath, Park | Remove] = {
            step.path: step for step in plan.steps if isinstance(step, Park | Remove)
        }
        self._placed = {step.path: step for step in plan.of(Place)}
        arrivals: tuple[Place | Link, ...] = (*plan.of(Place), *plan.of(Link))
        self._replacing = {step.path: step for step in arrivals if step.replaced is not None}
        self._untimed: set[tuple[int, Looks]] = set()
        """Inode numbers and looks of what is as it was except for its time: only its owner may set
        that.
        """

    def _is_elsewhere(self, step: Rewrite | SetMetadata | FinishDirectory) -> bool:
        """Tell whether something is not at a step's path, to which it was to be moved.

        After a power failure what was done to it may be there, and the move before it not.
        """
        if self._moves.before(step.path) in (None, step.path):
            return False
        if self._inode(Spot(*split(step.path))) is None:
            return True
        if not isinstance(step, FinishDirectory) and step.inode is not None:  # which is looked at then
            return False
        return not self._has_come(step.path) or self._lies_there_still(step.path)

    def _lies_there_still(self, path: RelPath) -> bool:
        """Tell whether a thing lies at a path, or above it, that was to be replaced by another."""
        while path and path not in self._replacing:
            path = split(path)[0]
        replacing = self._replacing.get(path)
        return replacing is not None and self._inode(Spot(*split(path))) == self._replaced_by(replacing)

    def _has_come(self, path: RelPath) -> bool:
        """Tell whether a path may have its new content: not if the old thing still lies there, or
        in the place of a directory above.
        """
        while path:
            gone, place = self._gone.get(path), self._placed.get(path)
            if gone is not None or place is not None:
                spot = Spot(*split(path))
                there = self._inode(spot)
                if place is not None and there == self._moved(place):
                    return True
                if gone is not None and there == gone.inode:
                    return self._may_number_names(spot)  # then numbers say nothing
            path = split(path)[0]
        return True

    def _undo_late(self) -> None:
        """Undo what was done in place to what is found only at its old path."""
        for step in self._late:
            old = self._moves.before(step.path)
            if old is None or self._inode(Spot(*split(old))) is None:
                continue
            if isinstance(step, Rewrite):
                self._write_back(msgspec.structs.replace(step, path=old), step_log.LoggedStep())
            elif step.ino is not None and step.was is not None and self._is_given_at(old, step.was, step.ino):
                self._give(old, step.was, step.ino, step_log.LoggedStep())

    def _is_given_at(self, old: RelPath, was: MetadataBefore, ino: StoreIno) -> bool:
        """Tell whether what base has at an old path has got the metadata of a store inode, or a
        part of it.
        """
        if self._looks_set(old, ino):
            _, st = self._reach(old)
            return (stat.S_ISDIR(st.st_mode) and st.st_ino in self._looks) or self._is_as_set(st, ino)
        return self._is_half_set(old, was, ino)

    def _write_back(self, step: Rewrite, said: step_log.LoggedStep) -> None:
        backup = self._in(self._replaced, step.number)
        if self._inode(Spot(*split(step.path))) is None:  # the host has removed that name
            if self._inode(backup) is not None:
                self._put_backup_there(backup, step)
                if step.was is not None:
                    self._give(step.path, step.was, None, said)
            return
        with self._held(step.path) as (thing, st):
            is_steps = self._inode(Spot(*split(step.path))) == step.inode == st.st_ino
            if self._inode(backup) is None:
                if step.was is not None and is_steps and _is_opened_up(st.st_mode, step.was.mode):
                    os.chmod(thing.path, stat.S_IMODE(step.was.mode))
                if said.came is not None:
                    self.meanwhile.lost.append(step.path)
                return
            if not stat.S_ISREG(st.st_mode) or (said.came is None and not is_steps):
                return  # the host's: what it was stays in ``replaced``
            self._write_into(thing, st, backup, step, said)
        self._written.append(backup)

    def _write_into(
        self, thing: PathDescriptor, st: os.stat_result, backup: Spot, step: Rewrite, said: step_log.LoggedStep
    ) -> None:
        """Write what was kept of a file back into it."""
        was = self._with_hosts(step.was, step.path, st, step.ino, said) if step.was is not None else None
        if st.st_uid == os.geteuid() and st.st_mode & 0o600 != 0o600:
            os.chmod(thing.path, stat.S_IMODE(st.st_mode) | 0o600)
        is_as_set = said.came is not None and st.st_ctime_ns == said.came.ctime_ns and self._is_as_set(st, step.ino)
        if not is_as_set and not self._is_half_written(thing, step):
            self._copy_found(thing, step)
        source = os.open(backup.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd(backup))
        try:
            target = os.open(thing.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                file_data.copy_data(source, target, os.fstat(source).st_size)
            finally:
                os.close(target)
        finally:
            os.close(source)
        if was is not None:
            self._give_to(thing, step.path, was, None, said)
        else:
            self._note(step.path, copying.copy_metadata(self._at(backup), thing))

    def _put_backup_there(self, backup: Spot, step: Rewrite) -> None:
        """Put what was kept of a file where the file was, across devices if need be."""
        kept = self._fd(backup), backup.name
        try:
            rename_with(self._directories, kept, split(step.path), syscalls.rename_noreplace)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy_tree(backup, Spot(*split(step.path)), step.path)
            self._written.append(backup)

    def _set_back(self, step: SetMetadata, said: step_log.LoggedStep) -> None:
        spot = Spot(*split(step.path))
        inode = self._inode(spot)
        if inode is None or (step.inode is not None and inode != step.inode):
            return
        st = os.stat(self._at(spot), follow_symlinks=False)
        is_untouched = said.came is None or st.st_size == said.came.size
        self._give(step.path, step.was, step.ino, said, times=is_untouched)

    def _is_as_set(self, st: os.stat_result, ino: int) -> bool:
        """Tell whether a file has the size and time that it was given; its ctime changes with each
        move of it.
        """
        try:
            wanted = self._store.lstat(ino)
        except FileNotFoundError:
            return True
        return (st.st_size, st.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns)

    def _looks_set(self, path: RelPath, ino: int) -> bool:
        """Tell whether what is at a path has the metadata of a store inode, as a step has given
        it.
        """
        try:
            _, st = self._reach(path)
            wanted = self._store.lstat(ino)
        except OSError:
            return False
        return (st.st_mode, st.st_uid, st.st_gid) == (wanted.st_mode, wanted.st_uid, wanted.st_gid)

    def _is_half_set(self, path: RelPath, was: MetadataBefore, ino: StoreIno) -> bool:
        """Tell whether what is at a path has got a part of the metadata of a store inode: the power
        has failed between the calls that give it.

        The times of a file come last, so it has its old ones.
        """
        try:
            with self._held(path) as (thing, st):
                wanted, there = self._store.metadata(ino), dict(copying.read_metadata(thing).xattrs)
        except OSError:
            return False
        if st.st_ino not in self._looks or not (stat.S_ISDIR(st.st_mode) or st.st_mtime_ns == was.mtime_ns):
            return False
        old, new = dict(metadata_of(was).xattrs), dict(wanted.xattrs)
        are_ours = all(there.get(name) in (old.get(name), new.get(name)) for name in {*old, *new, *there})
        of_owner = st.st_uid in (was.uid, wanted.st.st_uid) and st.st_gid in (was.gid, wanted.st.st_gid)
        return are_ours and of_owner and _is_on_the_way(st.st_mode, was.mode, wanted.st.st_mode)

    def _give(
        self, path: RelPath, was: MetadataBefore, ino: StoreIno | None, said: step_log.LoggedStep, *, times: bool = True
    ) -> None:
        """Give the old metadata back at a path, unless a thing of another kind lies there now.

        If a step has given it the metadata of a store inode ``ino``, and the log has ``said`` so,
        later changes by the host stay.
        """
        try:
            with self._held(path) as (thing, _):
                self._give_to(thing, path, was, ino, said, times=times)
        except (FileNotFoundError, NotADirectoryError):
            return

    def _give_to(
        self,
        thing: PathDescriptor,
        path: RelPath,
        was: MetadataBefore,
        ino: StoreIno | None,
        said: step_log.LoggedStep,
        *,
        times: bool = True,
    ) -> None:
        """Do the same to what was at the path and is held."""
        st = os.fstat(thing.fd)
        if stat.S_IFMT(st.st_mode) != stat.S_IFMT(was.mode):
            return
        if ino is not None:
            was = self._with_hosts(was, path, st, ino, said)
        wanted = metadata_of(was)
        if self._has(thing, st, wanted):  # nothing was done, and writing may be forbidden by now
            return
        left_out = copying.write_metadata(thing, wanted, times=times)
        self._note(path, left_out)
        if "times" in left_out:
            st = os.fstat(thing.fd)
            self._untimed.add((st.st_ino, looks_of(st)))

    def _with_hosts(
        self, was: MetadataBefore, path: RelPath, st: os.stat_result, ino: StoreIno, said: step_log.LoggedStep
    ) -> MetadataBefore:
        """Return the metadata that something had, with the mode and owner that the host has given
        it since a step gave it those of a store inode; note if there are any.

        ``st`` is it now, ``said`` what the log says of the step.
        """
        if said.came is not None and st.st_ctime_ns == said.came.ctime_ns:
            return was
        try:
            wanted = self._store.lstat(ino)
        except FileNotFoundError:
            return was
        modes = {mode | opened for mode in (was.mode, wanted.st_mode) for opened in (0, *_OPENED)}
        modes |= {mode & ~(stat.S_ISUID | stat.S_ISGID) for mode in modes}  # a change of owner clears these
        mode = was.mode if st.st_mode in modes else st.st_mode
        uid = was.uid if st.st_uid in (was.uid, wanted.st_uid) else st.st_uid
        gid = was.gid if st.st_gid in (was.gid, wanted.st_gid) else st.st_gid
        if (mode, uid, gid) != (was.mode, was.uid, was.gid) and path not in self.meanwhile.given:
            self.meanwhile.given.append(path)
        return msgspec.structs.replace(was, mode=mode, uid=uid, gid=gid)

    @staticmethod
    def _has(thing: PathDescriptor, st: os.stat_result, wanted: copying.Metadata) -> bool:
        """Tell whether something has the metadata that it is to have; the time of access may
        differ.
        """
        looks = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns)
        if looks != (wanted.st.st_mode, wanted.st.st_uid, wanted.st.st_gid, wanted.st.st_mtime_ns):
            return False
        try:
            return dict(copying.read_metadata(thing).xattrs) == dict(wanted.xattrs)
        except OSError:
            return False


def _is_on_the_way(mode: int, was: int, wanted: int) -> bool:
    """Tell whether something has one of two modes, or what it has between the calls that change its
    owner, its access control list and its mode: a change of owner clears setuid and setgid.
    """
    special = {bits & ~cleared & 0o7000 for bits in (was, wanted) for cleared in (0, stat.S_ISUID | stat.S_ISGID)}
    return mode & 0o7000 in special and mode & ~0o7000 in (was & ~0o7000, wanted & ~0o7000)


def _is_opened_up(mode: int, was: int) -> bool:
    """Tell whether a file has the mode that it gets for being rewritten."""
    return mode != was and mode == was | 0o600
