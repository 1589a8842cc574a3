"""Random operations under random rules: a hypothesis state machine that looks for anything that rules do not allow.

It drives the handlers (:mod:`tests.property.test_gate_property`) and a mount (:mod:`tests.mount.test_gate_model`).
What the rules say of a path is found by a naive walk over all rules; what the view really shows, by a second overlay
that is made of the journal anew and knows no rules.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.core_driver import CoreDriver
from tests.property.naive_rules import in_force, walk
from yolofs.overlay import Overlay
from yolofs.rules import NameRule, PathRule, Rule, RuleSet, RuleState, SuffixRule
from yolofs.session import Session

NAMES = (b"a", b"b", b"c.x", b"d")
names = st.sampled_from(NAMES)
paths = st.sampled_from(
    b"a a/b a/c.x a/b/b a/b/c.x b b/b b/c.x b/a/b b/d b/d/b b/d/c.x d d/a d/b d/b/c.x d/c.x c.x c.x/b".split()
)
"""Paths of rules: of what is there at first, and of what may come."""
states = st.sampled_from(list(RuleState))
flags = st.sampled_from((0, 0, 2))

Shown = dict[bytes, tuple[Any, ...]]
"""What a view shows at each path: "dir" and mode; "file", mode, time, size and content; "link", time and target."""


class Drawn(NamedTuple):
    """A rule as drawn, its paths relative to base."""

    rank: int
    """0 for the nearer of two sources."""
    kind: str
    """A rule for a "path", a "name" or a "suffix", or one for "above": base's parent."""
    path: bytes
    """The path, or the directory below which a pattern holds."""
    name: bytes
    state: RuleState
    is_whole: bool


def _drawn(kind: str, paths: st.SearchStrategy[bytes], name: st.SearchStrategy[bytes]) -> st.SearchStrategy[Drawn]:
    ranks, whole = st.sampled_from((0, 1)), st.sampled_from((False, False, True))
    return st.builds(Drawn, ranks, st.just(kind), paths, name, states, whole)


nothing = st.just(b"")
path_rules = _drawn("path", paths, nothing)
scopes = st.one_of(nothing, paths)
drawn_rules = st.one_of(
    path_rules,
    path_rules,
    path_rules,
    _drawn("name", scopes, names),
    _drawn("suffix", scopes, st.just(b".x")),
    _drawn("suffix", scopes, st.just(b".x")),
    st.one_of(_drawn("path", nothing, nothing), _drawn("above", nothing, nothing)),
)
rule_sets = st.lists(drawn_rules, max_size=4, unique_by=lambda drawn: drawn[:4])
picks = st.tuples(st.integers(0, 40), names)
"""A path, as a number of one that is shown now, and a name to be put below it if it is to be new."""


class Driver(Protocol):
    """How the machine works on a view through its gate, by paths relative to its root, raising OSError."""

    session: Session

    def create(self, path: bytes, data: bytes) -> None: ...
    def overwrite(self, path: bytes, data: bytes) -> None: ...
    def truncate(self, path: bytes, size: int) -> None: ...
    def read(self, path: bytes) -> bytes: ...
    def mkdir(self, path: bytes) -> None: ...
    def rmdir(self, path: bytes) -> None: ...
    def unlink(self, path: bytes) -> None: ...
    def rename(self, old: bytes, new: bytes, flags: int) -> None: ...
    def link(self, old: bytes, new: bytes) -> None: ...
    def symlink(self, target: bytes, path: bytes) -> None: ...
    def chmod(self, path: bytes, mode: int) -> None: ...
    def stat(self, path: bytes) -> int: ...
    def listdir(self, path: bytes) -> list[bytes]: ...
    def hold(self, path: bytes) -> Any: ...
    def is_shown(self, held: Any) -> bool: ...
    def shows_below(self, held: Any, name: bytes) -> bool: ...
    def names_in(self, held: Any) -> list[bytes]: ...
    def let_go(self, held: Any) -> None: ...
    def path_of(self, held: Any) -> bytes | None: ...
    def verdicts(self) -> dict[bytes, RuleState]: ...
    def answer(self, *, yes: bool) -> None: ...
    def replace_rules(self, *sources: RuleSet) -> None: ...
    def snapshot(self) -> int: ...
    def travel(self, generation: int) -> int: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


def populate(base: bytes) -> None:
    """Make the tree that every example starts from; each content is unique."""
    for directory in (b"a/b/a", b"b/a", b"d"):
        os.makedirs(os.path.join(base, directory))
    for path in (b"a/c.x", b"a/b/b", b"a/b/c.x", b"a/b/a/b", b"b/b", b"b/c.x", b"d/a", b"c.x"):
        with open(os.path.join(base, path), "wb") as file:
            file.write(b"base " + path)
    for path, other in ((b"a/b/b", b"d/b"), (b"b/c.x", b"b/a/b"), (b"d/a", b"a/d")):
        os.link(os.path.join(base, path), os.path.join(base, other))
    os.symlink(b"a", os.path.join(base, b"b/d"))


class GateMachine(RuleBasedStateMachine):
    """Performs operations through the gate, and looks without it at what they did."""

    make_driver: Callable[[bytes], Driver]

    def __init__(self) -> None:
        super().__init__()
        self.base = os.fsencode(tempfile.mkdtemp(prefix="yolofs-gate-"))
        populate(self.base)
        self.view = type(self).make_driver(self.base)
        self.drawn: list[Drawn] = []
        self.sources: tuple[RuleSet, ...] = ()
        self._decided: dict[bytes, Rule | None] = {}
        self.written = 0
        self.held: list[Any] = []
        self.generations = [0]
        self.is_granting = False
        self.kept: Shown = {}
        self.first_names: dict[bytes, bytes] = {}
        """The first name of the file at each path that is no directory: names of one file have the same."""

    @initialize(drawn=rule_sets)
    def first_rules(self, drawn: list[Drawn]) -> None:
        self._put_in_force(drawn)

    def teardown(self) -> None:
        try:
            self.view.close()
        finally:
            shutil.rmtree(self.base)

    # ---- what is so

    def shown(self) -> Shown:
        """Return what the view shows to one whom no rules bind."""
        shadow = object.__new__(CoreDriver)
        session = self.view.session
        shadow.overlay = Overlay(
            session.base, session.store, session.journal, session.state(), fresh_from=session.store.next_ino
        )
        try:
            tree = shadow.tree()
        finally:
            shadow.overlay.close()
        self.first_names = {path: what[-1] for path, what in tree.items() if what[0] != "dir"}
        # without link counts, which other names of a file may change
        return {path: what[:2] if what[0] == "dir" else what[:-2] for path, what in tree.items()}

    def decides(self, path: bytes) -> Rule | None:
        """Return the rule that decides over a path."""
        if path not in self._decided:
            found = walk(self.sources, os.path.join(self.base, path) if path else self.base)
            self._decided[path] = found.rule
        return self._decided[path]

    def real(self, path: bytes, *, follows: bool = False) -> bytes:
        """Return where a path leads through links; ``follows``: also where its last name leads."""
        place, rest, links = b"", path.split(b"/"), 0
        while rest:
            step = os.path.join(place, rest.pop(0))
            what = self.kept.get(step)
            if what is not None and what[0] == "link" and (rest or follows) and links < 9:
                links += 1
                rest = [what[-1], *rest]
            else:
                place = step
        return place

    def state(self, path: bytes) -> RuleState:
        found = self.decides(path)
        return found.state if found is not None else RuleState.ASK

    def is_absent(self, path: bytes) -> bool:
        """Tell whether a path may not be known: hidden, and no way to anything that is not."""
        full = os.path.join(self.base, path) if path else self.base
        ways = (found for found in in_force(self.sources) if isinstance(found, PathRule))
        is_way = any(way.path.startswith(full + b"/") and way.state is not RuleState.HIDDEN for way in ways)
        return self.state(path) is RuleState.HIDDEN and not is_way

    def is_fixed(self, path: bytes) -> bool:
        """Tell whether nothing may change a path now."""
        state = self.state(path)
        return not state.may_write and not (self.is_granting and state.asks_to_write)

    # ---- checks

    def _attempt(self, operation: str, *args: Any) -> Any:
        """Try something; an OSError is as good as anything, but nothing may come of it."""
        try:
            result = getattr(self.view, operation)(*args)
        except OSError as error:
            if error.errno in (errno.EIO, errno.ESTALE):
                raise AssertionError(f"{operation}{args}: {error!r}") from error
            return None
        return True if result is None else result

    def _change(self, operation: str, *args: Any) -> None:
        """Try a change and compare what it did with what is protected."""
        before = self.first_names
        done = self._attempt(operation, *args)
        now = self.shown()
        if operation == "link" and done:
            self._check_linked(self.real(args[0]), before)
        if operation == "rename" and done:
            old, new, how = args
            self._renamed(self.real(old), self.real(new), how, now)
        for path in self.kept.keys() | now.keys():
            if self.is_fixed(path):
                assert now.get(path) == self.kept.get(path), f"{operation}{args} changed {path!r}"
        self._check_ways(now, f"{operation}{args}")
        self.kept = now

    def _check_linked(self, path: bytes, before: dict[bytes, bytes]) -> None:
        """Check that a file that got one more name may be changed by each that it had."""
        for other, first in before.items():
            assert first != before[path] or not self.is_fixed(other), f"{path!r} was linked, which is {other!r} too"

    def _renamed(self, old: bytes, new: bytes, how: int, now: Shown) -> None:
        """Carry along what a directory that was renamed holds: only what patterns protect, and still do."""
        if self.kept == now:  # two names of one file
            return
        moved: Shown = {}
        for path, what in self.kept.items():
            for source, target in ((old, new), (new, old) if how == 2 else (b"\0", b"")):
                if path == source or path.startswith(source + b"/"):
                    place = target + path[len(source) :]
                    moved[place] = what
                    self._check_carried(path, place)
        gone = [
            path
            for path in self.kept
            for top in (old, new)
            if (path == top or path.startswith(top + b"/")) and path not in moved
        ]
        for path in gone:
            is_replaced = how != 2 and (path == new or path.startswith(new + b"/"))
            assert not (is_replaced and self.is_fixed(path)), f"rename replaced {path!r}"
            del self.kept[path]
        self.kept.update(moved)

    def _check_carried(self, path: bytes, place: bytes) -> None:
        before, after = self.decides(path), self.decides(place)
        if self.is_fixed(path):
            assert not isinstance(before, PathRule), f"{path!r} was moved, which {before} protects"
            assert before is not None, f"{path!r} was moved"
        if self.is_fixed(place):
            assert not isinstance(after, PathRule), f"{place!r} came to where {after} protects"
            assert self.is_fixed(path), f"{path!r} came to {place!r}, where it could not have been made: {after}"
        if not self.is_granting:
            assert not self.state(path).is_stricter_than(self.state(place)), f"{path!r} is less protected as {place!r}"

    def _check_ways(self, now: Shown, why: str) -> None:
        """Check that paths of rules lead through no links that were not there."""
        for found in in_force(self.sources):
            if not isinstance(found, PathRule) or not found.path.startswith(self.base + b"/"):
                continue
            above = found.path[len(self.base) + 1 :].rpartition(b"/")[0]
            while above:
                before, after = self.kept.get(above, ("",)), now.get(above, ("",))
                if found.state.is_stricter_than(self.state(above)) and "link" in (before[0], after[0]):
                    assert before == after, f"{why} put {after} at {above!r}, above the path of {found}"
                if found.state.is_stricter_than(self.state(above)) and before[0] == "dir":
                    assert after[0] == "dir", f"{why} took {above!r} away, above the path of {found}"
                above = above.rpartition(b"/")[0]

    @contextlib.contextmanager
    def _answering(self, yes: bool) -> Iterator[None]:
        self.is_granting = yes
        self.view.answer(yes=yes)
        try:
            yield
        finally:
            self.is_granting = False
            self.view.answer(yes=False)

    def _data(self) -> bytes:
        self.written += 1
        return b"written %d" % self.written

    # ---- steps: changes

    def _old(self, pick: tuple[int, bytes]) -> bytes:
        """Return a path that shows something."""
        shown = sorted(self.kept)
        return shown[pick[0] % len(shown)] if shown else pick[1]

    def _old_file(self, pick: tuple[int, bytes]) -> bytes:
        """Return a path that shows something that is no directory."""
        files = sorted(path for path, what in self.kept.items() if what[0] != "dir")
        return files[pick[0] % len(files)] if files else pick[1]

    def _new(self, pick: tuple[int, bytes]) -> bytes:
        """Return a path in a directory that shows, which may show something itself."""
        directories = [b"", *sorted(path for path, what in self.kept.items() if what[0] == "dir")]
        return os.path.join(directories[pick[0] % len(directories)], pick[1])

    @rule(pick=picks, yes=st.booleans(), operation=st.sampled_from(("create", "overwrite")))
    def write_new(self, pick: tuple[int, bytes], yes: bool, operation: str) -> None:
        with self._answering(yes):
            self._change(operation, self._new(pick), self._data())

    @rule(pick=picks, yes=st.booleans())
    def mkdir(self, pick: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._change("mkdir", self._new(pick))

    @rule(to=names, pick=picks, yes=st.booleans())
    def symlink(self, to: bytes, pick: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._change("symlink", to, self._new(pick))

    @rule(pick=picks, yes=st.booleans())
    def overwrite(self, pick: tuple[int, bytes], yes: bool) -> None:
        with self._answering(yes):
            self._change("overwrite", self._old(pick), self._data())

    @rule(pick=picks, size=st.integers(1, 9), yes=st.booleans())
    def truncate(self, pick: tuple[int, bytes], size: int, yes: bool) -> None:
        with self._answering(yes):
            self._change("truncate", self._old(pick), size)

    @rule(pick=picks, mode=st.sampled_from((0o600, 0o700)), yes=st.booleans())
    def chmod(self, pick: tuple[int, bytes], mode: int, yes: bool) -> None:
        with self._answering(yes):
            self._change("chmod", self._old(pick), mode)

    @rule(pick=picks, yes=st.booleans())
    def remove(self, pick: tuple[int, bytes], yes: bool) -> None:
        path = self._old(pick)
        with self._answering(yes):
            self._change("rmdir" if self.kept.get(path, ("",))[0] == "dir" else "unlink", path)

    @rule(pick=picks)
    def remove_below(self, pick: tuple[int, bytes]) -> None:
        """Remove whatever may be removed, as rm -r does."""
        top = self._old(pick)
        for path in sorted(self.kept, reverse=True):
            if path == top or path.startswith(top + b"/"):
                self._change("rmdir" if self.kept[path][0] == "dir" else "unlink", path)

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
            self._change("link", self._old_file(old), self._new(new))

    @rule(old=picks, new=picks, data=st.booleans())
    def link_and_overwrite(self, old: tuple[int, bytes], new: tuple[int, bytes], data: bool) -> None:
        """Make a name for a file, and change the file through that or through its old name."""
        old_path, new_path = self._old_file(old), self._new(new)
        self._change("link", old_path, new_path)
        self._change("overwrite", new_path if data else old_path, self._data())

    @rule(
        pick=picks,
        state=st.sampled_from((RuleState.READ_ONLY, RuleState.DENY, RuleState.HIDDEN, RuleState.ASK)),
        operation=st.sampled_from(("overwrite", "truncate", "chmod", "link")),
    )
    def change_a_file_one_name_of_which_is_guarded(
        self, pick: tuple[int, bytes], state: RuleState, operation: str
    ) -> None:
        """Guard one name of a file that has several, and try to change the file by each of the others."""
        count = Counter(self.first_names.values())
        linked = sorted(path for path, first in self.first_names.items() if count[first] > 1)
        if not linked:
            return
        guarded = linked[pick[0] % len(linked)]
        self._put_in_force([*self.drawn, Drawn(0, "path", guarded, b"", state, False)])
        for other in linked:
            if other != guarded and self.first_names.get(other) == self.first_names.get(guarded):
                argument = {"overwrite": self._data(), "truncate": 3, "chmod": 0o640, "link": self._new(pick)}
                self._change(operation, other, argument[operation])

    # ---- steps: looking

    @rule(pick=picks)
    def read(self, pick: tuple[int, bytes]) -> None:
        path = self._old(pick)
        data = self._attempt("read", path)
        if data is None or data is True:
            return
        path = self.real(path, follows=True)
        assert self.state(path).may_read, f"{path!r} could be read"
        for other, what in self.kept.items():
            is_same = self.first_names.get(other) == self.first_names.get(path)
            if data and what[0] == "file" and what[-1] == data and not is_same:
                assert self.state(other).may_read, f"reading {path!r} told what {other!r} holds"

    @rule(pick=picks)
    def look(self, pick: tuple[int, bytes]) -> None:
        path = self._old(pick)
        if self._attempt("stat", path) is not None:
            path = self.real(path)
            for end in range(1, path.count(b"/") + 2):
                above = b"/".join(path.split(b"/")[:end])
                assert not self.is_absent(above), f"{above!r} is hidden, and {path!r} could be looked at"

    @rule(pick=picks)
    def listdir(self, pick: tuple[int, bytes]) -> None:
        path = os.path.dirname(self._old(pick))
        found = self._attempt("listdir", path)
        if found is None or found is True:
            return
        path = self.real(path, follows=True) if path else path
        assert self.state(path).may_list or (self.state(path).is_hidden and not self.is_absent(path))
        expected = [
            below.rpartition(b"/")[2]
            for below in self.kept
            if below.rpartition(b"/")[0] == path and not self.is_absent(below)
        ]
        assert sorted(found) == sorted(expected)

    # ---- steps: what programs hold across changes

    @precondition(lambda self: len(self.held) < 5)
    @rule(pick=picks)
    def hold(self, pick: tuple[int, bytes]) -> None:
        held = self._attempt("hold", self._old(pick))
        if held is not None:
            self.held.append(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.held.remove(held)
        self.view.let_go(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), name=names)
    def look_at_held(self, data: st.DataObject, name: bytes) -> None:
        held = data.draw(st.sampled_from(self.held))
        path = self.view.path_of(held)
        if path is None:
            return
        if self.view.is_shown(held):
            first = self.first_names.get(path)
            places = [other for other, of_other in self.first_names.items() if of_other == first] or [path]
            assert not all(map(self.is_absent, places)), f"{path!r} is hidden, and its attributes were told"
        below = os.path.join(path, name)
        if self.view.shows_below(held, name):
            assert not self.is_absent(below), f"{below!r} is hidden, and was found"
        listed = self.view.names_in(held)
        assert not any(self.is_absent(os.path.join(path, one)) for one in listed)
        if listed:
            assert self.state(path).may_list or not self.is_absent(path)

    # ---- steps: rules and time

    @rule(drawn=rule_sets)
    def other_rules(self, drawn: list[Drawn]) -> None:
        self._put_in_force(drawn)

    @rule(drawn=drawn_rules)
    def one_more_rule(self, drawn: Drawn) -> None:
        kept = [rule for rule in self.drawn if rule[:4] != drawn[:4]]
        self._put_in_force([*kept, drawn])

    def _put_in_force(self, drawn: list[Drawn]) -> None:
        self.drawn = drawn
        sources: list[list[Rule]] = [[], [], [PathRule(self.base, RuleState.ALLOW, "test:2")]]
        for rank, kind, path, name, state, is_whole in drawn:
            full = os.path.join(self.base, path) if path else self.base
            match kind:
                case "path":
                    made: Rule = PathRule(full, state, "test:1", is_whole)
                case "above":
                    made = PathRule(os.path.dirname(self.base), state, "test:1", is_whole)
                case "name":
                    made = NameRule(name, state, "test:1", full, is_whole)
                case _:
                    made = SuffixRule(name, state, "test:1", full, is_whole)
            sources[rank].append(made)
        self.sources = tuple(RuleSet(tuple(source)) for source in sources)
        self._decided.clear()
        self.view.replace_rules(*self.sources)
        self.kept = self.shown()

    @rule()
    def snapshot(self) -> None:
        self.generations.append(self.view.snapshot())

    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        self.generations.append(self.view.travel(data.draw(st.sampled_from(self.generations))))
        self.kept = self.shown()

    @rule()
    def abort(self) -> None:
        self.view.abort()
        self.generations = [0]
        self.kept = self.shown()

    @invariant()
    def verdicts_are_those_of_the_naive_walk(self) -> None:
        for path, state in self.view.verdicts().items():
            assert state is self.state(path), f"{path!r} is kept as {state}, and is {self.state(path)}"
