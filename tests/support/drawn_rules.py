"""Random rules for the tree that the gate's machine works on."""

from __future__ import annotations

import os
from typing import NamedTuple

from hypothesis import strategies as st

from yolofs.rules import NameRule, PathRule, Rule, RuleState, SuffixRule

NAMES = (b"a", b"b", b"c.x", b"d")
names = st.sampled_from(NAMES)
LINKS = {
    b"a/a": b"../d/d/b",
    b"a/b/d": b"../gone/b",
    b"b/a/d": b"../../a/b",
    b"b/d": b"a",
    b"d/c.x": b"../a/c.x",
    b"d/d": b"../b/d",
    b"f": b"d/d/../b",
}
"""What base has of links: to directories and files, by other links and out of them again, and to
nothing.

They are relative, as a view that is not mounted on base has to keep to itself.
"""
PROJECT = b"b"
"""The directory whose links take only some rules out of it: there are links into it, out of it and
inside.
"""
link_targets = st.sampled_from((*NAMES, b"d/d", b"../a", b"../b/d", b"b/a/../b", b"gone"))
_plain_paths = b"a a/b a/c.x a/b/b a/b/c.x b b/b b/c.x b/a/b d d/a d/b d/b/c.x c.x c.x/b".split()
LED_PATHS = b"a/a a/b/d a/b/d/b b/a/d b/a/d/c.x b/d b/d/b b/d/c.x b/d/d/b d/c.x d/d d/d/b d/d/d d/d/d/b f".split()
"""Paths of rules that lead through links of base."""
paths = st.sampled_from(_plain_paths + LED_PATHS)
"""Paths of rules: of what is there at first, and of what may come."""
guarded_paths = st.sampled_from(
    [
        *b"a/b a/b/b a/b/c.x a/b/a/b b/c.x b/a/b b/d/b b/d/c.x b/e/b d/b d/e/c.x e/b e/b/c.x e/e/b c.x c.x/b".split(),
        *b"a/a b/a/d/b d/d/b d/d/d/c.x d/c.x f".split(),
    ]
)
"""Paths below directories, below and at links, and below what is not there."""
states = st.sampled_from(list(RuleState))


class Drawn(NamedTuple):
    """A rule as drawn, its paths relative to base."""

    rank: int
    """0 for the nearer of two sources."""
    kind: str
    """A rule for a "path", a "name" or a "suffix", one for "above": base's parent, or an "answer"
    about a path.
    """
    path: bytes
    """The path, or the directory below which a pattern holds."""
    name: bytes
    state: RuleState
    is_whole: bool = False

    def made(self, base: bytes) -> Rule:
        """Return the rule."""
        full = os.path.join(base, self.path) if self.path else base
        match self.kind:
            case "path" | "answer":
                return PathRule(full, self.state, "test:1", self.is_whole)
            case "above":
                return PathRule(os.path.dirname(base), self.state, "test:1", self.is_whole)
            case "name":
                return NameRule(self.name, self.state, "test:1", full, self.is_whole)
            case _:
                return SuffixRule(self.name, self.state, "test:1", full, self.is_whole)


def _drawn(kind: str, paths: st.SearchStrategy[bytes], name: st.SearchStrategy[bytes]) -> st.SearchStrategy[Drawn]:
    ranks, whole = st.sampled_from((0, 1)), st.sampled_from((False, False, True))
    return st.builds(Drawn, ranks, st.just(kind), paths, name, states, whole)


_nothing = st.just(b"")
_path_rules = _drawn("path", paths, _nothing)
_scopes = st.one_of(_nothing, paths)
drawn_rules = st.one_of(
    _path_rules,
    _path_rules,
    _path_rules,
    _drawn("name", _scopes, names),
    _drawn("suffix", _scopes, st.just(b".x")),
    _drawn("suffix", _scopes, st.just(b".x")),
    st.one_of(
        _drawn("path", _nothing, _nothing), _drawn("above", _nothing, _nothing), _drawn("answer", paths, _nothing)
    ),
)
rule_sets = st.lists(drawn_rules, max_size=4, unique_by=lambda drawn: drawn[:4])
