"""Random changes through the gate: this part of its machine compares their effect with the
protected files.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.support.drawn_rules import link_targets
from tests.support.gate_looking import HELD, LookingMachine, picks
from tests.support.gate_world import NOTE, Shown, What, is_at_or_below

flags = st.sampled_from((0, 0, 2))
"""Of renameat2(2): none, or RENAME_EXCHANGE."""
FILE_CHANGES = ("overwrite", "append", "truncate", "chmod", "setxattr", "removexattr")
"""The operations that change a file and leave its names."""


class ChangingMachine(LookingMachine):
    """Performs operations through the gate, and looks without it at what they did."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0
        self.generations = [0]

    # ---- checks

    def _change(self, operation: str, *args: Any) -> None:
        """Try a change and compare what it did with what is protected."""
        world, before, records = self.world, self.world.first_names, self._records()
        _, number = self._attempt(operation, *args)
        if operation == "unlink" and number == errno.EACCES and args[0] in world.of_kind("link"):
            assert not world.is_free_link(args[0]), f"{args[0]!r} could not be removed"
        if number and records == self._records():
            return
        now, why = world.look(), f"{operation}{args}"
        world.check_ways(now, why)
        if operation == "link" and not number:
            world.check_linked(world.real(args[0]), before)
        if operation == "rename" and not number:
            old, new, how = args
            self._renamed(world.real(old), world.real(new), how, now)
        self._compare(now, why)

    def _make(self, *made: tuple[str, *tuple[bytes, ...]]) -> None:
        """Try to make names of which none is any rule's matter more than the others; look once."""
        records = self._records()
        for operation, *args in made:
            self._attempt(operation, *args)
        if records != self._records():
            now = self.world.look()
            self.world.check_ways(now, f"{made}")
            self._compare(now, f"{made}")

    def _compare(self, now: Shown, why: str) -> None:
        """Check that what is protected is as it was."""
        world = self.world
        for path in world.kept.keys() | now.keys():
            if world.is_fixed(path):
                assert now.get(path) == world.kept.get(path), f"{why} changed {path!r}"
        world.kept = now

    def _records(self) -> int:
        return self.view.session.journal.record_count

    def _renamed(self, old: bytes, new: bytes, how: int, now: Shown) -> None:
        """Carry along the content of a renamed directory: only that which patterns protect, and
        still do.
        """
        kept = self.world.kept
        if kept == now:  # two names of one file
            return
        moved: Shown = {}
        for path, what in kept.items():
            for source, target in ((old, new), (new, old)) if how == 2 else ((old, new),):
                if is_at_or_below(path, source):
                    place = target + path[len(source) :]
                    moved[place] = what
                    self.world.check_carried(path, place)
        gone = [path for path in kept for top in (old, new) if is_at_or_below(path, top) and path not in moved]
        for path in gone:
            is_replaced = how != 2 and is_at_or_below(path, new)
            assert not (is_replaced and self.world.is_fixed(path)), f"rename replaced {path!r}"
            del kept[path]
        kept.update(moved)

    @contextlib.contextmanager
    def _answering(self, yes: bool) -> Iterator[None]:
        self.world.is_granting = yes
        self.view.answer(yes=yes)
        try:
            yield
        finally:
            self.world.is_granting = False
            self.view.answer(yes=False)

    def _data(self) -> bytes:
        self.written += 1
        return b"written %d" % self.written

    # ---- steps: changes

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(("create", "overwrite")))
    def write_new(self, pick: tuple[int, bytes], yes: bool, operation: str) -> None:
        with self._answering(yes):
            self._change(operation, self._new(pick), self._data())

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(("mkdir", "mkdir", "mkfifo")))
    def make(self, pick: tuple[int, bytes], yes: bool, operation: str) -> None:
        with self._answering(yes):
            self._change(operation, self._new(pick))

    @rule(to=link_targets, pick=picks, yes=st.booleans())
    def symlink(self, to: bytes, pick: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._change("symlink", to, self._new(pick))

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(FILE_CHANGES))
    def change(self, pick: tuple[int, bytes], yes: bool, operation: str) -> None:
        with self._answering(yes):
            self._change_file(operation, self._old(pick))

    def _change_file(self, operation: str, path: bytes) -> None:
        match operation:
            case "overwrite" | "append":
                self._change(operation, path, self._data())
            case "truncate":
                self._change(operation, path, 1 + self.written % 9)
            case "chmod":
                mode = 0o600 if self.world.kept.get(path, What("", 0)).mode & 0o100 else 0o700
                self._change(operation, path, mode)
            case "setxattr":
                self._change(operation, path, NOTE, self._data())
            case _:
                self._change(operation, path, NOTE)

    @rule(pick=picks, yes=st.booleans())
    def remove(self, pick: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._remove(self._old(pick))

    def _remove(self, path: bytes) -> None:
        self._change("rmdir" if path in self.world.of_kind("dir") else "unlink", path)

    @rule(pick=picks)
    def remove_below(self, pick: tuple[int, bytes]) -> None:
        """Remove whatever may be removed, as rm -r does."""
        top = self._old(pick)
        for path in sorted(self.world.kept, reverse=True):
            if is_at_or_below(path, top):
                self._remove(path)

    @rule(old=picks, new=picks, how=flags, yes=st.booleans())
    def rename(self, old: tuple[int, bytes], new: tuple[int, bytes], how: int, yes: bool) -> None:
        with self._answering(yes):
            self._change("rename", self._old(old), self._new(new), how)

    @rule(old=picks, new=picks, how=flags, yes=st.booleans())
    def rename_onto(self, old: tuple[int, bytes], new: tuple[int, bytes], how: int, yes: bool) -> None:
        with self._answering(yes):
            self._change("rename", self._old(old), self._old(new), how)

    @rule(old=picks, new=picks, yes=st.booleans())
    def link(self, old: tuple[int, bytes], new: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._change("link", self._old(old, "file", "link", "other"), self._new(new))

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, HELD), operation=st.sampled_from(("chmod_held",)))
    def change_held(self, number: int, operation: str) -> None:
        held = self.held[number % len(self.held)]
        path = self.view.path_of(held.handle)
        what = self.world.kept.get(path) if path is not None else None
        if what is not None and what.kind in ("dir", "file"):
            self._change(operation, held.handle, 0o600 if what.mode & 0o100 else 0o700)

    # ---- steps: time

    @rule()
    def snapshot(self) -> None:
        self.generations.append(self.view.snapshot())

    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        self.generations.append(self.view.travel(data.draw(st.sampled_from(self.generations))))
        self._show_another_state()

    @rule()
    def abort(self) -> None:
        self.view.abort()
        self.generations = [0]
        self._show_another_state()

    def _show_another_state(self) -> None:
        self.held = [held._replace(path=b"") for held in self.held]
        self.world.kept = self.world.look()
