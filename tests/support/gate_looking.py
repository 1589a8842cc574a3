"""Looks through the gate, and changes of rules: the part of the gate's machine that changes no
file.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.drawn_rules import Drawn, drawn_rules, names, rule_sets
from tests.support.gate_world import NOTE, Driver, World, populate
from tests.support.session_cleaning import remove_sessions_below

picks = st.tuples(st.integers(0, 40), names)
"""A path, as a number of one that is shown now, and a name to be put below it if it is to be
new.
"""
_FOLLOWING = {
    *("overwrite", "append", "truncate", "read", "chmod", "setxattr", "removexattr"),
    *("listdir", "getxattr", "listxattr", "hold_open"),
}
"""The operations that go on where a link at the very path leads."""
HELD = 8
"""How much is held at a time."""
_SINGLE = [b"base " + path for path in (b"a/c.x", b"a/b/c.x", b"a/b/a/b", b"b/b", b"c.x")]
"""The contents of files that have one name in base."""


class Held(NamedTuple):
    """Something that a program has hold of."""

    path: bytes
    """By which it was found; empty once that may be another file's."""
    handle: Any
    is_open: bool
    """Whether it is a directory that was opened to be listed."""


class LookingMachine(RuleBasedStateMachine):
    """Puts rules in force, and compares what is told through the gate with what they let
    through.
    """

    make_driver: Callable[[bytes], Driver]

    def __init__(self) -> None:
        super().__init__()
        self.base = os.fsencode(os.path.realpath(tempfile.mkdtemp(prefix="yolofs-gate-")))
        populate(self.base)
        self.view = type(self).make_driver(self.base)
        self.world = World(self.base, self.view.session)
        self.drawn: Sequence[Drawn] = ()
        self.held: list[Held] = []

    @initialize(drawn=rule_sets)
    def first_rules(self, drawn: list[Drawn]) -> None:
        self._put_in_force(drawn)

    def teardown(self) -> None:
        try:
            self.view.close()
        finally:
            remove_sessions_below(self.base)
            shutil.rmtree(self.base)

    # ---- checks

    def _attempt(self, operation: str, *args: Any) -> tuple[Any, int]:
        """Try something; return what it tells and 0, or None and the errno.

        An OSError is as good as anything, but nothing may come of it.
        """
        if any(self.world.leads_out(path, follows=operation in _FOLLOWING) for path in _paths_of(operation, args)):
            return None, errno.ENOENT  # what is there is no matter of the gate
        try:
            return getattr(self.view, operation)(*args), 0
        except OSError as error:
            number = error.errno or errno.EIO
            if number in (errno.EIO, errno.ESTALE):
                raise AssertionError(f"{operation}{args}: {error!r}") from error
            return None, number

    def _old(self, pick: tuple[int, bytes], *kinds: str) -> bytes:
        """Return a path that shows something, of some kind if there is any."""
        found = self.world.of_kind(*kinds) if kinds else sorted(self.world.kept)
        return found[pick[0] % len(found)] if found else pick[1]

    def _new(self, pick: tuple[int, bytes]) -> bytes:
        """Return a path in a directory that shows, which may show something itself."""
        directories = [b"", *self.world.of_kind("dir")]
        return os.path.join(directories[pick[0] % len(directories)], pick[1])

    # ---- steps: looking

    @rule()
    def look_at_everything(self) -> None:
        """See that what rules let through is told, and nothing else."""
        self._check_listing(b"")
        for path, what in self.world.kept.items():
            is_out = self.world.is_out_of_sight(path)
            seen = self._told("stat", path, number=errno.ENOENT if is_out else 0)
            match what.kind:
                case "link":
                    assert self._told("readlink", path, number=errno.ENOENT if is_out else 0) in (None, what.data)
                    continue
                case "other":
                    continue
                case "dir":
                    self._check_listing(path)
                    may_tell = self.world.may_tell_links(path)
                    assert seen is None or may_tell or seen.nlink == 1, f"{path!r} tells how many are in it"
                case "file":
                    assert seen is None or seen.size == len(what.data)
                    self._check_told("read", path, what.data)
            listed = self._told("listxattr", path, number=errno.ENOENT if is_out else 0)
            xattrs = {os.fsencode(name): value for name, value in what.xattrs}
            assert listed is None or sorted(listed) == sorted(xattrs), f"{listed} of {path!r}, which has {xattrs}"
            if NOTE in xattrs:
                self._check_told("getxattr", path, xattrs[NOTE], NOTE)

    def _told(self, operation: str, path: bytes, *args: Any, number: int) -> Any:
        """Look, and see that it works, or fails with the errno ``number``."""
        told, got = self._attempt(operation, path, *args)
        assert got == number, f"{operation} of {path!r}: {errno.errorcode.get(got, got)}"
        return told

    def _check_told(self, operation: str, path: bytes, content: bytes, *args: Any) -> None:
        """See that content is told where it may be read, and else not; of a file with links by all
        its names.
        """
        world = self.world
        may_read, is_out = world.state(path).may_read, world.is_out_of_sight(path)
        told, number = self._attempt(operation, path, *args)
        if told is not None:
            assert told == content
            assert may_read, f"{path!r} could be read"
            assert not is_out, f"{path!r} could be read"
        else:
            has_one_name = content in _SINGLE and len(world.names_of(path)) == 1
            assert is_out or not (may_read and has_one_name), f"{path!r} could not be read"
            assert (number == errno.ENOENT) == is_out, f"{operation} of {path!r}: {errno.errorcode.get(number)}"

    def _check_listing(self, path: bytes) -> None:
        world = self.world
        is_out = world.is_out_of_sight(path)
        may_list = world.state(path).may_list or world.is_way(path)
        number = errno.ENOENT if is_out else 0 if may_list else errno.EACCES
        listed = self._told("listdir", path, number=number)
        expected = [os.path.basename(below) for below in world.names_in(path) if not world.is_absent(below)]
        assert listed is None or sorted(listed) == sorted(expected), f"{listed} in {path!r}, not {expected}"

    # ---- steps: what programs hold across changes

    @precondition(lambda self: len(self.held) < HELD)
    @rule(pick=picks)
    def hold(self, pick: tuple[int, bytes]) -> None:
        self._hold("hold", self._old(pick))

    @precondition(lambda self: len(self.held) < HELD)
    @rule(pick=picks)
    def hold_open(self, pick: tuple[int, bytes]) -> None:
        self._hold("hold_open", self._old(pick, "dir"))

    def _hold(self, operation: str, path: bytes) -> None:
        if len(self.held) < HELD:
            handle, _ = self._attempt(operation, path)
            if handle is not None:
                self.held.append(Held(self.world.real(path), handle, operation == "hold_open"))

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, HELD))
    def let_go(self, number: int) -> None:
        self.view.let_go(self.held.pop(number % len(self.held)).handle)

    @rule()
    def look_at_what_is_held(self) -> None:
        for held in self.held:
            path = self.view.path_of(held.handle)
            if path is not None and path in self.world.kept:
                self._check_held(held, path)

    def _check_held(self, held: Held, path: bytes) -> None:
        world, what = self.world, self.world.kept[path]
        same = world.names_of(path)
        known = {path, held.path}.intersection(same)
        is_out, is_seen = all(map(world.is_absent, same)), not all(map(world.is_absent, known))
        looks = {"look": None, "read_link": what.data} if what.kind == "link" else {"look": None, "list_notes": None}
        for operation, content in looks.items():
            told, number = self._attempt(operation, held.handle)
            assert content is None or told in (None, content)
            assert number or not is_out, f"{path!r} is hidden, and {operation} told of it"
            assert not number or not is_seen, f"{path!r} is shown, and {operation} did not tell of it"
        reads = {"read_held": what.data} if what.kind == "file" else {}
        if what.xattrs:
            reads["read_note"] = what.xattrs[0][1]
        for operation, content in reads.items():
            told, number = self._attempt(operation, held.handle)
            if not number:
                assert told == content, f"{operation} of {path!r}: {told!r}, not {content!r}"
                assert all(world.state(name).may_read for name in known), f"{path!r} could be read"
        if what.kind == "dir":
            for below in world.names_in(path):
                is_told = self.view.shows_below(held.handle, os.path.basename(below))
                assert is_told != world.is_absent(below), f"{below!r} is told of: {is_told}"
            listed, _ = self._attempt("names_in", held.handle)
            assert not any(world.is_absent(os.path.join(path, name)) for name in listed or ())
            assert listed is None or held.is_open or not world.is_absent(path), f"{path!r} is hidden, and was listed"

    # ---- rules

    @rule(drawn=rule_sets)
    def other_rules(self, drawn: list[Drawn]) -> None:
        self._put_in_force(drawn)

    @rule(drawn=drawn_rules)
    def one_more_rule(self, drawn: Drawn) -> None:
        self._put_in_force([*self.drawn, drawn])

    def _put_in_force(self, drawn: Sequence[Drawn]) -> None:
        """Put rules in force, of two about the same the last, and see what they let be seen."""
        self.drawn = list({one[:4]: one for one in drawn}.values())
        self.view.replace_rules(*self.world.adopt(self.drawn))
        self.world.kept = self.world.look()
        self.look_at_everything()
        self.look_at_what_is_held()

    @invariant()
    def verdicts_are_those_of_the_naive_walk(self) -> None:
        for path, state in self.view.verdicts().items():
            is_state = self.world.state(path)
            assert state is is_state, f"{path!r} is kept as {state}, and is {is_state}"


def _paths_of(operation: str, args: Sequence[Any]) -> Sequence[bytes]:
    """Return the arguments of an operation that are paths."""
    match operation:
        case "rename" | "link":
            return args[:2]
        case "symlink":
            return args[1:]
        case _:
            return [arg for arg in args[:1] if isinstance(arg, bytes)]
