"""Random operations under random rules on a real mount, with what the kernel remembers in
between.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.gate_machine import GateMachine
from tests.support.gate_tools import Answers, renameat2
from tests.support.gate_world import NOTE, Seen
from tests.support.in_process import MountedView
from tests.support.model_steps import model_settings
from yolofs.access.questions import Decision
from yolofs.rules import RuleBook, RuleIndex, RuleSet, RuleState

pytestmark = [pytest.mark.mount, pytest.mark.timeout(600)]


class MountDriver:
    """Works on a mounted view by system calls."""

    def __init__(self, base: bytes) -> None:
        self.book = RuleBook()
        self.answers = Answers()
        self.old_umask = os.umask(0)
        self.view = MountedView(base, book=self.book, asker=self.answers, xattrs=True)
        self.session = self.view.session
        self.held: list[int] = []

    def close(self) -> None:
        for held in self.held:
            os.close(held)
        self.view.close()
        os.umask(self.old_umask)

    def _at(self, path: bytes) -> bytes:
        return os.path.join(self.view.mountpoint, path)

    # ---- operations

    def create(self, path: bytes, data: bytes) -> None:
        self._write(path, data, os.O_CREAT | os.O_EXCL)

    def overwrite(self, path: bytes, data: bytes) -> None:
        self._write(path, data, os.O_CREAT | os.O_TRUNC)

    def _write(self, path: bytes, data: bytes, flags: int) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NONBLOCK | flags, 0o644)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def append(self, path: bytes, data: bytes) -> None:
        fd = os.open(self._at(path), os.O_RDWR | os.O_NONBLOCK | os.O_APPEND)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def truncate(self, path: bytes, size: int) -> None:
        os.truncate(self._at(path), size)

    def read(self, path: bytes) -> bytes:
        with open(self._at(path), "rb", buffering=0) as file:
            return file.read()

    def mkdir(self, path: bytes) -> None:
        os.mkdir(self._at(path), 0o755)

    def mkfifo(self, path: bytes) -> None:
        os.mkfifo(self._at(path), 0o644)

    def rmdir(self, path: bytes) -> None:
        os.rmdir(self._at(path))

    def unlink(self, path: bytes) -> None:
        os.unlink(self._at(path))

    def rename(self, old: bytes, new: bytes, flags: int) -> None:
        renameat2(os.fsdecode(self._at(old)), os.fsdecode(self._at(new)), flags)

    def link(self, old: bytes, new: bytes) -> None:
        os.link(self._at(old), self._at(new), follow_symlinks=False)

    def symlink(self, target: bytes, path: bytes) -> None:
        os.symlink(target, self._at(path))

    def chmod(self, path: bytes, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None:
        os.setxattr(self._at(path), name, value)

    def removexattr(self, path: bytes, name: bytes) -> None:
        os.removexattr(self._at(path), name)

    def stat(self, path: bytes) -> Seen:
        st = os.lstat(self._at(path))
        return Seen(st.st_size, st.st_nlink)

    def readlink(self, path: bytes) -> bytes:
        return os.readlink(self._at(path))

    def listdir(self, path: bytes) -> list[bytes]:
        return os.listdir(self._at(path))

    def getxattr(self, path: bytes, name: bytes) -> bytes:
        return os.getxattr(self._at(path), name)

    def listxattr(self, path: bytes) -> list[bytes]:
        return [os.fsencode(name) for name in os.listxattr(self._at(path))]

    # ---- what is held

    def hold(self, path: bytes) -> int:
        return self._hold(path, os.O_PATH | os.O_NOFOLLOW)

    def hold_open(self, path: bytes) -> int:
        return self._hold(path, os.O_RDONLY | os.O_DIRECTORY)

    def _hold(self, path: bytes, flags: int) -> int:
        self.held.append(os.open(self._at(path), flags))
        return self.held[-1]

    def let_go(self, held: int) -> None:
        self.held.remove(held)
        os.close(held)

    def look(self, held: int) -> Seen:
        st = os.stat(held)
        return Seen(st.st_size, st.st_nlink)

    def read_link(self, held: int) -> bytes:
        return os.readlink(b"", dir_fd=held)

    def read_held(self, held: int) -> bytes:
        with open(b"/proc/self/fd/%d" % held, "rb", buffering=0) as file:
            return file.read()

    def read_note(self, held: int) -> bytes:
        return os.getxattr(b"/proc/self/fd/%d" % held, NOTE)

    def list_notes(self, held: int) -> list[bytes]:
        return [os.fsencode(name) for name in os.listxattr(b"/proc/self/fd/%d" % held)]

    def chmod_held(self, held: int, mode: int) -> None:
        os.chmod(b"/proc/self/fd/%d" % held, mode)

    def shows_below(self, held: int, name: bytes) -> bool:
        with contextlib.suppress(OSError):
            os.stat(name, dir_fd=held, follow_symlinks=False)
            return True
        return False

    def names_in(self, held: int) -> list[bytes]:
        return os.listdir(b"/proc/self/fd/%d" % held)

    def path_of(self, held: int) -> bytes | None:
        """Return where a held file is now, as the overlay knows it; the kernel tells its number
        only if it is shown.
        """
        try:
            number = os.stat(held).st_ino
        except OSError:
            return None
        return self.view.mount.call(lambda: self._path_of(number))

    def _path_of(self, number: int) -> bytes | None:
        inode = self.view.overlay.inodes.by_number.get(number)
        try:
            return self.view.overlay.path(inode) if inode is not None else None
        except FileNotFoundError:
            return None

    def verdicts(self) -> dict[bytes, RuleState]:
        """Return what the inodes remember of the rules in force."""
        return self.view.mount.call(self._verdicts)

    def _verdicts(self) -> dict[bytes, RuleState]:
        found: dict[bytes, RuleState] = {}
        for inode in self.view.overlay.inodes.by_number.values():
            with contextlib.suppress(FileNotFoundError):
                if inode.judgement.version == self.book.version:
                    found[self.view.overlay.path(inode)] = inode.judgement.verdict.state
        return found

    # ---- rules and time

    def answer(self, *, yes: bool) -> None:
        self.answers.decision = Decision.ALLOW if yes else Decision.DENY

    def replace_rules(self, *sources: RuleSet) -> None:
        stale: Any = self.view.mount.call(lambda: self.view.mount.gate.replace_rules(RuleIndex(*sources)))
        self.view.mount.invalidate(stale())

    def snapshot(self) -> int:
        return self.view.snapshot()

    def travel(self, generation: int) -> int:
        return self.view.travel(generation)

    def abort(self) -> None:
        self.view.abort()


class MountMachine(GateMachine):
    """A view behind the kernel."""

    make_driver = MountDriver


TestGateOnMount = MountMachine.TestCase
TestGateOnMount.settings = settings(
    model_settings(ci=(3, 30), nightly=(200, 30)), suppress_health_check=[HealthCheck.too_slow]
)
