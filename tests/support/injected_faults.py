"""Has calls that change a disk fail, as they do on a full, failing or read-only one, or for
somebody else's file; or calls that read it.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import pytest

from yolofs.system import syscalls

_MAKES_OR_REMOVES = ("mkdir", "mkfifo", "mknod", "symlink", "link", "unlink", "rmdir", "rename", "replace")
_WRITING = ("write", "pwrite", "ftruncate", "truncate", "copy_file_range", "sendfile", "fsync", "fdatasync")
_GIVING = ("chmod", "fchmod", "chown", "fchown", "utime", "setxattr", "removexattr")
_SYSTEM_CALLS = ("_renameat2", "sync_filesystem")
_LOOKING = ("stat", "lstat", "fstat", "statvfs", "readlink", "listdir", "getxattr", "listxattr")
_READING = ("read", "pread", "copy_file_range", "sendfile", "lseek")
_LOOKING_SYSTEM_CALLS = ("_statx", "open_by_no_link")


class Faults:
    """Counts the calls, and fails those whose numbers, from 0, are given."""

    def __init__(self, number: int, bad: range, *, within: bytes | None = None, only: str | None = None) -> None:
        """``number``: the errno; ``within``: count calls that read, not those that change, and of
        absolute paths those below this directory only; ``only``: count those of one function.
        """
        self.count = 0
        self.failed = ""
        """The first call that was failed."""
        self.before_each: Callable[[], object] = lambda: None
        """Is called before each of them."""
        self.bad = bad
        self._number = number
        self._within = within
        self._only = only
        self._is_noting = False

    @property
    def reads(self) -> bool:
        """Whether calls that read count."""
        return self._within is not None

    def _call(self, name: str, really: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self._count(name, args)
        return really(*args, **options)

    def _count(self, name: str, args: tuple[Any, ...]) -> None:
        """Count a call, and fail it if it is one of those."""
        if self._only not in (None, name):
            return
        if self._is_noting:  # what is called before each looks at the disk itself
            return
        self._is_noting = True
        self.before_each()
        self._is_noting = False
        number = self.count
        self.count += 1
        if number in self.bad:
            self.failed = self.failed or f"{name}{args}"
            path = args[0] if args and isinstance(args[0], str | bytes) else None
            raise OSError(self._number, os.strerror(self._number), path)

    def _open(self, really: Callable[..., int], path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_CREAT or (flags & os.O_ACCMODE != os.O_RDONLY and not flags & os.O_PATH):
            return int(self._call("open", really, path, flags, *args, **options))
        return really(path, flags, *args, **options)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Fail calls for the time of the block; nothing waits for the disk in there."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: None)
            patch.setattr(os, "fdatasync", lambda _: None)
            patch.setattr(syscalls, "sync_filesystem", lambda _: None)
            (self._fail_reading if self.reads else self._fail_writing)(patch)
            yield

    def _fail_writing(self, patch: pytest.MonkeyPatch) -> None:
        for name in (*_MAKES_OR_REMOVES, *_WRITING, *_GIVING):
            patch.setattr(os, name, partial(self._call, name, getattr(os, name)))
        for name in _SYSTEM_CALLS:
            patch.setattr(syscalls, name, partial(self._call, name, getattr(syscalls, name)))
        patch.setattr(os, "open", partial(self._open, os.open))

    # ---- calls that read

    def _fail_reading(self, patch: pytest.MonkeyPatch) -> None:
        for name in (*_LOOKING, *_READING):
            patch.setattr(os, name, partial(self._read_call, name, getattr(os, name)))
        for name in _LOOKING_SYSTEM_CALLS:
            patch.setattr(syscalls, name, partial(self._read_call, name, getattr(syscalls, name)))
        patch.setattr(os, "open", partial(self._open_to_read, os.open))
        patch.setattr(os, "access", partial(self._access, os.access))
        patch.setattr(os, "scandir", partial(self._scandir, os.scandir))
        patch.setattr(fcntl, "ioctl", partial(self._read_call, "ioctl", fcntl.ioctl))
        for module in (builtins, io):
            patch.setattr(module, "open", partial(self._open_file, io.open))

    def look_at(self, name: str, *args: Any) -> None:
        """Count a call that reads, and fail it if it is one of those."""
        path = args[0] if args else None
        if isinstance(path, str | bytes | os.PathLike):
            path = os.fsencode(path)
            assert self._within is not None
            is_held = path.startswith(b"/proc/self/fd/") and name != "readlink"
            if path.startswith(b"/") and not path.startswith(self._within) and not is_held:
                return
        self._count(name, args)

    def _read_call(self, name: str, really: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if name != "lseek" or args[2] not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):  # which read nothing
            self.look_at(name, *args)
        return really(*args, **options)

    def _open_to_read(self, really: Callable[..., int], path: Any, flags: int, *args: Any, **options: Any) -> int:
        if not flags & os.O_CREAT and (flags & os.O_ACCMODE == os.O_RDONLY or flags & os.O_PATH):
            self.look_at("open", path, flags)
        return really(path, flags, *args, **options)

    def _access(self, really: Callable[..., bool], *args: Any, **options: Any) -> bool:
        try:
            self.look_at("access", *args)
        except OSError:
            return False
        return really(*args, **options)

    def _scandir(self, really: Callable[..., Any], *args: Any) -> _Entries:
        self.look_at("scandir", *args)
        return _Entries(self, really(*args))

    def _open_file(self, really: Callable[..., Any], file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if set(mode) - set("rb"):
            return really(file, mode, *args, **options)
        if not isinstance(file, int):
            self.look_at("open", file)
        if "b" not in mode:
            return really(file, mode, *args, **options)
        raw = _File(self, file, closefd=options.get("closefd", True))
        buffering = args[0] if args else options.get("buffering", -1)
        return raw if buffering == 0 else io.BufferedReader(raw)


class _File(io.FileIO):
    """A file each read of which counts."""

    def __init__(self, faults: Faults, file: Any, *, closefd: bool) -> None:
        super().__init__(file, "r", closefd=closefd)
        self._faults = faults

    def readinto(self, buffer: Any, /) -> int:
        self._faults.look_at("read", self.name)
        return super().readinto(buffer)

    def readall(self) -> bytes:
        self._faults.look_at("read", self.name)
        return super().readall()


class _Entry:
    """An entry of a directory each look at which counts."""

    def __init__(self, faults: Faults, entry: os.DirEntry[Any]) -> None:
        self._faults = faults
        self._entry = entry

    def stat(self, **options: Any) -> os.stat_result:
        self._faults.look_at("stat", self._entry.name)
        return self._entry.stat(**options)

    def __fspath__(self) -> Any:
        return self._entry.path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)


class _Entries:
    """The entries of a directory; what fails comes while they are listed, too."""

    def __init__(self, faults: Faults, entries: Any) -> None:
        self._faults = faults
        self._entries = entries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _Entry:
        entry = next(self._entries)
        self._faults.look_at("getdents", entry.name)
        return _Entry(self._faults, entry)

    def close(self) -> None:
        self._entries.close()
