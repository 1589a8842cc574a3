"""Rules whose paths lead through symbolic links: they hold as written and at the links' targets,
and the way is guarded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from yolofs.paths import display, is_in
from yolofs.rules.rule_states import RuleState
from yolofs.rules.spelling import PathRule, Rule, RuleSet, RuleSubject, Waypoint, fits, subject
from yolofs.system.symlinks import FollowedPath, Follower, TargetOf, follow

_CARRIED_OUT = (RuleState.DENY, RuleState.HIDDEN)


class Followed(NamedTuple):
    """Rules with those that links add, and what the user should know."""

    rules: RuleSet
    notes: tuple[str, ...]


def follow_links(rules: RuleSet, project_dir: bytes, target_of: TargetOf) -> Followed:
    """Add to each rule the same one for where links lead, and what keeps it leading there.

    ``target_of`` returns what a symbolic link holds, None for what is none; ``project_dir`` has
    none in it.  A rule written for a path comes before those that links add; of two added ones the
    stricter counts.

    Through a link in the project that leads out of it, only deny and hidden hold at the place that
    it leads to.  Otherwise any program that works in the project could make rules by making links.
    """
    written = {subject(rule) for rule in rules.rules}
    added: dict[RuleSubject, Rule] = {}
    notes = []
    follower = Follower(target_of)
    ways = [follower.follow(_path_of(rule)) for rule in rules.rules]
    for rule, way in zip(rules.rules, ways, strict=True):
        path = _path_of(rule)
        if way.place == path:
            continue
        own_link = _link_out(rule, way, project_dir)
        if own_link is not None:
            notes.append(
                f"{rule.source}: {display(path)} leads out of the project by the link {display(own_link)}, "
                f"to {display(way.place)}: {rule.state.value} is not in force there"
            )
            continue
        moved = _moved(rule, way.place)
        key = subject(moved)
        if key not in written and _strictness(moved) > _strictness(added.get(key)):
            added[key] = moved
    all_rules = RuleSet((*rules.rules, *added.values()), rules.exempt, _waypoints(rules.rules, ways))
    return Followed(all_rules, tuple(dict.fromkeys(notes)))


def leads_to(rule: Rule, project_dir: bytes, target_of: TargetOf) -> bytes | None:
    """Return the other place at which a rule is in force, as links lead there; None if there is
    none.

    Arguments as for :func:`follow_links`.
    """
    path = _path_of(rule)
    way = follow(path, target_of)
    return None if way.place == path or _link_out(rule, way, project_dir) is not None else way.place


def rules_near(rules: Iterable[Rule], paths: Iterable[bytes], target_of: TargetOf) -> tuple[Rule, ...]:
    """Return the rules that may be about any of some absolute paths, at their own places and where
    links lead; of two at one place the stricter comes first.

    A pattern may be about a path if it fits any name of that.  ``target_of`` as for
    :func:`follow_links`.
    """
    around = {b"/"}
    names = set()
    for whole_path in paths:
        path = whole_path
        while path not in around:
            around.add(path)
            above, _, name = path.rpartition(b"/")
            names.add(name)
            path = above or b"/"
    written, added = [], []
    follower = Follower(target_of)
    for rule in rules:
        if not isinstance(rule, PathRule) and not any(fits(rule, name) for name in names):
            continue
        path = _path_of(rule)
        place = follower.follow(path).place
        if path in around:
            written.append(rule)
        if place != path and place in around:
            added.append(_moved(rule, place))
    return (*written, *sorted(added, key=_strictness, reverse=True))


def _link_out(rule: Rule, way: FollowedPath, project_dir: bytes) -> bytes | None:
    """Return the link in the project by which a rule leads out of it, if its state may not go
    along.
    """
    own_links = [link for link in way.links if is_in(link, project_dir)]
    if own_links and not is_in(way.place, project_dir) and rule.state not in _CARRIED_OUT:
        return own_links[-1]
    return None


def waypoints(rules: RuleSet, target_of: TargetOf) -> tuple[Waypoint, ...]:
    """Return the places that keep the rules' paths leading to their targets, each with its first
    rule.

    Those are the links on the way, the rule's own path, the place where it ends, and the
    directories that it leaves by ``..``.  What a link at the rule's own path may have done to it
    the rule itself says.  That path counts also where a link is above it: the view may have a
    directory there by now.
    """
    follower = Follower(target_of)
    return _waypoints(rules.rules, [follower.follow(_path_of(rule)) for rule in rules.rules])


def _waypoints(rules: Iterable[Rule], ways: Iterable[FollowedPath]) -> tuple[Waypoint, ...]:
    found: dict[tuple[bytes, bool], Waypoint] = {}
    for rule, way in zip(rules, ways, strict=True):
        path = _path_of(rule)
        for link in way.links:
            found.setdefault((link, link != path), Waypoint(link, rule, link != path))
        for place in (way.place, *way.turns, path):
            if (place, False) not in found:  # as the path itself mostly is, of hundreds of rules
                found[place, False] = Waypoint(place, rule, is_link=False)
    return tuple(found.values())


def _path_of(rule: Rule) -> bytes:
    return rule.path if isinstance(rule, PathRule) else rule.scope


def _moved(rule: Rule, place: bytes) -> Rule:
    if isinstance(rule, PathRule):
        return msgspec.structs.replace(rule, path=place)
    return msgspec.structs.replace(rule, scope=place)


def _strictness(rule: Rule | None) -> tuple[int, int]:
    return (rule.state.read_rank, rule.state.write_rank) if rule is not None else (-1, -1)
