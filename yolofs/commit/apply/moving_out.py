"""The steps of a commit that move something out of its place: to be put elsewhere, or kept."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from yolofs.commit.apply import by_names, copy_log
from yolofs.commit.apply.directories import rename_between, rename_out
from yolofs.commit.apply.keeping import Keeping
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot
from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import Fetch
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.system import syscalls


class MovingOut(Keeping):
    """Carries out the steps that take something out of its place: parked, or kept as replaced."""

    def _move_out(self, path: RelPath, folder: Folder, number: int) -> None:
        self._directories.forget(path)
        source, target = split(path), Spot(folder, b"%d" % number)
        try:
            rename_out(self._directories, source, (folder.fd, target.name), syscalls.rename_noreplace)
        except OSError as error:
            if error.errno != errno.EXDEV and not self._may_not_leave(Spot(*source), error):
                raise
        else:
            return
        aside = self._shelter(path, number)
        aside_fd = self._unlocked(aside)
        try:
            rename_out(self._directories, source, (aside_fd, aside.name), syscalls.rename_noreplace)
        except OSError as error:
            if error.errno != errno.EXDEV or not stat.S_ISDIR(self._reach(path)[1].st_mode):
                raise
            self._move_by_names(Spot(*source), aside, number)
        self._move_on(aside, folder, number, path)

    def _may_not_leave(self, spot: Spot, error: OSError) -> bool:
        """Tell whether a move failed because it would have taken another user's directory to
        another one.
        """
        path = self._at(spot)
        return error.errno == errno.EACCES and not syscalls.may_leave_its_directory(path, os.lstat(path))

    def _move_on(self, aside: Spot, folder: Folder, number: int, path: RelPath) -> None:
        """Go on with what was moved aside, beside its path."""
        target = Spot(folder, b"%d" % number)
        try:
            syscalls.rename_noreplace(self._unlocked(aside), aside.name, folder.fd, target.name)
        except OSError as error:
            if error.errno != errno.EXDEV and not self._may_not_leave(aside, error):
                raise
        else:  # it is a directory of our own making
            return
        if folder is self._parked:
            self._set_aside[number] = aside
        else:
            self._copy_to_kept(aside, target, path)
            self._leave_over(aside)

    def _move_by_names(self, source: Spot, target: Spot, number: int) -> None:
        """Move a directory that no rename can move, or what is left of it to be moved."""
        note = self._at(listing_at(self._new, number))
        listing = by_names.read(note)
        if listing is None:
            listing = by_names.listing_of((self._unlocked(source), source.name))
            by_names.write(listing, note, durable=self._durable)
        half = spot_of_half_moved(target)
        by_names.move(
            (self._unlocked(source), source.name),
            (self._unlocked(half), half.name),
            listing,
            lambda made: copy_log.add(self._parking, made, durable=self._durable),
        )
        self._mark_number(half, number)
        syscalls.rename_noreplace(self._unlocked(half), half.name, self._fd(target), target.name)
        os.unlink(note)

    def _move_kept(self, source: Spot, target: Spot) -> None:
        """Move something between what an earlier commit keeps and what is on its way; directories
        keep their times and modes.
        """
        src, dst = (self._fd(source), source.name), (self._fd(target), target.name)
        before = [(fd, os.stat(fd)) for fd in (src[0], dst[0])]
        opened = [
            (fd, st) for fd, st in before if st.st_uid == os.geteuid() and st.st_mode & stat.S_IRWXU != stat.S_IRWXU
        ]
        for fd, st in opened:
            os.chmod(fd, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)
        try:
            rename_between(src, dst, syscalls.rename_noreplace)
        finally:
            for fd, st in opened:
                os.chmod(fd, stat.S_IMODE(st.st_mode))
        for fd, st in before:
            copying.may_set_times(fd, st)  # if not, what is kept there is none the worse

    def give_kept_back(self) -> None:
        """Give directories that earlier commits keep their times and modes back: a process that was
        killed may not have come to it.
        """
        before = {one.path: one for one in self._kept_before}
        for step in self._plan.steps if before else ():
            if not isinstance(step, Fetch):
                continue
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # somebody has removed what is kept
                fd = self._fd(self._kept_at(step))
                was = before.pop(os.path.dirname(KeptObject(step.commit, step.slot, step.inside).path(b"")), None)
                if was is not None:
                    if stat.S_IMODE(os.stat(fd).st_mode) != was.mode:
                        os.chmod(fd, was.mode)
                    copying.may_set_ns(fd, was.atime_ns, was.mtime_ns)


def spot_of_half_moved(spot: Spot) -> Spot:
    """Return where a directory is made into which another is moved name by name, on its way to a
    spot.
    """
    return Spot(spot.directory, spot.name + by_names.HALF)


def listing_at(folder: Folder, number: int) -> Spot:
    """Return where the listing lies of a directory that is moved name by name."""
    return Spot(folder, b"%d-names" % number)
