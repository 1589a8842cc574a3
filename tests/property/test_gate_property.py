"""Random operations under random rules on the handlers, without a mount, walked through as the
kernel would.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.support.core_driver import OWNER
from tests.support.gate_machine import GateMachine
from tests.support.gate_world import NOTE, Seen
from tests.support.model_steps import model_settings
from yolofs.access.gate import Gate, Grant
from yolofs.access.refusals import UndecidedError
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.fuse.handlers import Handlers
from yolofs.overlay import Overlay
from yolofs.overlay.inodes import ROOT_NUMBER, Attr
from yolofs.rules import RuleBook, RuleIndex, RuleSet, RuleState
from yolofs.session.session import Session, SessionAccess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
T = TypeVar("T")
_LINKS = 40


class Handle(NamedTuple):
    """What a program has hold of; the kernel holds all directories on the way, too."""

    number: int
    looked_up: list[int]
    directory: int | None = None


class HandlersDriver:
    """Calls the handlers as the kernel does: look each step up, act, forget."""

    def __init__(self, base: bytes) -> None:
        Session.create(base)
        self.session = Session.open(base, SessionAccess.WRITE, root=base)
        state = self.session.present()
        self.overlay = Overlay(
            self.session.base, self.session.store, self.session.journal, state.tree, fresh_from=state.fresh_from
        )
        self.book = RuleBook()
        self.gate = Gate(self.overlay, self.book)
        lifetimes = Lifetimes(self.overlay.base, staged_s=1, base_s=1)
        self.handlers = Handlers(self.overlay, self.gate, lifetimes)
        self.handlers.lost_names.thread_of_request = threading.get_native_id  # each request waits for the one before
        self.is_yes = False

    def close(self) -> None:
        self.overlay.close()
        self.session.close()

    # ---- as the kernel and the adapter do

    def _call(self, handler: Callable[..., T], *args: Any) -> T:
        """Make a request, and answer what it asks."""
        granted: frozenset[Grant] = frozenset()
        while True:
            try:
                with self.gate.granting(granted):
                    return handler(*args)
            except UndecidedError as undecided:
                if not self.is_yes:
                    raise PermissionError(errno.EACCES, "denied") from None
                key = undecided.question.key
            assert key not in granted
            granted |= {key}

    def _lookup(self, parent: int, name: bytes) -> Attr:
        attr = self._call(self.handlers.lookup, parent, name).attr
        if attr is None:
            raise FileNotFoundError(errno.ENOENT, "not found")
        return attr

    @contextlib.contextmanager
    def _at(self, path: bytes, *, follows: bool = True) -> Iterator[Attr]:
        """Look every step of a path up, following links, and forget them all afterwards."""
        looked_up: list[int] = []
        try:
            yield self._walk(path, looked_up, follows=follows)
        finally:
            self._forget_all(looked_up)

    def _walk(self, path: bytes, looked_up: list[int], *, follows: bool) -> Attr:
        passed, links = [self._of_root()], 0
        rest = path.split(b"/")[::-1] if path else []
        while rest:
            name = rest.pop()
            if not stat.S_ISDIR(passed[-1].mode):
                raise NotADirectoryError(errno.ENOTDIR, "no directory")
            if name == b"..":
                passed.pop()
                assert passed, f"{path!r} leads out of the view"
                continue
            attr = self._lookup(passed[-1].number, name)
            looked_up.append(attr.number)
            if stat.S_ISLNK(attr.mode) and (follows or rest):
                links += 1
                if links > _LINKS:
                    raise OSError(errno.ELOOP, "too many links")
                rest += self._call(self.handlers.readlink, attr.number).split(b"/")[::-1]
            else:
                passed.append(attr)
        return passed[-1]

    def _of_root(self) -> Attr:
        attr = self._call(self.handlers.getattr, ROOT_NUMBER).attr
        assert attr is not None
        return attr

    @contextlib.contextmanager
    def _above(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        above, _, name = path.rpartition(b"/")
        with self._at(above) as attr:
            if not stat.S_ISDIR(attr.mode):
                raise NotADirectoryError(errno.ENOTDIR, "no directory")
            yield attr.number, name

    def _forget(self, answer: Any) -> None:
        self.handlers.forget([(answer.attr.number, 1)])

    # ---- operations

    def create(self, path: bytes, data: bytes) -> None:
        with self._above(path) as (parent, name):
            opened, answer = self._call(self.handlers.create, parent, name, 0o644, os.O_WRONLY | os.O_EXCL, OWNER)
            self.handlers.write(opened.handle, 0, data)
            self.handlers.release(opened.handle)
            self._forget(answer)

    def overwrite(self, path: bytes, data: bytes) -> None:
        """Open with O_CREAT and O_TRUNC, as the kernel does where it does not know the name, at the
        end of links.
        """
        flags = os.O_WRONLY | os.O_TRUNC
        for _ in range(_LINKS):
            with self._above(path) as (parent, name):
                target = self._target(parent, name)
                if target is None:
                    opened, answer = self._call(self.handlers.create, parent, name, 0o644, flags, OWNER)
                    self.handlers.write(opened.handle, 0, data)
                    self.handlers.release(opened.handle)
                    self._forget(answer)
                    return
            path = os.path.join(os.path.dirname(path), target)
        raise OSError(errno.ELOOP, "too many links")

    def _target(self, parent: int, name: bytes) -> bytes | None:
        """Return what the link at a name holds, None if there is none to be seen."""
        with contextlib.suppress(FileNotFoundError):
            attr = self._lookup(parent, name)
            try:
                return self._call(self.handlers.readlink, attr.number) if stat.S_ISLNK(attr.mode) else None
            finally:
                self.handlers.forget([(attr.number, 1)])
        return None

    def append(self, path: bytes, data: bytes) -> None:
        with self._at(path) as attr:
            if not stat.S_ISREG(attr.mode):
                raise IsADirectoryError(errno.EISDIR, "no file")
            opened = self._call(self.handlers.open, attr.number, os.O_RDWR)
            self.handlers.write(opened.handle, attr.size, data)
            self.handlers.release(opened.handle)

    def truncate(self, path: bytes, size: int) -> None:
        with self._at(path) as attr:
            self._call(self.handlers.setattr, attr.number, None, None, None, size, None, None)

    def read(self, path: bytes) -> bytes:
        with self._at(path) as attr:
            if not stat.S_ISREG(attr.mode):
                raise IsADirectoryError(errno.EISDIR, "no file")
            return self._read(attr.number)

    def _read(self, number: int) -> bytes:
        opened = self._call(self.handlers.open, number, os.O_RDONLY)
        try:
            data = self.handlers.read(opened.handle, 0, 1 << 16)
            return bytes(data) if data is not None else self.handlers.read_job(opened.handle, 0, 1 << 16)()
        finally:
            self.handlers.release(opened.handle)

    def mkdir(self, path: bytes) -> None:
        with self._above(path) as (parent, name):
            self._forget(self._call(self.handlers.mkdir, parent, name, 0o755, OWNER))

    def mkfifo(self, path: bytes) -> None:
        with self._above(path) as (parent, name):
            self._forget(self._call(self.handlers.mknod, parent, name, stat.S_IFIFO | 0o644, 0, OWNER))

    def rmdir(self, path: bytes) -> None:
        with self._above(path) as (parent, name):
            self._call(self.handlers.rmdir, parent, name)

    def unlink(self, path: bytes) -> None:
        with self._above(path) as (parent, name):
            self._call(self.handlers.unlink, parent, name)

    def rename(self, old: bytes, new: bytes, flags: int) -> None:
        with self._above(old) as (parent, name), self._above(new) as (new_parent, new_name):
            self._call(self.handlers.rename, parent, name, new_parent, new_name, flags)

    def link(self, old: bytes, new: bytes) -> None:
        with self._at(old, follows=False) as attr, self._above(new) as (parent, name):
            self._forget(self._call(self.handlers.link, attr.number, parent, name))

    def symlink(self, target: bytes, path: bytes) -> None:
        with self._above(path) as (parent, name):
            self._forget(self._call(self.handlers.symlink, parent, name, target, OWNER))

    def chmod(self, path: bytes, mode: int) -> None:
        with self._at(path) as attr:
            self._call(self.handlers.setattr, attr.number, mode, None, None, None, None, None)

    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None:
        with self._at(path) as attr:
            self._check_xattr(attr)
            self._call(self.handlers.setxattr, attr.number, name, value)

    def removexattr(self, path: bytes, name: bytes) -> None:
        with self._at(path) as attr:
            self._check_xattr(attr)
            self._call(self.handlers.removexattr, attr.number, name)

    @staticmethod
    def _check_xattr(attr: Attr) -> None:
        if not (stat.S_ISREG(attr.mode) or stat.S_ISDIR(attr.mode)):
            raise PermissionError(errno.EPERM, "only files and directories have attributes of users")

    def stat(self, path: bytes) -> Seen:
        with self._at(path, follows=False) as attr:
            return Seen(attr.size, attr.nlink)

    def readlink(self, path: bytes) -> bytes:
        with self._at(path, follows=False) as attr:
            return self._call(self.handlers.readlink, attr.number)

    def getxattr(self, path: bytes, name: bytes) -> bytes:
        with self._at(path) as attr:
            return self._call(self.handlers.getxattr, attr.number, name)

    def listxattr(self, path: bytes) -> list[bytes]:
        with self._at(path) as attr:
            return self._call(self.handlers.listxattr, attr.number)

    def listdir(self, path: bytes) -> list[bytes]:
        with self._at(path) as attr:
            if not stat.S_ISDIR(attr.mode):
                raise NotADirectoryError(errno.ENOTDIR, "no directory")
            return self._names(attr.number)

    def _names(self, number: int) -> list[bytes]:
        handle = self._call(self.handlers.opendir, number)
        try:
            return self._names_of_open(handle)
        finally:
            self.handlers.releasedir(handle)

    def _names_of_open(self, handle: int) -> list[bytes]:
        directory = self.handlers.directory(handle, 0)
        found = []
        for name in directory.names[2:]:
            answer = self.handlers.listed(directory, name)
            if answer.attr is not None:
                found.append(name)
                self._forget(answer)
        return found

    # ---- what is held

    def hold(self, path: bytes) -> Handle:
        looked_up: list[int] = []
        try:
            attr = self._walk(path, looked_up, follows=False)
        except OSError:
            self._forget_all(looked_up)
            raise
        return Handle(attr.number, looked_up)

    def hold_open(self, path: bytes) -> Handle:
        held = self.hold(path)
        try:
            if not self.overlay.inodes.by_number[held.number].is_directory:
                raise NotADirectoryError(errno.ENOTDIR, "no directory")
            return held._replace(directory=self._call(self.handlers.opendir, held.number))
        except OSError:
            self.let_go(held)
            raise

    def let_go(self, held: Handle) -> None:
        if held.directory is not None:
            self.handlers.releasedir(held.directory)
        self._forget_all(held.looked_up)

    def _forget_all(self, looked_up: list[int]) -> None:
        self.handlers.forget([(number, 1) for number in looked_up])

    def look(self, held: Handle) -> Seen:
        attr = self._call(self.handlers.getattr, held.number).attr
        assert attr is not None
        return Seen(attr.size, attr.nlink)

    def read_link(self, held: Handle) -> bytes:
        return self._call(self.handlers.readlink, held.number)

    def read_held(self, held: Handle) -> bytes:
        return self._read(held.number)

    def read_note(self, held: Handle) -> bytes:
        return self._call(self.handlers.getxattr, held.number, NOTE)

    def list_notes(self, held: Handle) -> list[bytes]:
        return self._call(self.handlers.listxattr, held.number)

    def chmod_held(self, held: Handle, mode: int) -> None:
        self._call(self.handlers.setattr, held.number, mode, None, None, None, None, None)

    def shows_below(self, held: Handle, name: bytes) -> bool:
        with contextlib.suppress(OSError):
            self.handlers.forget([(self._lookup(held.number, name).number, 1)])
            return True
        return False

    def names_in(self, held: Handle) -> list[bytes]:
        return self._names(held.number) if held.directory is None else self._names_of_open(held.directory)

    def path_of(self, held: Handle) -> bytes | None:
        inode = self.overlay.inodes.by_number[held.number]
        return None if inode.is_orphan or not _is_placed(self.overlay, held.number) else self.overlay.path(inode)

    def verdicts(self) -> dict[bytes, RuleState]:
        """Return what the inodes remember of the rules in force."""
        known = self.overlay.inodes.by_number.values()
        return {
            self.overlay.path(inode): inode.judgement.verdict.state
            for inode in known
            if inode.judgement.version == self.book.version and _is_placed(self.overlay, inode.number)
        }

    # ---- rules and time

    def answer(self, *, yes: bool) -> None:
        self.is_yes = yes

    def replace_rules(self, *sources: RuleSet) -> None:
        self.gate.replace_rules(RuleIndex(*sources))()

    def snapshot(self) -> int:
        generation = self.session.snapshot()
        assert generation is not None
        self.overlay.mark(self.session.store.next_ino)
        return generation

    def travel(self, generation: int) -> int:
        _, present = self.session.travel(str(generation))
        self._reload()
        return present

    def abort(self) -> None:
        self.session.put_away(None)
        self._reload()

    def _reload(self) -> None:
        state = self.session.present()
        self.overlay.reload(self.session.journal, state.tree, fresh_from=state.fresh_from)


def _is_placed(overlay: Overlay, number: int) -> bool:
    """Tell whether an inode, and each directory above it, still has a name."""
    inode = overlay.inodes.by_number[number]
    try:
        overlay.path(inode)
    except FileNotFoundError:
        return False
    return True


class HandlersMachine(GateMachine):
    """The handlers, driven as the kernel would."""

    make_driver = HandlersDriver


TestGateOnHandlers = HandlersMachine.TestCase
TestGateOnHandlers.settings = settings(
    model_settings(ci=(4, 30), nightly=(600, 30)), suppress_health_check=[HealthCheck.too_slow]
)
