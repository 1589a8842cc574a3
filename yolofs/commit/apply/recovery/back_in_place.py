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

from yolofs.changes.contents import is_same_content
from yolofs.commit.apply import step_log
from yolofs.commit.apply.directories import rename_with
from yolofs.commit.apply.kept_copies import metadata_of
from yolofs.commit.apply.places import Spot
from yolofs.commit.apply.ready import Looks, looks_of
from yolofs.commit.apply.recovery.done_steps import READING, as_file
from yolofs.commit.apply.recovery.hosts_metadata import with_hosts_metadata
from yolofs.commit.apply.recovery.resume import ResumedSteps
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


class HostChangesMeanwhile(NamedTuple):
    """What the host has done while a commit was going on: paths of base."""

    found: list[RelPath]
    """Where it had put or changed something, which is in the folder ``found`` now."""
    gone_with_directory: list[RelPath]
    """What base had there had been put into a directory that the host has moved or removed
    since.
    """
    left_in_commit: list[RelPath]
    """What base had there stays in the commit's directory, as there is no directory any more to put
    it back into.
    """
    written_by_host: list[RelPath]
    """Paths at which a step had put a store inode itself and the host wrote to it: this version is
    staged now.
    """
    given_metadata: list[RelPath]
    """What it has given another mode, owner, time or attribute, which stays."""
    lost: list[RelPath]
    """What base had there is no longer kept: somebody has removed it from the commit's folder."""
    left_out: Mapping[RelPath, tuple[str, ...]] = {}
    """What could not be given back to what is there: names such as ``times``."""


class BackInPlace(ResumedSteps):
    """Undoes what was done in place."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`~yolofs.commit.apply.steps.Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self.meanwhile = HostChangesMeanwhile([], [], [], [], [], [])
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
            elif step.ino is not None and step.was is not None and self._is_left_at(old, step.ino):
                self._give(old, step.was, step.ino, step_log.LoggedStep())

    def _is_left_at(self, old: RelPath, ino: StoreIno) -> bool:
        """Tell the same of an old path, where the host may have put another file."""
        if self._inode(Spot(*split(old))) in self._looks:
            return True
        _, st = self._reach(old)
        return self._looks_set(old, ino) and not stat.S_ISDIR(st.st_mode) and self._is_as_set(st, ino)

    def _is_given_at(self, path: RelPath, ino: StoreIno) -> bool:
        """Tell whether what is at a path may have got the metadata of a store inode, or a part of
        it: it is the very thing, or a copy of it, or looks so.
        """
        is_it = self._inode(Spot(*split(path))) in self._looks or self._is_copied(path)
        return is_it or self._looks_set(path, ino)

    def _write_back(self, step: Rewrite, said: step_log.LoggedStep) -> None:
        backup = self._in(self._replaced, step.number)
        if self._inode(Spot(*split(step.path))) is None:  # the host has removed that name
            if self._inode(backup) is not None:
                self._put_backup_there(backup, step)
                if step.was is not None:
                    self._give(step.path, step.was, None, said)
            return
        with self._thing_at(step.path) as (thing, st):
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
        was = self._metadata_to_give_back(thing, step.was, step.path, step.ino, said) if step.was is not None else None
        if st.st_uid == os.geteuid() and st.st_mode & 0o600 != 0o600:
            os.chmod(thing.path, stat.S_IMODE(st.st_mode) | 0o600)
        elif was is not None and self._has(thing, st, was) and self._holds(thing, backup):
            return  # nothing was done, and writing may be forbidden by now
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
            self._give_to(thing, step.path, was)
        else:
            self._note(step.path, copying.copy_metadata(self._at(backup), thing))

    def _holds(self, thing: PathDescriptor, backup: Spot) -> bool:
        """Tell whether a file holds what was kept of it."""
        with (
            as_file(os.open(thing.path, READING & ~os.O_NOFOLLOW)) as there,
            as_file(os.open(backup.name, READING, dir_fd=self._fd(backup))) as kept,
        ):
            return is_same_content(there.fileno(), kept.fileno())

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
        inode = self._inode(Spot(*split(step.path)))
        if inode is not None and step.inode in (None, inode):
            self._give(step.path, step.was, step.ino, said)

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

    def _give(self, path: RelPath, was: MetadataBefore, ino: StoreIno | None, said: step_log.LoggedStep) -> None:
        """Give the old metadata back at a path, unless a thing of another kind lies there now.

        If a step has given it the metadata of a store inode ``ino``, and the log has ``said`` so,
        later changes by the host stay.
        """
        try:
            with self._thing_at(path) as (thing, st):
                if stat.S_IFMT(st.st_mode) != stat.S_IFMT(was.mode):
                    return
                has_time = not stat.S_ISDIR(st.st_mode)  # that of a directory changes with each name in it
                wanted = (
                    self._metadata_to_give_back(thing, was, path, ino, said, has_time=has_time)
                    if ino is not None
                    else metadata_of(was)
                )
                self._give_to(thing, path, wanted)
        except (FileNotFoundError, NotADirectoryError):
            return

    def _give_to(self, thing: PathDescriptor, path: RelPath, wanted: copying.Metadata) -> None:
        """Give metadata to what was at a path and is held."""
        self.left_out.pop(path, None)  # of an earlier try
        if self._has(thing, os.fstat(thing.fd), wanted):  # nothing was done, and writing may be forbidden by now
            return
        left_out = copying.write_metadata(thing, wanted)
        self._note(path, left_out)
        if "times" in left_out:
            st = os.fstat(thing.fd)
            self._untimed.add((st.st_ino, looks_of(st)))

    def _metadata_to_give_back(
        self,
        thing: PathDescriptor,
        was: MetadataBefore,
        path: RelPath,
        ino: StoreIno,
        said: step_log.LoggedStep,
        *,
        has_time: bool = False,
    ) -> copying.Metadata:
        """Return the metadata that something had, and with it what the host has given it since a
        step gave it that of a store inode; note if there is any.

        ``said`` is what the log says of the step; with ``has_time`` its time may be the host's.
        """
        old = metadata_of(was)
        if said.came is not None and os.fstat(thing.fd).st_ctime_ns == said.came.ctime_ns:
            return old
        try:
            new = self._store.metadata(ino)
        except FileNotFoundError:
            return old
        wanted, hosts = with_hosts_metadata(copying.read_metadata(thing), old, new, old, has_time=has_time)
        if hosts and path not in self.meanwhile.given_metadata:
            self.meanwhile.given_metadata.append(path)
        return wanted

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


def _is_opened_up(mode: int, was: int) -> bool:
    """Tell whether a file has the mode that it gets for being rewritten."""
    return mode != was and mode == was | 0o600
