"""Shows a process the recorded inode numbers, times of birth and ctimes of a rebuilt disk, as no
disk can be given these.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from tests.support.disk_model import Recorded
from yolofs.system import syscalls

ELSEWHERE = 1 << 40
"""Added to the inode numbers of what is made when a state is brought to its end."""


class SeenNumbers:
    """Tells what is seen."""

    def __init__(self, known: dict[tuple[int, int], Recorded], *tops: bytes) -> None:
        """``known``: what was recorded of all in the directories ``tops``, by the device and inode
        number of what stands for it there.
        """
        self._known = known
        self._held: list[int] = []
        """All of that: while it is open no other thing gets its inode number."""
        self._ctimes: dict[tuple[int, int], int] = {}
        """What the disk has given it."""
        todo = list(tops)
        while todo:
            path = todo.pop()
            self._held.append(os.open(path, os.O_PATH | os.O_NOFOLLOW))
            st = os.fstat(self._held[-1])
            self._ctimes[st.st_dev, st.st_ino] = st.st_ctime_ns
            if stat.S_ISDIR(st.st_mode):
                todo += [os.path.join(path, name) for name in os.listdir(path)]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Have this process see that for the time of the block."""
        try:
            with pytest.MonkeyPatch.context() as patch:
                self._patch(patch)
                yield
        finally:
            for fd in self._held:
                os.close(fd)

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        lstat, fstat, look = os.lstat, os.fstat, syscalls.look
        for name in ("stat", "lstat", "fstat"):
            really = getattr(os, name)
            patch.setattr(os, name, lambda *args, really=really, **options: self.of(really(*args, **options)))
        listed = os.scandir
        patch.setattr(os, "scandir", lambda *args: _Listed(listed(*args), self))

        def seen(target: bytes | int, known: dict[bytes, bool] | None = None) -> syscalls.Facts:
            st = lstat(target) if isinstance(target, bytes) else fstat(target)
            recorded = self.recorded(st.st_dev, st.st_ino)
            facts = look(target, known)
            return msgspec.structs.replace(facts, birth_ns=recorded.birth_ns or None) if recorded is not None else facts

        patch.setattr(syscalls, "look", seen)

    def recorded(self, device: int, inode: int) -> Recorded | None:
        """Return what was recorded of what is there by a number of the disk."""
        return self._known.get((device, inode))

    def of(self, st: os.stat_result) -> os.stat_result:
        """Return what is seen: all that :mod:`yolofs` asks for, in the order of its fields."""
        recorded = self.recorded(st.st_dev, st.st_ino)
        ctime_ns = st.st_ctime_ns
        if recorded is not None and self._ctimes[st.st_dev, st.st_ino] == ctime_ns:  # untouched
            ctime_ns = recorded.ctime_ns
        times = (st.st_atime, st.st_mtime, st.st_ctime, st.st_atime_ns, st.st_mtime_ns, ctime_ns)
        number = self.number(st.st_dev, st.st_ino)
        return os.stat_result((st.st_mode, number, *st[2:10], *times, st.st_blksize, st.st_blocks, st.st_rdev))

    def number(self, device: int, inode: int) -> int:
        """Return the inode number that is seen of what has a number of the disk."""
        recorded = self.recorded(device, inode)
        return recorded.number if recorded is not None else inode + ELSEWHERE


class _Listed:
    """What os.scandir returns."""

    def __init__(self, entries: Any, numbers: SeenNumbers) -> None:
        self._entries = entries
        self._numbers = numbers

    def __enter__(self) -> Iterator[_Listing]:
        return iter(self)

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def __iter__(self) -> Iterator[_Listing]:
        return (_Listing(entry, self._numbers) for entry in self._entries)


class _Listing:
    """One entry of it."""

    def __init__(self, entry: os.DirEntry[Any], numbers: SeenNumbers) -> None:
        self._entry = entry
        self._numbers = numbers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._numbers.of(self._entry.stat(follow_symlinks=follow_symlinks))

    def inode(self) -> int:
        st = self._entry.stat(follow_symlinks=False)
        return self._numbers.number(st.st_dev, st.st_ino)
