"""Random operations under random rules: a hypothesis state machine that looks for anything that rules do not allow.

It drives the handlers (:mod:`tests.property.test_gate_property`) and a mount (:mod:`tests.mount.test_gate_model`); what
they are compared with is a :class:`tests.property.gate_world.World`.  Some steps are aimed: they put a rule in force
and try whatever could get around it, as random ones seldom meet.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.gate_world import (
    NOTE,
    Drawn,
    Driver,
    Shown,
    What,
    World,
    above,
    drawn_rules,
    guarded_paths,
    is_at_or_below,
    names,
    paths,
    populate,
    rule_sets,
    states,
)
from yolofs.rules import RuleState

flags = st.sampled_from((0, 0, 2))
guards = st.sampled_from([state for state in RuleState if not state.may_write])
picks = st.tuples(st.integers(0, 40), names)
"""A path, as a number of one that is shown now, and a name to be put below it if it is to be new."""
_FILE_CHANGES = ("overwrite", "append", "truncate", "chmod", "setxattr", "removexattr")
_HELD = 8
_SINGLE = [b"base " + path for path in (b"a/c.x", b"a/b/c.x", b"a/b/a/b", b"b/b", b"c.x")]
"""The contents of files that have one name in base."""


class Held(NamedTuple):
    """Something that a program has hold of."""

    path: bytes
    """By which it was found; empty once that may be another file's."""
    handle: Any
    is_open: bool
    """Whether it is a directory that was opened to be listed."""


class GateMachine(RuleBasedStateMachine):
    """Performs operations through the gate, and looks without it at what they did."""

    make_driver: Callable[[bytes], Driver]

    def __init__(self) -> None:
        super().__init__()
        self.base = os.fsencode(tempfile.mkdtemp(prefix="yolofs-gate-"))
        populate(self.base)
        self.view = type(self).make_driver(self.base)
        self.world = World(self.base, self.view.session)
        self.drawn: Sequence[Drawn] = ()
        self.written = 0
        self.held: list[Held] = []
        self.generations = [0]

    @initialize(drawn=rule_sets)
    def first_rules(self, drawn: list[Drawn]) -> None:
        self._put_in_force(drawn)

    def teardown(self) -> None:
        try:
            self.view.close()
        finally:
            shutil.rmtree(self.base)

    # ---- checks

    def _attempt(self, operation: str, *args: Any) -> tuple[Any, int]:
        """Try something; return what it tells and 0, or None and the errno.

        An OSError is as good as anything, but nothing may come of it.
        """
        try:
            return getattr(self.view, operation)(*args), 0
        except OSError as error:
            number = error.errno or errno.EIO
            if number in (errno.EIO, errno.ESTALE):
                raise AssertionError(f"{operation}{args}: {error!r}") from error
            return None, number

    def _change(self, operation: str, *args: Any) -> None:
        """Try a change and compare what it did with what is protected."""
        world, before, records = self.world, self.world.first_names, self._records()
        _, number = self._attempt(operation, *args)
        if number and records == self._records():
            return
        now = world.look()
        if operation == "link" and not number:
            world.check_linked(world.real(args[0]), before)
        if operation == "rename" and not number:
            old, new, how = args
            self._renamed(world.real(old), world.real(new), how, now)
        for path in world.kept.keys() | now.keys():
            if world.is_fixed(path):
                assert now.get(path) == world.kept.get(path), f"{operation}{args} changed {path!r}"
        world.check_ways(now, f"{operation}{args}")
        world.kept = now

    def _records(self) -> int:
        return self.view.session.journal.record_count

    def _renamed(self, old: bytes, new: bytes, how: int, now: Shown) -> None:
        """Carry along what a directory that was renamed holds: only what patterns protect, and still do."""
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

    def _old(self, pick: tuple[int, bytes], *kinds: str) -> bytes:
        """Return a path that shows something, of some kind if there is any."""
        found = self.world.of_kind(*kinds) if kinds else sorted(self.world.kept)
        return found[pick[0] % len(found)] if found else pick[1]

    def _new(self, pick: tuple[int, bytes]) -> bytes:
        """Return a path in a directory that shows, which may show something itself."""
        directories = [b"", *self.world.of_kind("dir")]
        return os.path.join(directories[pick[0] % len(directories)], pick[1])

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(("create", "overwrite")))
    def write_new(self, pick: tuple[int, bytes], yes: bool, operation: str) -> None:
        with self._answering(yes):
            self._change(operation, self._new(pick), self._data())

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(("mkdir", "mkdir", "mkfifo")))
    def make(self, pick: tuple[int, bytes], yes: bool, operation: str) -> None:
        with self._answering(yes):
            self._change(operation, self._new(pick))

    @rule(to=names, pick=picks, yes=st.booleans())
    def symlink(self, to: bytes, pick: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._change("symlink", to, self._new(pick))

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(_FILE_CHANGES))
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

    # ---- steps: changes that are aimed at a rule

    @rule(path=guarded_paths, state=guards, is_alone=st.booleans(), pick=picks)
    def go_around_a_rule(self, path: bytes, state: RuleState, is_alone: bool, pick: tuple[int, bytes]) -> None:
        """Guard a path, and try all that could change it, at it and at the directories above it."""
        self._put_in_force([*(() if is_alone else self.drawn), Drawn(0, "path", path, b"", state)])
        for top in (*above(path), path):
            self._try_all_at(top, pick)

    @rule(scope=paths, state=guards, name=st.sampled_from((b"b", b"c.x")), pick=picks)
    def go_around_a_pattern(self, scope: bytes, state: RuleState, name: bytes, pick: tuple[int, bytes]) -> None:
        """Guard the names in a directory, and try all that could change what is there."""
        self._put_in_force([Drawn(0, "name", scope, name, state)])
        for top in (*above(scope), scope, os.path.join(scope, name)):
            self._try_all_at(top, pick)

    def _try_all_at(self, path: bytes, pick: tuple[int, bytes]) -> None:
        self._change("symlink", b"a", path)
        self._change("symlink", b"a", b"way")
        for kind in ("dir", "link", "file"):
            for how in (2, 0):
                other = self._old(pick, kind)
                self._change("rename", path, other, how)
                self._change("rename", other, path, how)
        self._change("link", self._old(pick, "link"), path)
        self._change("link", self._old(pick, "file"), path)
        for operation in _FILE_CHANGES:
            self._change_file(operation, path)
        self._change("link", path, self._new(pick))
        self._change("rename", path, self._new(pick), 0)
        self._remove(path)
        for operation in ("mkfifo", "mkdir"):
            self._change(operation, path)

    @rule(
        pick=picks, new=picks, state=guards, opened=st.sampled_from((RuleState.ALLOW, RuleState.WRITE_ASK)), how=flags
    )
    def undo_a_pattern(
        self, pick: tuple[int, bytes], new: tuple[int, bytes], state: RuleState, opened: RuleState, how: int
    ) -> None:
        """Try to bring what a pattern guards to where a rule for just its path lets more through."""
        fitting = [path for path in self.world.kept if path.endswith(b"c.x") and above(path)] or [b"a/c.x"]
        source = _any(above(fitting[pick[0] % len(fitting)]), pick)
        inside = [path[len(source) :] for path in fitting if path.startswith(source + b"/")]
        others = [path for path in self.world.of_kind("dir") if not is_at_or_below(path, source)]
        target = others[new[0] % len(others)] if how and others else b"free"
        self._put_in_force(
            [Drawn(1, "suffix", b"", b".x", state), *(Drawn(1, "path", target + rest, b"", opened) for rest in inside)]
        )
        if how and new[0] % 2:
            source, target = target, source
        self._change("rename", source, target, how)

    @rule(pick=picks, new=picks, state=guards, is_staged=st.booleans(), is_known=st.booleans())
    def change_a_file_one_name_of_which_is_guarded(
        self, pick: tuple[int, bytes], new: tuple[int, bytes], state: RuleState, is_staged: bool, is_known: bool
    ) -> None:
        """Guard one name of a file that has several, and try to get at the file by each of the others."""
        if is_staged:
            path = self._old(pick, "file")
            self._change("overwrite", path, self._data())
            self._change("link", path, self._new(new))
        else:
            linked = self.world.linked()
            path = linked[pick[0] % len(linked)] if linked else pick[1]
        of_file = self.world.names_of(path)
        guarded = of_file[new[0] % len(of_file)]
        others = [name for name in of_file if name != guarded]
        while is_known and len(self.held) + len(of_file) > _HELD:
            self.let_go(0)
        for name in (guarded, *others) if is_known else ():
            self._hold("hold", name)
        self._put_in_force([*self.drawn, Drawn(0, "path", guarded, b"", state)])
        for other in others:
            for operation in _FILE_CHANGES:
                self._change_file(operation, other)
            self._change("link", other, self._new(pick))

    @rule(pick=picks, new=picks, state=st.sampled_from((RuleState.ASK, RuleState.WRITE_ASK)), below=states, how=flags)
    def move_what_is_held(
        self, pick: tuple[int, bytes], new: tuple[int, bytes], state: RuleState, below: RuleState, how: int
    ) -> None:
        """Rename a directory with something in it that is known, to where there are other rules."""
        inside = [path for path in self.world.kept if above(path)]
        source = _any(above(inside[pick[0] % len(inside)]), pick) if inside else b"a"
        target = self._old(new, "dir") if how else self._new((new[0], b"moved"))
        while len(self.held) > _HELD - 2:
            self.let_go(0)
        for path in self.world.names_in(source)[:2]:
            self._hold("hold", path)
        rules = [Drawn(0, "path", target, b"", state), Drawn(1, "name", new[1], b"b", below)]
        self._put_in_force([*rules, Drawn(0, "path", target + b"/b", b"", below)] if how else rules)
        with self._answering(True):
            self._change("rename", source, target, how)
        self.verdicts_are_those_of_the_naive_walk()
        self.look_at_what_is_held()

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
        """See that content is told where it may be read, and else not; of a file with links by all its names."""
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

    @precondition(lambda self: len(self.held) < _HELD)
    @rule(pick=picks)
    def hold(self, pick: tuple[int, bytes]) -> None:
        self._hold("hold", self._old(pick))

    @precondition(lambda self: len(self.held) < _HELD)
    @rule(pick=picks)
    def hold_open(self, pick: tuple[int, bytes]) -> None:
        self._hold("hold_open", self._old(pick, "dir"))

    def _hold(self, operation: str, path: bytes) -> None:
        if len(self.held) < _HELD:
            handle, _ = self._attempt(operation, path)
            if handle is not None:
                self.held.append(Held(self.world.real(path), handle, operation == "hold_open"))

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, _HELD))
    def let_go(self, number: int) -> None:
        self.view.let_go(self.held.pop(number % len(self.held)).handle)

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, _HELD), operation=st.sampled_from(("chmod_held",)))
    def change_held(self, number: int, operation: str) -> None:
        held = self.held[number % len(self.held)]
        path = self.view.path_of(held.handle)
        what = self.world.kept.get(path) if path is not None else None
        if what is not None and what.kind in ("dir", "file"):
            self._change(operation, held.handle, 0o600 if what.mode & 0o100 else 0o700)

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
                assert told == content
                assert all(world.state(name).may_read for name in known), f"{path!r} could be read"
        if what.kind == "dir":
            for below in world.names_in(path):
                is_told = self.view.shows_below(held.handle, os.path.basename(below))
                assert is_told != world.is_absent(below), f"{below!r} is told of: {is_told}"
            listed, _ = self._attempt("names_in", held.handle)
            assert not any(world.is_absent(os.path.join(path, name)) for name in listed or ())
            assert listed is None or held.is_open or not world.is_absent(path), f"{path!r} is hidden, and was listed"

    # ---- steps: rules and time

    @rule(drawn=rule_sets)
    def other_rules(self, drawn: list[Drawn]) -> None:
        self._put_in_force(drawn)

    @rule(drawn=drawn_rules)
    def one_more_rule(self, drawn: Drawn) -> None:
        self._put_in_force([*self.drawn, drawn])

    def _put_in_force(self, drawn: Sequence[Drawn]) -> None:
        """Put rules in force, of two about the same the last, and see what they let be seen."""
        self.drawn = list({one[:4]: one for one in drawn}.values())
        self.world.adopt(self.drawn)
        self.view.replace_rules(*self.world.sources)
        self.world.kept = self.world.look()
        self.look_at_everything()
        self.look_at_what_is_held()

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

    @invariant()
    def verdicts_are_those_of_the_naive_walk(self) -> None:
        for path, state in self.view.verdicts().items():
            is_state = self.world.state(path)
            assert state is is_state, f"{path!r} is kept as {state}, and is {is_state}"


def _any(paths: Sequence[bytes], pick: tuple[int, bytes]) -> bytes:
    return paths[len(pick[1]) % len(paths)]
