"""Has calls that change a disk fail, as they do on a full, failing or read-only one, or for
somebody else's file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from yolofs.system import syscalls

_MAKING = ("mkdir", "mkfifo", "mknod", "symlink", "link", "unlink", "rmdir", "rename", "replace")
_WRITING = ("write", "pwrite", "ftruncate", "truncate", "copy_file_range", "sendfile", "fsync", "fdatasync")
_GIVING = ("chmod", "fchmod", "chown", "fchown", "utime", "setxattr", "removexattr")
_SYSTEM_CALLS = ("_renameat2", "sync_filesystem")


class Faults:
    """Counts the calls, and fails those whose numbers, from 0, are given."""

    def __init__(self, number: int, bad: range) -> None:
        """``number``: the errno."""
        self.count = 0
        self.failed = ""
        """The first call that was failed."""
        self.before_each: Callable[[], object] = lambda: None
        """Is called before each of them."""
        self._number = number
        self._bad = bad

    def _call(self, name: str, really: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self.before_each()
        number = self.count
        self.count += 1
        if number in self._bad:
            self.failed = self.failed or f"{name}{args}"
            path = args[0] if args and isinstance(args[0], str | bytes) else None
            raise OSError(self._number, os.strerror(self._number), path)
        return really(*args, **options)

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
            for name in (*_MAKING, *_WRITING, *_GIVING):
                patch.setattr(os, name, partial(self._call, name, getattr(os, name)))
            for name in _SYSTEM_CALLS:
                patch.setattr(syscalls, name, partial(self._call, name, getattr(syscalls, name)))
            patch.setattr(os, "open", partial(self._open, os.open))
            yield
