"""Which rule decides, found by looking at all of them: slow, and plainly what the reference
says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from yolofs.rules import NameRule, PathRule, Rule, RuleSet, SuffixRule, subject


class Found(NamedTuple):
    """What decides over a path, and which patterns count below it."""

    rule: Rule | None
    outside: bytes | None = None
    """Patterns of directories strictly above this path count only ..."""
    limit: int = 1000
    """... if they are from a source before this one."""


def parent(path: bytes) -> bytes:
    """Return the directory of an absolute path."""
    return path.rpartition(b"/")[0] or b"/"


def holds(directory: bytes, path: bytes) -> bool:
    """Tell whether ``path`` lies strictly below ``directory``."""
    return path != directory and (directory == b"/" or path.startswith(directory + b"/"))


def walk(sources: Sequence[RuleSet], path: bytes) -> Found:
    """Return what decides over a path, by looking at every rule for every ancestor."""
    ranked = [(rank, rule) for rank, source in enumerate(sources) for rule in source.rules]
    above = walk(sources, parent(path)) if path != b"/" else Found(None)
    own = next(((rank, rule) for rank, rule in ranked if isinstance(rule, PathRule) and rule.path == path), None)
    deciding = own or _nearest_pattern(ranked, above, path)
    found = above
    if deciding is not None:
        rank, rule = deciding
        found = Found(rule, path, rank) if rule.is_whole else Found(rule)
        if isinstance(rule, NameRule) and rule.name == b".yolofs" and not rule.is_whole:
            found = Found(rule, above.outside, above.limit)
    name = path.rpartition(b"/")[2]
    exempting = [rank for rank, source in enumerate(sources) if name in source.exempt]
    if exempting and any(not isinstance(rule, PathRule) and holds(rule.scope, path) for _, rule in ranked):
        found = Found(found.rule, path, min(exempting[0], found.limit))
    return found


def _nearest_pattern(ranked: Sequence[tuple[int, Rule]], above: Found, path: bytes) -> tuple[int, Rule] | None:
    """Return the nearest of the patterns that the last name of a path fits."""
    name = path.rpartition(b"/")[2]
    fitting = []
    for rank, rule in ranked:
        if isinstance(rule, PathRule) or not holds(rule.scope, path):
            continue
        if isinstance(rule, NameRule):
            fits = rule.name == name
        else:
            fits = name.endswith(rule.suffix)
        is_outside = above.outside is not None and holds(rule.scope, above.outside)
        if fits and not (is_outside and rank >= above.limit and name != b".yolofs"):
            fitting.append((rank, rule))
    return max(fitting, key=_nearness, default=None)


def _nearness(one: tuple[int, Rule]) -> tuple[int, int, int]:
    rank, rule = one
    assert not isinstance(rule, PathRule)
    length = len(rule.suffix) if isinstance(rule, SuffixRule) else 1000
    return (0 if rule.scope == b"/" else rule.scope.count(b"/"), length, -rank)


def in_force(sources: Sequence[RuleSet]) -> list[Rule]:
    """Return the rules that no nearer level overrides."""
    first: dict[object, Rule] = {}
    for source in sources:
        for rule in source.rules:
            first.setdefault(subject(rule), rule)
    return list(first.values())
