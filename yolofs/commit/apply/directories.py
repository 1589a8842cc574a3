"""Reaching directories of base to write in them, so that nothing can lead a commit astray.

Each directory is opened from its parent, component by component, without following symbolic links.
A link that the host put in a directory's place is an error (ENOTDIR) and never a way out of base.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import NamedTuple, Self, TypeVar

from yolofs.paths import ROOT, RelPath, join, split
from yolofs.store.copying import at, path_descriptor
from yolofs.system import syscalls

_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIMIT = 64
_LEVELS_KEPT = 16  # of the directories on the way to one; a deep path must not push out the rest
_RWX = 0o700

T = TypeVar("T")


class _Open(NamedTuple):
    fd: int
    device: int
    relock: int | None
    """The mode to give back when this is closed."""


class Directories:
    """The directories of one base that are open; a bounded number.  Close it, or use it in a
    ``with``.

    A directory of ours whose mode forbids us to work in it is opened up for as long as it is kept
    here.
    """

    def __init__(self, root: bytes) -> None:
        """Open ``root``, an absolute path.

        Raises:
            OSError: it is no directory or cannot be opened.
        """
        fd = os.open(root, _FLAGS)
        device = os.fstat(fd).st_dev
        self._open: dict[RelPath, _Open] = {ROOT: _Open(fd, device, None)}
        self.devices: set[int] = set()
        """The numbers of all devices that directories were opened on."""
        self._readable: dict[int, int] = {}
        """By number of a device, a descriptor of a directory on it that is not O_PATH."""
        self._note_device(device, fd)

    def open(self, rel: RelPath) -> int:
        """Return a descriptor (O_PATH) of a directory.  It stays this object's, and is good until
        some 40 others were opened.

        Raises:
            OSError: ENOTDIR if any of its components is a symbolic link; else as open(2).
        """
        return self._entry(rel).fd

    def device(self, rel: RelPath) -> int:
        """Return the number of the device that a directory is on."""
        return self._entry(rel).device

    def within(self, rel: RelPath, act: Callable[[int], T]) -> T:
        """Return ``act(descriptor)``; if it is not permitted, open the directory up, if it is ours,
        and try again.

        Raises:
            OSError: what ``act`` raises.
        """
        try:
            return act(self.open(rel))
        except PermissionError as error:
            if error.errno != errno.EACCES or not self.unlock(rel):
                raise
        return act(self.open(rel))

    def unlock(self, rel: RelPath) -> bool:
        """Widen a directory's mode so that its owner can work in it, until it is closed here;
        return whether the mode changed.
        """
        entry = self._entry(rel)
        st = os.fstat(entry.fd)
        mode = stat.S_IMODE(st.st_mode)
        if st.st_uid != os.geteuid() or mode & _RWX == _RWX:
            return False
        os.chmod(_itself(entry.fd), mode | _RWX)
        self._open[rel] = entry._replace(relock=mode if entry.relock is None else entry.relock)
        return True

    def sync(self) -> None:
        """Make durable what was written to the devices that directories were opened on.

        Raises:
            OSError: a device reports an error, be it of an earlier write.
        """
        for device in self.devices:
            fd = self._readable.get(device)
            if fd is None:
                os.sync()  # it tells of no error, but we may read no directory there
            else:
                syscalls.sync_filesystem(fd)

    def forget(self, rel: RelPath) -> None:
        """Close a directory and all below it, as they move, or as their metadata is about to be
        set.
        """
        if not rel:
            self.release()
            return
        below = rel + b"/"
        for path in [path for path in self._open if path == rel or path.startswith(below)]:
            self._close(path)

    def release(self) -> None:
        """Close all but the root, deepest first, and give back to all the modes that they had.

        Raises:
            OSError: a mode could not be given back; the others were, and all but the root are
                closed.
        """
        failure: OSError | None = None
        for path in [*sorted(filter(None, self._open), key=len, reverse=True), ROOT]:
            try:
                if path:
                    self._close(path)
                else:
                    root = self._open[ROOT]
                    self._open[ROOT] = root._replace(relock=None)
                    self._relock(root)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Do as :meth:`release`, and close the root too."""
        try:
            self.release()
        finally:
            for fd in (*(entry.fd for entry in self._open.values()), *self._readable.values()):
                os.close(fd)
            self._open.clear()
            self._readable.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _entry(self, rel: RelPath) -> _Open:
        entry = self._open.pop(rel, None)
        if entry is None:
            return self._walk(rel)
        self._open[rel] = entry  # now the newest
        return entry

    def _walk(self, rel: RelPath) -> _Open:
        names: list[bytes] = []
        known = rel
        while known not in self._open:
            known, name = split(known)
            names.append(name)
        path = known
        entry = self._entry(known)
        while names:
            above = entry, path
            path = join(path, names[-1])
            entry = self._open_child(above[1], names.pop())
            self._open[path] = entry
            if above[1] != known and len(names) >= _LEVELS_KEPT:
                self._close(above[1])
        self._evict()
        return entry

    def _open_child(self, parent: RelPath, name: bytes) -> _Open:
        fd = self.within(parent, lambda parent_fd: os.open(name, _FLAGS, dir_fd=parent_fd))
        device = os.fstat(fd).st_dev
        if device not in self._readable:
            self._note_device(device, fd)
        return _Open(fd, device, None)

    def _note_device(self, device: int, fd: int) -> None:
        """Take note of a device, and of a directory on it, if that may be read."""
        self.devices.add(device)
        with contextlib.suppress(PermissionError):
            self._readable[device] = os.open(_itself(fd), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _evict(self) -> None:
        for path in [path for path in self._open if path][: max(0, len(self._open) - _LIMIT)]:
            self._close(path)

    def _close(self, rel: RelPath) -> None:
        entry = self._open.pop(rel)
        try:
            self._relock(entry)
        finally:
            os.close(entry.fd)

    @staticmethod
    def _relock(entry: _Open) -> None:
        if entry.relock is not None:
            os.chmod(_itself(entry.fd), entry.relock)


def rename_with(
    directories: Directories,
    src: tuple[int, bytes],
    dst: tuple[RelPath, bytes],
    rename: Callable[[int, bytes, int, bytes], T],
) -> T:
    """Rename ``src`` (an open directory and a name) to ``dst`` (a directory of base and a name) by
    ``rename``.

    A directory without write permission of its own cannot change its parent; ours is opened up for
    that moment.
    """

    try:
        return rename(*src, directories.open(dst[0]), dst[1])  # nearly always; the rest takes as long as the rename
    except PermissionError:
        pass

    def act(dst_fd: int) -> T:
        return rename(*src, dst_fd, dst[1])

    return _moving(src, lambda: directories.within(dst[0], act))


def rename_out(
    directories: Directories,
    src: tuple[RelPath, bytes],
    dst: tuple[int, bytes],
    rename: Callable[[int, bytes, int, bytes], T],
) -> T:
    """Do the same as :func:`rename_with` the other way round: out of a directory of base."""

    def act(src_fd: int) -> T:
        return _moving((src_fd, src[1]), lambda: rename(src_fd, src[1], *dst))

    return directories.within(src[0], act)


def rename_between(src: tuple[int, bytes], dst: tuple[int, bytes], rename: Callable[[int, bytes, int, bytes], T]) -> T:
    """Do the same as :func:`rename_with` from one open directory to another, neither of base."""
    return _moving(src, lambda: rename(*src, *dst))


def _moving(src: tuple[int, bytes], rename: Callable[[], T]) -> T:
    try:
        return rename()
    except PermissionError as error:
        if error.errno != errno.EACCES:
            raise
        refused = error
    with path_descriptor(at(*src)) as thing:  # it is the same one at its new place, and no link that is put at either
        st = os.fstat(thing.fd)
        is_ours = st.st_uid == os.geteuid() and stat.S_ISDIR(st.st_mode)
        if not is_ours or st.st_mode & stat.S_IWUSR:
            raise refused
        os.chmod(thing.path, stat.S_IMODE(st.st_mode) | stat.S_IWUSR)
        try:
            return rename()
        finally:
            os.chmod(thing.path, stat.S_IMODE(st.st_mode))


def _itself(fd: int) -> bytes:
    """Return a path that leads to an open directory, O_PATH or not, whatever its mode."""
    return b"/proc/self/fd/%d" % fd
