"""Random operations under random rules on the handlers, without a mount, walked through as the kernel would."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.property.core_driver import OWNER
from tests.property.gate_machine import GateMachine
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.lifetimes import Lifetimes
from yolofs.gate import Gate, Grant
from yolofs.inodes import ROOT_NUMBER, Attr
from yolofs.overlay import Overlay
from yolofs.refusals import UndecidedError
from yolofs.rules import Index, RuleBook, RuleSet, RuleState
from yolofs.session import Access, Session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
T = TypeVar("T")
_LINKS = 3


class HandlersDriver:
    """Calls the handlers as the kernel does: look each step up, act, forget."""

    def __init__(self, base: bytes) -> None:
        Session.create(base)
        self.session = Session.open(base, Access.WRITE, root=base)
        state = self.session.present()
        self.overlay = Overlay(
            self.session.base, self.session.store, self.session.journal, state.tree, fresh_from=state.fresh_from
        )
        self.book = RuleBook()
        self.gate = Gate(self.overlay, self.book)
        lifetimes = Lifetimes(self.overlay.base, staged_s=1, base_s=1)
        self.handlers = Handlers(self.overlay, self.gate, lifetimes)
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
            yield self._walk(ROOT_NUMBER, path, looked_up, 0, follows=follows)
        finally:
            self.handlers.forget([(number, 1) for number in looked_up])

    def _walk(self, start: int, path: bytes, looked_up: list[int], links: int, *, follows: bool) -> Attr:
        attr = self._call(self.handlers.getattr, start).attr
        assert attr is not None
        steps = path.split(b"/") if path else []
        for depth, step in enumerate(steps):
            if not stat.S_ISDIR(attr.mode):
                raise NotADirectoryError(errno.ENOTDIR, "no directory")
            directory, attr = attr, self._lookup(attr.number, step)
            looked_up.append(attr.number)
            if stat.S_ISLNK(attr.mode) and (follows or depth + 1 < len(steps)):
                if links >= _LINKS:
                    raise OSError(errno.ELOOP, "too many links")
                target = self._call(self.handlers.readlink, attr.number)
                attr = self._walk(directory.number, target, looked_up, links + 1, follows=True)
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
        """Open with O_CREAT and O_TRUNC, as the kernel does where it does not know the name."""
        flags = os.O_WRONLY | os.O_TRUNC
        with self._above(path) as (parent, name):
            opened, answer = self._call(self.handlers.create, parent, name, 0o644, flags, OWNER)
            self.handlers.write(opened.handle, 0, data)
            self.handlers.release(opened.handle)
            self._forget(answer)

    def truncate(self, path: bytes, size: int) -> None:
        with self._at(path) as attr:
            self._call(self.handlers.setattr, attr.number, None, None, None, size, None, None)

    def read(self, path: bytes) -> bytes:
        with self._at(path) as attr:
            if not stat.S_ISREG(attr.mode):
                raise IsADirectoryError(errno.EISDIR, "no file")
            opened = self._call(self.handlers.open, attr.number, os.O_RDONLY, 0)
            try:
                return bytes(self.handlers.read(opened.handle, 0, 1 << 16) or b"")
            finally:
                self.handlers.release(opened.handle)

    def mkdir(self, path: bytes) -> None:
        with self._above(path) as (parent, name):
            self._forget(self._call(self.handlers.mkdir, parent, name, 0o755, OWNER))

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

    def stat(self, path: bytes) -> int:
        with self._at(path, follows=False) as attr:
            return attr.size

    def listdir(self, path: bytes) -> list[bytes]:
        with self._at(path) as attr:
            if not stat.S_ISDIR(attr.mode):
                raise NotADirectoryError(errno.ENOTDIR, "no directory")
            return self._names(attr.number)

    def _names(self, number: int) -> list[bytes]:
        handle = self._call(self.handlers.opendir, number)
        try:
            directory = self.handlers.directory(handle, 0)
            found = []
            for name in directory.names[2:]:
                answer = self.handlers.listed(directory, name)
                if answer.attr is not None:
                    found.append(name)
                    self._forget(answer)
            return found
        finally:
            self.handlers.releasedir(handle)

    # ---- what is held

    def hold(self, path: bytes) -> int:
        with self._at(path, follows=False) as attr:
            self.overlay.inodes.by_number[attr.number].lookups += 1
            return attr.number

    def let_go(self, held: int) -> None:
        self.handlers.forget([(held, 1)])

    def is_shown(self, held: int) -> bool:
        with contextlib.suppress(OSError):
            self._call(self.handlers.getattr, held)
            return True
        return False

    def shows_below(self, held: int, name: bytes) -> bool:
        if not self.overlay.inodes.by_number[held].is_directory:
            return False
        with contextlib.suppress(OSError):
            self.handlers.forget([(self._lookup(held, name).number, 1)])
            return True
        return False

    def names_in(self, held: int) -> list[bytes]:
        if not self.overlay.inodes.by_number[held].is_directory:
            return []
        with contextlib.suppress(OSError):
            return self._names(held)
        return []

    def path_of(self, held: int) -> bytes | None:
        inode = self.overlay.inodes.by_number[held]
        return None if inode.is_orphan or not _is_placed(self.overlay, held) else self.overlay.path(inode)

    def verdicts(self) -> dict[bytes, RuleState]:
        """Return what the inodes remember of the rules in force."""
        known = self.overlay.inodes.by_number.values()
        return {
            self.overlay.path(inode): inode.verdict.state
            for inode in known
            if inode.verdict_version == self.book.version and _is_placed(self.overlay, inode.number)
        }

    # ---- rules and time

    def answer(self, *, yes: bool) -> None:
        self.is_yes = yes

    def replace_rules(self, *sources: RuleSet) -> None:
        self.gate.replace_rules(Index(*sources))()

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
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
