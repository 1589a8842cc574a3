"""Doing the steps of a commit, one at a time.

Everything that a step replaces or removes ends up in the folder ``replaced`` of the commit's
directory.  What is on the same filesystem gets there by a rename.  What is on another device is
first moved aside in base, under a name that starts with ``.yolofs-``, then copied.
:meth:`Steps.discard_leftovers` deletes it when the copy is durable.  What goes to another place on
another device is copied, too; its name tells when the copy is whole.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from typing import assert_never

from yolofs.commit.apply import kept_copies
from yolofs.commit.apply.bringing_in import BringingIn
from yolofs.commit.apply.changing_in_place import ChangingInPlace
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.keeping import MADE_BY_STEP, UNMADE
from yolofs.commit.apply.moving_out import MovingOut
from yolofs.commit.apply.places import Spot
from yolofs.commit.apply.ready import MadeObject
from yolofs.commit.apply.step_log import UNKNOWN_NS, LoggedStep, ObjectIdentity
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
from yolofs.paths import ROOT, RelPath, split
from yolofs.store import copying
from yolofs.store.copying import PathDescriptor, at, path_descriptor
from yolofs.store.restored import InodeCtime, by_names
from yolofs.system import syscalls
from yolofs.system.busy_trees import remove_tree

_ARRIVALS = (Create, Place, Link, Duplicate)


class Steps(MovingOut, BringingIn, ChangingInPlace):
    """Does steps; holds what later ones need to know of earlier ones.  Close it, or use it in a
    ``with``.
    """

    def do(self, step: Step) -> None:
        """Do one step.

        Raises:
            OSError: it could not be done.
        """
        match step:
            case Create():  # which most are
                self._create(step)
            case Park():
                self._move_out(step.path, self._parked, step.number)
            case Remove():
                self._move_out(step.path, self._replaced, step.number)
            case Fetch():
                self._move_kept(self._kept_at(step), Spot(self._parked, b"%d" % step.number))
            case MakeDirectory():
                self._make_directory(step)
            case Place():
                parked = Spot(self._parked, b"%d" % step.number)
                self._bring_in(self._set_aside.get(step.number, parked), step)
            case Link():
                self._link(step)
            case Duplicate():
                self._duplicate(step)
            case Rewrite():
                self._rewrite(step)
            case SetMetadata():
                self._set_metadata(step)
            case FinishDirectory():
                self._finish_directory(step)
            case _:
                assert_never(step)
        if not self._as_seen.is_known:
            return
        if isinstance(step, Remove) or (isinstance(step, _ARRIVALS) and step.replaced is not None):
            self._as_seen.check(os.stat(b"%d" % step.number, dir_fd=self._replaced.fd, follow_symlinks=False))

    def logged(self, step: Step) -> LoggedStep:
        """Return what the log is to say of a step that was done just now."""
        match step:
            case Fetch():
                return LoggedStep(None, self._identity_at(Spot(self._parked, b"%d" % step.number)))
            case Park():
                return LoggedStep(
                    None, self._identity_at(self._set_aside.get(step.number, Spot(self._parked, b"%d" % step.number)))
                )
            case Remove():
                return LoggedStep(None, self._identity_at(Spot(self._replaced, b"%d" % step.number)))
            case Create() if (made := self.linked_from(step)) is not None:
                return LoggedStep(self.identity_of_linked(made))
            case _:
                came = self._identity_at(Spot(*split(step.path)) if step.path else Spot(ROOT, b"."))
                went = None
                if isinstance(step, Rewrite) or (isinstance(step, _ARRIVALS) and step.replaced is not None):
                    went = self._identity_at(Spot(self._replaced, b"%d" % step.number))
                return LoggedStep(came, went)

    def identity_of_linked(self, made: MadeObject) -> ObjectIdentity:
        """Return what the log is to say of a store inode that has got a name in base just now."""
        return ObjectIdentity(self._device, made.inode, UNKNOWN_NS, made.size)

    def _identity_at(self, spot: Spot) -> ObjectIdentity | None:
        try:
            return ObjectIdentity.of(os.stat(spot.name, dir_fd=self._fd(spot), follow_symlinks=False))
        except OSError:
            return None

    def release(self) -> None:
        """Close the directories of base, and give those the modes back that had to be opened up."""
        self._directories.release()
        self.close_again(lambda path: None if (now := self._moves.after(path)) in self._given_modes else now)
        self._close_kept()
        self.give_kept_back()

    def close_again(self, place: Callable[[RelPath], RelPath | None]) -> None:
        """Set back the modes of directories that a killed process has opened up, and note those
        without setgid since.

        ``place`` tells where a directory is by now.
        """
        for before in self._before:
            path = place(before.path)
            if path is None or before.mode & stat.S_IRWXU == stat.S_IRWXU:
                continue
            try:
                with self._thing_at(path) as (thing, st):
                    if st.st_ino == before.inode:
                        self._close(thing, st, before.mode, path)
            except (FileNotFoundError, NotADirectoryError):
                continue

    def _close(self, thing: PathDescriptor, st: os.stat_result, mode: int, path: RelPath) -> None:
        """Give a directory its mode back, if it was opened up.

        If its setgid is gone, that is noted at ``path``: the kernel lets nobody set it who is not
        in the group.
        """
        if _is_opened_up(st, mode):
            os.chmod(thing.path, mode)
            st = os.fstat(thing.fd)
        now = stat.S_IMODE(st.st_mode)
        if now != mode and now | stat.S_ISGID == mode:
            self._note(path, ("mode",))

    def _close_kept(self) -> None:
        """Set back the modes of opened directories that are in ``replaced`` by now."""
        modes = {before.inode: before.mode for before in self._before}
        for step in (*self._plan.of(Remove), *self._plan.replacing):
            inode = step.inode if isinstance(step, Remove) else step.replaced
            if inode not in modes:
                continue
            kept = Spot(self._replaced, b"%d" % step.number)
            with contextlib.suppress(FileNotFoundError), path_descriptor(self._at(kept)) as thing:
                st = os.fstat(thing.fd)
                if st.st_ino == inode:
                    self._close(thing, st, modes[inode], step.path)

    def sync(self) -> None:
        """Make all that the steps wrote durable.

        Raises:
            OSError: a disk reports an error, so that it may have lost some of it.
        """
        syscalls.sync_filesystem(self._new.fd)
        if not self._directories.devices <= {self._device}:
            self._directories.sync()

    def copy_kept_files(self) -> list[kept_copies.KeptCopy]:
        """Copy what is kept and has names in base, or beside it, that are still there, or was
        changed before it was kept.  Before :meth:`release`.

        Raises:
            OSError: the folders of the commit cannot be worked in.
        """
        first = {step.inode for step in self._plan.of(Rewrite) if step.is_first}
        first.update(step.inode for step in self._plan.of(SetMetadata) if step.inode is not None)
        files_of_copies = kept_copies.files_of_kept_copies(self._parking) if first else {}
        return kept_copies.copy_kept_files(self._replaced.path, self._new.path, self._originals, first, files_of_copies)

    def _originals(self) -> dict[FileNumbers, kept_copies.Original]:
        """Return what those files were that were changed in place."""
        originals: dict[FileNumbers, kept_copies.Original] = {}
        for step in self._plan.steps:
            match step:
                case Rewrite():
                    kept = os.path.join(self._replaced.path, b"%d" % step.number)
                    original: kept_copies.Original = kept_copies.BeforeWriting(kept, step.was)
                case SetMetadata():
                    original = step.was
                case _:
                    continue
            file = self._file_at(step.path)
            if step.inode is not None and (file is None or file[1] != step.inode):  # its name has gone since
                device = self._device_before(step)
                file = device if device is not None else self._device, step.inode
                if device is None:  # which one it was on is not known
                    original = None
            if file is not None:
                originals.setdefault(file, original)
        return originals

    def _device_before(self, step: Rewrite | SetMetadata) -> int | None:
        """Return the device that a file was on before the first step; None if that cannot be told.

        A directory that moves or goes holds no mount: what is in it was on the device of the one
        above.
        """
        if self._directories.devices <= {self._device}:
            return self._device
        before = step.path if _is_first(step) else self._moves.before(step.path)
        above = split(before)[0] if before is not None else ROOT
        try:
            return os.fstat(self._directories.open(self._moves.stays(above))).st_dev
        except OSError:
            return None

    def _file_at(self, path: RelPath) -> FileNumbers | None:
        try:
            _, st = self._reach(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return st.st_dev, st.st_ino

    @property
    def has_leftovers(self) -> bool:
        """Whether anything has been copied and is now twice there."""
        return bool(self._leftovers)

    def discard_leftovers(self) -> None:
        """Delete what has been copied and is now twice there, and the folders on other devices.

        Raises:
            OSError: something cannot be deleted; its ``filename`` tells which.
        """
        while self._leftovers:
            spot, thing = next(reversed(self._leftovers.items()))
            try:
                self._discard(spot, thing)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._named_below(spot, error)) from error
            del self._leftovers[spot]
        self._swept += self.remove_far()

    def with_swept(self, inode_ctimes: set[InodeCtime]) -> set[InodeCtime]:
        """Return inode ctimes together with those that directories among them have got as what was
        left over in them was deleted.
        """
        found = inode_ctimes | self._names_copied
        for inode_ctime in self._given_again:
            found.update((inode_ctime, by_names(inode_ctime)))
        for before, after in self._swept:
            if before in found:
                found.add(after)
            if by_names(before) in found:
                found.add(by_names(after))
        return found

    def give_time_again(self, step: FinishDirectory) -> None:
        """Give a finished directory its time again: it has lost that as a leftover in it was
        deleted, or with the power.

        The host may have made something in it meanwhile.  So each name in it has to be known by
        itself.

        Raises:
            OSError: it cannot be given that.
        """
        self.do(step)
        came = self.logged(step).came
        if came is not None and self.is_finished(step):
            self._given_again.append(came.inode_ctime)

    def is_finished(self, step: Step) -> bool:
        """Tell whether a step gave a directory its metadata, and it has what the step gave it."""
        if not isinstance(step, FinishDirectory) or not self.has_time_given(step):
            return False
        _, st = self._reach(step.path)
        wanted = self._store.lstat(step.ino) if step.ino is not None else None
        if wanted is not None:
            return (st.st_mode, st.st_uid, st.st_gid) == (wanted.st_mode, wanted.st_uid, wanted.st_gid)
        return step.was is None or (st.st_mode, st.st_uid, st.st_gid) == (step.was.mode, step.was.uid, step.was.gid)

    def discard_notes(self) -> None:
        """Delete the notes of what was made and replaced: nothing is left to be told by them.

        Raises:
            OSError: one cannot be deleted.
        """
        for name in os.listdir(self._new.fd):
            if _is_note(os.fsencode(name)):
                os.unlink(name, dir_fd=self._new.fd)

    def _named_below(self, spot: Spot, error: OSError) -> bytes:
        """Return the absolute path of what an error is about: something at or below a spot."""
        path = os.path.join(self._plan.root, self._spelled(spot))
        name = os.fsencode(error.filename) if error.filename is not None else b""
        top = self._at(spot)
        return path + name[len(top) :] if name.startswith(top) else path

    def _discard(self, spot: Spot, thing: FileNumbers) -> None:
        """Remove a leftover, and give its directory, which is finished already, its mtime back.

        What somebody has moved to its name meanwhile is not ours, and stays.
        """
        directory = self._unlocked(spot)
        st = os.stat(b".", dir_fd=directory)
        inode_ctime = st.st_ino, st.st_ctime_ns
        with contextlib.suppress(FileNotFoundError):  # one of two spots that lead to the same, or the host removed it
            there = os.stat(spot.name, dir_fd=directory, follow_symlinks=False)
            if (there.st_dev, there.st_ino) == thing or self._may_number_names(spot):
                self._swept += kept_copies.remove_names_of_several(at(directory, spot.name))
                remove_tree(at(directory, spot.name))
        copying.may_set_times(at(directory, b"."), st)  # not another user's directory's, such as that of /tmp
        self._swept.append((inode_ctime, (st.st_ino, os.stat(b".", dir_fd=directory).st_ctime_ns)))


def _is_first(step: Rewrite | SetMetadata) -> bool:
    return isinstance(step, SetMetadata) or step.is_first


def _is_note(name: bytes) -> bool:
    return (
        b"-replaces-" in name
        or MADE_BY_STEP + b"-" in name
        or name.endswith(UNMADE)
        or name == kept_copies.DIRECTORIES_NOTE
    )


def _is_opened_up(st: os.stat_result, mode: int) -> bool:
    """Tell whether a directory of a mode has been opened up to work in it, or to be moved; by that
    it may have lost setgid.
    """
    now = stat.S_IMODE(st.st_mode) | mode & stat.S_ISGID
    return now in (mode | stat.S_IRWXU, mode | stat.S_IWUSR) and now != mode
