"""Records all that this process does to some directories, as operations of
:mod:`tests.support.disk_model`.

What changes a filesystem goes through functions of ``os``, ``yolofs.system.syscalls`` and what is
open for writing: the functions are wrapped, and what is open for writing is looked at each time, so
that no write is missed however it is made.  A test replays all of it and compares the result with
the disk byte for byte: what were missed would show.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from tests.support.disk_model import Attributes, Changed, Named, Operation, Recording, Synced, Thing, Written
from yolofs.store import copying
from yolofs.system import syscalls

_WRITES = ("write", "pwrite", "writev", "pwritev", "ftruncate", "truncate", "copy_file_range", "sendfile", "splice")
_ATTRIBUTES = ("chmod", "fchmod", "chown", "fchown", "lchown", "utime", "setxattr", "removexattr")
_NOREPLACE, _EXCHANGE = 1, 2


class Recorder:
    """Records in the ``with`` of :meth:`at_work`, also what several threads do."""

    def __init__(self, *tops: bytes) -> None:
        """Take note of all that lies in the directories ``tops``."""
        self._things: dict[tuple[int, int], Thing] = {}
        """By device and inode number."""
        self._directories: dict[Thing, int] = {}
        """Descriptors, by which their times can be looked at wherever they are moved."""
        self.tops = [self._scan(top) for top in tops]
        self._names = {thing: dict(thing.names) for thing in self._things.values() if thing.is_directory}
        self._counts: dict[Thing, int] = {}
        for names in self._names.values():
            for thing in names.values():
                self._counts[thing] = self._counts.get(thing, 0) + 1
        self._data = {thing: (thing.data, thing.attributes.mtime_ns) for thing in self._things.values()}
        self._overlays: dict[bytes, bool] = {}
        self._open: dict[int, tuple[Thing, int]] = {}
        """What is open for writing, and a descriptor to look at it, by its own descriptor."""
        self._lock = threading.RLock()
        self.operations: list[Operation] = []

    @property
    def recording(self) -> Recording:
        """What was recorded."""
        return Recording(self.tops, self.operations)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Record for the time of the block."""
        with pytest.MonkeyPatch.context() as patch:
            self._patch(patch)
            yield
        self._look_at_open()
        for _, fd in self._open.values():
            os.close(fd)
        self._open.clear()
        for fd in self._directories.values():
            os.close(fd)
        self._directories.clear()

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        def wrap(module: Any, name: str, wrapper: Callable[..., Any]) -> None:
            really = getattr(module, name)

            def wrapped(*args: Any, **options: Any) -> Any:
                with self._lock:
                    self._look_at_open()
                    return wrapper(really, *args, **options)

            patch.setattr(module, name, wrapped)

        wrap(os, "open", self._opened)
        wrap(os, "close", self._closed)
        for name in ("mkdir", "mkfifo", "mknod"):
            wrap(os, name, self._made)
        wrap(os, "symlink", self._symlinked)
        wrap(os, "link", self._linked)
        for name in ("unlink", "remove", "rmdir"):
            wrap(os, name, self._removed)
        for name in ("rename", "replace"):
            wrap(os, name, self._renamed)
        wrap(syscalls, "_renameat2", self._renamed_so)
        for name in _WRITES:
            wrap(os, name, self._written)
        for name in _ATTRIBUTES:
            wrap(os, name, partial(self._changed, follows=name != "lchown"))
        for name in ("fsync", "fdatasync"):
            wrap(os, name, self._synced)
        wrap(os, "sync", self._all_synced)
        wrap(syscalls, "sync_filesystem", self._device_synced)

    # ---- what there is

    def _scan(self, path: bytes) -> Thing:
        thing = self._see(path)
        if thing.is_directory:
            self._directories[thing] = os.open(path, os.O_PATH)
            for name in os.listdir(path):
                thing.names[name] = self._scan(os.path.join(path, name))
        return thing

    def _known(self, st: os.stat_result) -> Thing | None:
        return self._things.get(_file(st))

    def _see(self, path: bytes) -> Thing:
        st = os.lstat(path)
        known = self._known(st)
        if known is None:
            data = b""
            if stat.S_ISREG(st.st_mode):
                data = _read(path)
            elif stat.S_ISLNK(st.st_mode):
                data = os.readlink(path)
            known = self._things[_file(st)] = _thing(path, st, _attributes(path, st), data)
        return known

    def _directory_of(self, path: bytes, dir_fd: int | None) -> tuple[Thing | None, bytes]:
        """Return the directory of a path, if it is one of ours, and the name in it."""
        above, name = os.path.split(os.fsencode(path).rstrip(b"/"))
        try:
            return self._known(os.stat(above or b".", dir_fd=dir_fd)), name
        except OSError:
            return None, name

    def _look_at_open(self) -> None:
        for thing, fd in self._open.values():
            self._look_at(thing, fd)

    def _look_at(self, thing: Thing, fd: int) -> None:
        st = os.fstat(fd)
        now = os.pread(fd, st.st_size, 0), st.st_mtime_ns
        if now != self._data[thing]:
            self._data[thing] = now
            self.operations.append(Written(thing, *now, st.st_ctime_ns))

    # ---- what was called

    def _opened(
        self, really: Callable[..., int], path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        directory, name = self._directory_of(path, dir_fd) if flags & os.O_CREAT else (None, b"")
        fd = really(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_PATH:
            return fd
        if directory is not None and name not in self._names[directory]:
            self._name(directory, name, self._new(fd))
        if flags & os.O_ACCMODE != os.O_RDONLY:
            self._things_open(really, fd)
        return fd

    def _things_open(self, really: Callable[..., int], fd: int) -> None:
        if fd in self._open:
            os.close(self._open.pop(fd)[1])
        st = os.fstat(fd)
        thing = self._known(st)
        if thing is not None and stat.S_ISREG(st.st_mode):
            watched = really(b"/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
            self._open[fd] = thing, watched
            self._look_at(thing, watched)

    def _closed(self, really: Callable[..., None], fd: int) -> None:
        really(fd)
        watched = self._open.pop(fd, None)
        if watched is not None:
            really(watched[1])

    def _made(self, really: Callable[..., None], path: Any, *args: Any, dir_fd: int | None = None) -> None:
        directory, name = self._directory_of(path, dir_fd)
        really(path, *args, dir_fd=dir_fd)
        if directory is not None:
            self._name(directory, name, self._new_at(path, dir_fd))

    def _symlinked(self, really: Callable[..., None], src: Any, dst: Any, *, dir_fd: int | None = None) -> None:
        directory, name = self._directory_of(dst, dir_fd)
        really(src, dst, dir_fd=dir_fd)
        if directory is not None:
            self._name(directory, name, self._new_at(dst, dir_fd))

    def _linked(self, really: Callable[..., None], src: Any, dst: Any, **options: Any) -> None:
        directory, name = self._directory_of(dst, options.get("dst_dir_fd"))
        really(src, dst, **options)
        if directory is not None:
            st = os.stat(dst, dir_fd=options.get("dst_dir_fd"), follow_symlinks=False)
            self._record((directory, name, self._things[_file(st)]))

    def _removed(self, really: Callable[..., None], path: Any, *, dir_fd: int | None = None) -> None:
        directory, name = self._directory_of(path, dir_fd)
        really(path, dir_fd=dir_fd)
        if directory is not None:
            self._record((directory, name, None))

    def _renamed(
        self,
        really: Callable[..., None],
        src: Any,
        dst: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        source, target = self._directory_of(src, src_dir_fd), self._directory_of(dst, dst_dir_fd)
        really(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._move(source, target)

    def _renamed_so(
        self, really: Callable[..., None], src_fd: int, src: bytes, dst_fd: int, dst: bytes, flags: int
    ) -> None:
        source, target = self._directory_of(src, src_fd), self._directory_of(dst, dst_fd)
        really(src_fd, src, dst_fd, dst, flags)
        assert flags in (_NOREPLACE, _EXCHANGE)
        self._move(source, target, is_exchange=flags == _EXCHANGE)

    def _move(
        self, source: tuple[Thing | None, bytes], target: tuple[Thing | None, bytes], *, is_exchange: bool = False
    ) -> None:
        (above, name), (below, new) = source, target
        assert above is not None, f"{name!r} came from elsewhere"
        assert below is not None, f"{new!r} went elsewhere"
        moved, other = self._names[above][name], self._names[below].get(new)
        if moved is not other:  # a rename of one hard link over another does nothing
            self._record((above, name, other if is_exchange else None), (below, new, moved))

    def _written(self, really: Callable[..., Any], *args: Any, **options: Any) -> Any:
        result = really(*args, **options)
        self._look_at_open()
        for fd in args[:2]:
            self._look_at_opened_before(fd)
        return result

    def _look_at_opened_before(self, fd: Any) -> None:
        """Look at a file that is written through a descriptor which is older than the recording."""
        if not isinstance(fd, int) or fd in self._open:
            return
        try:
            st = os.fstat(fd)
        except OSError:  # the argument is a length, say
            return
        thing = self._known(st)
        if thing is not None and stat.S_ISREG(st.st_mode):
            with open(b"/proc/self/fd/%d" % fd, "rb") as file:
                self._look_at(thing, file.fileno())

    def _changed(self, really: Callable[..., None], path: Any, *args: Any, follows: bool, **options: Any) -> None:
        really(path, *args, **options)
        if isinstance(path, int):
            place, follows = b"/proc/self/fd/%d" % path, True
        else:
            place, follows = os.fsencode(path), options.get("follow_symlinks", follows)
        dir_fd = options.get("dir_fd")
        st = os.stat(place, dir_fd=dir_fd, follow_symlinks=follows)
        thing = self._known(st)
        if thing is not None:
            at = copying.at(dir_fd, place) if dir_fd is not None else place
            self.operations.append(Changed(thing, _attributes(at, st, follows=follows), st.st_ctime_ns))

    def _synced(self, really: Callable[..., None], fd: int) -> None:
        really(fd)
        thing = self._known(os.fstat(fd))
        if thing is not None:
            self.operations.append(Synced(thing))

    def _all_synced(self, _really: Callable[..., None]) -> None:
        """Note it, and do not wait: what others write to the disk meanwhile takes its time."""
        self.operations.append(Synced(None))

    def _device_synced(self, _really: Callable[..., None], fd: int) -> None:
        self.operations.append(Synced(None, os.fstat(fd).st_dev))

    # ---- what has changed by that

    def _new_at(self, path: Any, dir_fd: int | None) -> Thing:
        at = os.fsencode(path) if dir_fd is None else copying.at(dir_fd, os.fsencode(path))
        st = os.lstat(at)
        data = os.readlink(at) if stat.S_ISLNK(st.st_mode) else b""
        thing = self._add(_thing(at, st, _attributes(at, st), data))
        if thing.is_directory:
            self._directories[thing] = os.open(at, os.O_PATH)
        return thing

    def _new(self, fd: int) -> Thing:
        st = os.fstat(fd)
        return self._add(_thing(fd, st, _attributes(b"/proc/self/fd/%d" % fd, st, follows=True)))

    def _add(self, thing: Thing) -> Thing:
        self._things[thing.device, thing.number] = thing
        self._data[thing] = thing.data, thing.attributes.mtime_ns
        if thing.is_directory:
            self._names[thing] = {}
        return thing

    def _name(self, directory: Thing, name: bytes, thing: Thing) -> None:
        self._record((directory, name, thing), made=thing)

    def _record(self, *names: tuple[Thing, bytes, Thing | None], made: Thing | None = None) -> None:
        left: list[Thing] = []
        for directory, name, thing in names:
            old = self._names[directory].pop(name, None)
            if old is not None:
                self._counts[old] -= 1
            if thing is not None:
                self._names[directory][name] = thing
                self._counts[thing] = self._counts.get(thing, 0) + 1
            if old is not None and not self._counts[old] and all(other is not old for _, _, other in names):
                self._things.pop((old.device, old.number), None)
            elif old is not None:
                left.append(old)
        directories = dict.fromkeys(directory for directory, _, _ in names)
        times = tuple((directory, os.fstat(self._directories[directory]).st_mtime_ns) for directory in directories)
        things = dict.fromkeys([*directories, *(thing for _, _, thing in names if thing is not None), *left])
        self.operations.append(Named(names, times, made, tuple((one, self._ctime_ns(one)) for one in things)))

    def _ctime_ns(self, thing: Thing) -> int:
        """Return the ctime of something that has a name."""
        if thing.is_directory:
            return os.fstat(self._directories[thing]).st_ctime_ns
        above, name = next(
            (directory, name) for directory, names in self._names.items() for name, one in names.items() if one is thing
        )
        return os.stat(name, dir_fd=self._directories[above], follow_symlinks=False).st_ctime_ns


def _thing(at: bytes | int, st: os.stat_result, attributes: Attributes, data: bytes = b"") -> Thing:
    birth_ns = syscalls.look(at).birth_ns or 0
    return Thing(st.st_ino, attributes, data, device=st.st_dev, birth_ns=birth_ns, ctime_ns=st.st_ctime_ns)


def _file(st: os.stat_result) -> tuple[int, int]:
    return st.st_dev, st.st_ino


def _attributes(path: bytes, st: os.stat_result, *, follows: bool = False) -> Attributes:
    names = sorted(os.listxattr(path, follow_symlinks=follows))
    xattrs = tuple((name, os.getxattr(path, name, follow_symlinks=follows)) for name in names)
    return Attributes(st.st_mode, (st.st_uid, st.st_gid), st.st_atime_ns, st.st_mtime_ns, xattrs)


def _read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()
