"""Random operations under random rules: a hypothesis state machine that looks for anything that
rules do not allow.

It drives the handlers (:mod:`tests.property.test_gate_property`) and a mount
(:mod:`tests.mount.test_gate_model`); what they are compared with is a
:class:`tests.support.gate_world.World`.  Its steps of its own are aimed: they put a rule in force
and try whatever could get around it, as random ones seldom meet.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.support.drawn_rules import LED_PATHS, Drawn, guarded_paths, paths, states
from tests.support.gate_changing import FILE_CHANGES, ChangingMachine, flags
from tests.support.gate_looking import HELD, picks
from tests.support.gate_world import above, is_at_or_below
from yolofs.rules import RuleState

guards = st.sampled_from([state for state in RuleState if not state.may_write])
_WAYS = 3
"""How many rules are tried one after the other, as what is drawn is much the same in many
examples.
"""


class GateMachine(ChangingMachine):
    """The whole machine."""

    # ---- around a rule

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

    @rule(number=st.integers(0, 999), is_changed=st.sampled_from((False, False, False, True)), yes=st.booleans())
    def go_around_a_way(self, number: int, is_changed: bool, yes: bool) -> None:
        """Write rules with paths through links, and try whatever could have one of them lead
        elsewhere.

        Mostly in base as it is; in a view that has changed there are links that came before the
        rule.
        """
        chance = random.Random(f"{number} {self.written} {self.drawn}")
        for _ in range(_WAYS):
            if not is_changed:
                self.abort()
            path, state, kind = (
                chance.choice(LED_PATHS),
                chance.choice(list(RuleState)),
                chance.choice(("path", "name")),
            )
            note(f"{state} for the {kind} {path!r}")
            self._put_in_force([*self.drawn[: chance.randrange(3)], Drawn(0, kind, path, b"b", state)])
            way = self.world.way_in_base(self.world.full(path))
            spot = chance.choice(list(map(self.world.relative, way.spots)))
            with self._answering(yes):
                for top in (*above(spot), spot):
                    self._try_to_lead_astray(top, spot[len(top) :], chance.choice((True, False)))

    def _try_to_lead_astray(self, top: bytes, below: bytes, is_removed_first: bool) -> None:
        """Try to put a link at a path, or into a directory that comes there, and to take away what
        is there.
        """
        self._make(("symlink", b"d/a", b"way"))
        for operation, args in (("link", ()), ("rename", (2,)), ("rename", (0,))):
            self._change(operation, b"way", top, *args)
        link = b"bundle" + below
        self._make(*(("mkdir", directory) for directory in above(link)), ("symlink", b"d/a", link))
        for how in (2, 0):
            self._change("rename", b"bundle", top, how)
        if is_removed_first:
            self._remove(top)
        self._change("rename", top, b"aside", 0)
        self._remove(top)
        self._change("symlink", b"d/a", top)
        self._change("mkdir", top)
        for operation in ("overwrite", "chmod"):
            self._change_file(operation, top)

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
        for operation in FILE_CHANGES:
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
        """Try to bring what a pattern guards to where a rule for just its path lets more
        through.
        """
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
        """Guard one name of a file that has several, and try to get at the file by each of the
        others.
        """
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
        while is_known and len(self.held) + len(of_file) > HELD:
            self.let_go(0)
        for name in (guarded, *others) if is_known else ():
            self._hold("hold", name)
        self._put_in_force([*self.drawn, Drawn(0, "path", guarded, b"", state)])
        for other in others:
            for operation in FILE_CHANGES:
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
        while len(self.held) > HELD - 2:
            self.let_go(0)
        for path in self.world.names_in(source)[:2]:
            self._hold("hold", path)
        rules = [Drawn(0, "path", target, b"", state), Drawn(1, "name", new[1], b"b", below)]
        self._put_in_force([*rules, Drawn(0, "path", target + b"/b", b"", below)] if how else rules)
        with self._answering(True):
            self._change("rename", source, target, how)
        self.verdicts_are_those_of_the_naive_walk()
        self.look_at_what_is_held()


def _any(paths: Sequence[bytes], pick: tuple[int, bytes]) -> bytes:
    return paths[len(pick[1]) % len(paths)]
