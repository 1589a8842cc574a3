"""Where the paths of rules lead through symbolic links, found by rewriting them: slow, and plainly
what is meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from yolofs.rules import PathRule, Rule, RuleState, subject

_MAX_LINKS = 40
_STRICTEST_FIRST = (
    RuleState.HIDDEN,
    RuleState.DENY,
    RuleState.ASK,
    RuleState.READ_ONLY,
    RuleState.WRITE_ASK,
    RuleState.ALLOW,
)


class Way(NamedTuple):
    """Where an absolute path leads."""

    path: bytes
    """The path as it is written."""
    place: bytes
    """Where it ends; the path itself where links lead round in a circle."""
    links: tuple[bytes, ...] = ()
    """The links that it goes on by, in their order."""
    turns: tuple[bytes, ...] = ()
    """The directories that it leaves by ``..``."""

    @property
    def spots(self) -> tuple[bytes, ...]:
        """Where no other link may come, nor above it."""
        return (self.path, *self.links, *self.turns, self.place)

    @property
    def held_links(self) -> tuple[bytes, ...]:
        """Links that must stay, whatever the rule says; a link at the rule's own path is the rule's
        matter.
        """
        return tuple(link for link in self.links if link != self.path)


def way_of(path: bytes, target_of: Callable[[bytes], bytes | None]) -> Way:
    """Follow a path: replace the first link or ``..`` in it by where that leads, until there is
    none.
    """
    links: list[bytes] = []
    turns: list[bytes] = []
    rest = path
    while len(links) <= _MAX_LINKS:
        names = [name for name in rest.split(b"/") if name not in (b"", b".")]
        for end, name in enumerate(names):
            above, tail = b"/" + b"/".join(names[:end]), names[end + 1 :]
            here = os.path.join(above, name)
            if name == b"..":
                turns.append(above)
                rest = os.path.join(os.path.dirname(above), *tail)
                break
            target = target_of(here)
            if target is not None:
                links.append(here)
                rest = os.path.join(above, target, *tail)
                break
        else:
            return Way(path, b"/" + b"/".join(names), *map(_once, (links, turns)))
    return Way(path, path, *map(_once, (links[:-1], turns)))


def _once(paths: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(paths))


def path_of(rule: Rule) -> bytes:
    """Return the path that a rule is written with: its own, or that of a pattern's directory."""
    return rule.path if isinstance(rule, PathRule) else rule.scope


def with_places(rules: Sequence[Rule], project: bytes, target_of: Callable[[bytes], bytes | None]) -> tuple[Rule, ...]:
    """Return the rules of one source, and the same ones for where links lead them.

    What is written comes first, then the strictest.  A link in the project that leads out of it
    takes only deny and hidden along.
    """
    by_subject = {subject(rule): rule for rule in rules}
    for rule in sorted(rules, key=lambda rule: _STRICTEST_FIRST.index(rule.state)):
        way = way_of(path_of(rule), target_of)
        is_made_inside = any(_is_in(link, project) for link in way.links)
        if is_made_inside and not _is_in(way.place, project) and rule.state not in (RuleState.DENY, RuleState.HIDDEN):
            continue
        if isinstance(rule, PathRule):
            moved: Rule = msgspec.structs.replace(rule, path=way.place)
        else:
            moved = msgspec.structs.replace(rule, scope=way.place)
        by_subject.setdefault(subject(moved), moved)
    return tuple(by_subject.values())


def _is_in(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")
