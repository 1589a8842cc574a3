"""The steps of a commit that change what stays in its place: content, metadata, times."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from yolofs.commit.apply.keeping import Keeping
from yolofs.commit.apply.places import Spot
from yolofs.commit.plan.plan import (
    FinishDirectory,
    Rewrite,
    SetMetadata,
)
from yolofs.paths import RelPath, split
from yolofs.store import copying, file_data
from yolofs.store.copying import PathDescriptor, at
from yolofs.system import syscalls
from yolofs.system.clock import is_kept_as

_REPLACED = "it was replaced while the commit ran"


class ChangingInPlace(Keeping):
    """Carries out the steps that give content, metadata or times to what stays in its place."""

    def _rewrite(self, step: Rewrite) -> None:
        with self._thing_at(step.path) as (thing, st):
            # another inode is right if it came from another device, or from the host; but what is
            # written to must have no name elsewhere, where it is somebody's
            if not stat.S_ISREG(st.st_mode) or (st.st_nlink > 1 and self._is_not_bases(step.path, thing, st)):
                raise OSError(errno.ESTALE, _REPLACED)
            self._as_seen.check(st)
            if st.st_uid == os.geteuid() and st.st_mode & 0o600 != 0o600:
                os.chmod(thing.path, stat.S_IMODE(st.st_mode) | 0o600)
            self._back_up(thing, st, step)
            self._as_seen.forget(st)
            metadata = self._metadata_for(step, thing)
            target = os.open(thing.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                source = self._store.open(step.ino, os.O_RDONLY)
                try:
                    file_data.copy_data(source, target, os.fstat(source).st_size)
                finally:
                    os.close(source)
            finally:
                os.close(target)
            self._note(step.path, copying.write_metadata(thing, metadata))
        if step.is_first:
            self._sync_beside(Spot(*split(step.path)))

    def _back_up(self, thing: PathDescriptor, st: os.stat_result, step: Rewrite) -> None:
        """Keep a copy of what is about to be overwritten.  If there is one already, it is whole,
        and was made before a crash.
        """
        name = b"%d" % step.number
        if _exists(self._replaced.fd, name):
            return
        made = self._made.get(step.number)
        if made is not None and (made.size != st.st_size or not is_kept_as(made.mtime_ns, st.st_mtime_ns)):
            made = None  # it is no copy of what is there
        if made is None or not _exists(self._new.fd, name):
            self._clear_new(name)
            copying.copy_node(thing, at(self._new.fd, name))
            os.chmod(at(self._new.fd, name), stat.S_IMODE(st.st_mode) | 0o400)
            if self._durable:  # now, as the only other copy is about to be overwritten
                _sync_file(self._new.fd, name)
        os.rename(name, name, src_dir_fd=self._new.fd, dst_dir_fd=self._replaced.fd)
        if self._durable:
            os.fsync(self._replaced.fd)

    def _clear_new(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._new.fd)

    def _set_metadata(self, step: SetMetadata) -> None:
        with self._thing_at(step.path) as (thing, st):
            if self._is_not_bases(step.path, thing, st):  # another's mode could open a file that is closed to others
                raise OSError(errno.ESTALE, _REPLACED)
            self._as_seen.check(st)
            self._as_seen.forget(st)
            self._copy_metadata(step, thing, st)
        if step.inode is not None:
            self._sync_beside(Spot(*split(step.path)))

    def _is_not_bases(self, path: RelPath, thing: PathDescriptor, st: os.stat_result) -> bool:
        """Tell whether what was at a path, with attributes ``st``, is surely not what base had
        there before the first step.

        OverlayFS gives a file that it copies up another inode number.
        """
        if not self._is_known(path) or st.st_ino in self._looks:
            return False
        if st.st_ino in self._marked or any(st.st_ino == inode for inode, _ in self._copied):
            return False
        return not syscalls.is_on_overlay(thing.fd)

    def _finish_directory(self, step: FinishDirectory) -> None:
        self._directories.forget(step.path)
        with self._thing_at(step.path) as (thing, st):
            if not stat.S_ISDIR(st.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), step.path)
            if step.ino is not None:
                if step.was is not None and self._is_not_bases(step.path, thing, st):
                    raise OSError(errno.ESTALE, _REPLACED)
                self._copy_metadata(step, thing, st)
                st = os.fstat(thing.fd)
            if st.st_mtime_ns == step.mtime_ns:
                return
            if not copying.may_set_ns(thing, st.st_atime_ns, step.mtime_ns):  # another user's, such as /tmp
                self._note(step.path, ("times",))

    def has_time_given(self, step: FinishDirectory) -> bool:
        """Tell whether a directory has the time that a step gives it."""
        try:
            return is_kept_as(step.mtime_ns, self._reach(step.path)[1].st_mtime_ns)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _copy_metadata(self, step: SetMetadata | FinishDirectory, thing: PathDescriptor, st: os.stat_result) -> None:
        metadata = self._metadata_for(step, thing)
        if stat.S_IFMT(st.st_mode) != stat.S_IFMT(metadata.st.st_mode):
            raise OSError(errno.ESTALE, _REPLACED)
        left_out = copying.write_metadata(thing, metadata)
        if left_out and syscalls.may_never_change(thing.fd):  # the host has done that since it was looked at
            raise PermissionError(errno.EPERM, "it is immutable or append-only (chattr)", step.path)
        self._note(step.path, left_out)

    def _metadata_for(self, step: Rewrite | SetMetadata | FinishDirectory, _thing: PathDescriptor) -> copying.Metadata:
        """Return what a step gives to what is held, which is its thing."""
        assert step.ino is not None
        return self._store.metadata(step.ino)


def _exists(directory_fd: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _sync_file(directory_fd: int, name: bytes) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
