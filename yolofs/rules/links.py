"""Rules whose keys lead through symbolic links: in force as written, and where the links lead."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from yolofs.paths import display
from yolofs.rules.spelling import PathRule, Rule, RuleSet, Subject, subject
from yolofs.rules.states import RuleState

_MAX_LINKS = 40
"""With more of them the kernel opens nothing either (ELOOP)."""
_CARRIED_OUT = (RuleState.DENY, RuleState.HIDDEN)


class Followed(NamedTuple):
    """Rules with those that links add, and what the user should know."""

    rules: RuleSet
    notes: tuple[str, ...]


def follow_links(rules: RuleSet, project_dir: bytes, target_of: Callable[[bytes], bytes | None]) -> Followed:
    """Add to each rule the same one for where links lead, and for each link on the way: none may be put to another use.

    ``target_of`` returns what a symbolic link holds, None for what is none; ``project_dir`` has none in it.  What is
    written about a path itself comes before what a link adds; of two that links add the stricter one counts.

    A path in the project that leads out of it takes only deny and hidden along: whoever works in the project could
    have made such a link, and thereby rules of his own.
    """
    written = {subject(rule) for rule in rules.rules}
    added: dict[Subject, Rule] = {}
    notes = []
    for rule in rules.rules:
        path = rule.path if isinstance(rule, PathRule) else rule.scope
        places = _spellings(path, target_of)
        for place in places:
            if _is_in(path, project_dir) and not _is_in(place, project_dir) and rule.state not in _CARRIED_OUT:
                if place == places[-1]:
                    notes.append(
                        f"{rule.source}: {display(path)} leads out of the project by a link, to {display(place)}: "
                        f"{rule.state.value} is not in force there"
                    )
                continue
            moved = _moved(rule, place)
            key = subject(moved)
            if key not in written and _strictness(moved) > _strictness(added.get(key)):
                added[key] = moved
    return Followed(RuleSet((*rules.rules, *added.values()), rules.exempt), tuple(dict.fromkeys(notes)))


def _spellings(path: bytes, target_of: Callable[[bytes], bytes | None]) -> list[bytes]:
    """Return how else a path is spelled: with the first link followed, the first two, and so on; the last has none.

    Where ``..`` follows after a link that is still to be followed there is no such spelling.
    """
    found: list[bytes] = []
    at, todo, count = b"", path.split(b"/")[::-1], 0
    while todo:
        name = todo.pop()
        if name == b"..":
            at = at.rpartition(b"/")[0]
        if name in (b"", b".", b".."):
            continue
        target = target_of(at + b"/" + name)
        if target is None:
            at += b"/" + name
            continue
        count += 1
        if count > _MAX_LINKS:
            return []
        below = [one for one in reversed(todo) if one not in (b"", b".")]
        if b".." not in below:
            found.append(b"/".join([at, name, *below]))
        todo += target.split(b"/")[::-1]
        if target.startswith(b"/"):
            at = b""
    return [one for one in dict.fromkeys([*found, at or b"/"]) if one != path]


def _moved(rule: Rule, place: bytes) -> Rule:
    if isinstance(rule, PathRule):
        return dataclasses.replace(rule, path=place)
    return dataclasses.replace(rule, scope=place)


def _strictness(rule: Rule | None) -> tuple[int, int]:
    return (rule.state.read_rank, rule.state.write_rank) if rule is not None else (-1, -1)


def _is_in(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")
