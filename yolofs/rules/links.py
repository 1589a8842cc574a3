"""Rules whose keys lead through symbolic links: in force as written, and where the links lead."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import NamedTuple

from yolofs.paths import display
from yolofs.rules.spelling import PathRule, Rule, RuleSet, Subject, subject
from yolofs.rules.states import RuleState

_CARRIED_OUT = (RuleState.DENY, RuleState.HIDDEN)


class Followed(NamedTuple):
    """Rules with those that links add, and what the user should know."""

    rules: RuleSet
    notes: tuple[str, ...]


def follow_links(rules: RuleSet, project_dir: bytes, resolve: Callable[[bytes], bytes]) -> Followed:
    """Add to each rule the same one for where links lead: a path's directory, and the path itself.

    ``resolve`` returns a path without links, as ``os.path.realpath``; ``project_dir`` has none.  What is written about
    a path itself comes before what a link adds; of two that links add the stricter one counts.

    A path in the project that leads out of it takes only deny and hidden along: whoever works in the project could
    have made such a link, and thereby rules of his own.
    """
    written = {subject(rule) for rule in rules.rules}
    added: dict[Subject, Rule] = {}
    notes = []
    for rule in rules.rules:
        path = rule.path if isinstance(rule, PathRule) else rule.scope
        for place in _places(path, resolve):
            if _is_in(path, project_dir) and not _is_in(place, project_dir) and rule.state not in _CARRIED_OUT:
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


def _places(path: bytes, resolve: Callable[[bytes], bytes]) -> list[bytes]:
    directory, name = os.path.split(path)
    places = dict.fromkeys((os.path.join(resolve(directory), name), resolve(path)))
    return [place for place in places if place != path]


def _moved(rule: Rule, place: bytes) -> Rule:
    if isinstance(rule, PathRule):
        return dataclasses.replace(rule, path=place)
    return dataclasses.replace(rule, scope=place)


def _strictness(rule: Rule | None) -> tuple[int, int]:
    return (rule.state.read_rank, rule.state.write_rank) if rule is not None else (-1, -1)


def _is_in(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")
