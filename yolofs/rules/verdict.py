"""A place in the rules, with the rule in force there: the verdict over a path.

:mod:`yolofs.rules.book` says which rule decides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TypeAlias

from yolofs.rules.rule_states import RuleState
from yolofs.rules.sources import PRESET_SOURCE
from yolofs.rules.spelling import NameRule, PathRule, Rule, RuleSubject, SuffixRule, subject

EVERY_RANK = sys.maxsize
COUNTING_EVERYWHERE = frozenset({b".yolofs"})
"""No ``…/**`` and no exempt directory keeps patterns for these names out.  Otherwise a program
could make a session anywhere, and after a commit the next command there would find it, with its
rules and plans.
"""

Ranked: TypeAlias = tuple[int, Rule]
"""A rule with the number of its source, 0 for the nearest."""


class NamePatterns:
    """The patterns of one directory, for names anywhere below it."""

    __slots__ = ("names", "suffixes")

    def __init__(self) -> None:
        self.names: dict[bytes, Ranked] = {}
        self.suffixes: dict[bytes, Ranked] = {}

    def add(self, ranked: Ranked) -> None:
        """Add a pattern, unless a nearer level has it already."""
        match ranked[1]:
            case NameRule(name=name):
                self.names.setdefault(name, ranked)
            case SuffixRule(suffix=suffix):
                self.suffixes.setdefault(suffix, ranked)
            case PathRule():
                raise AssertionError("not a pattern")

    def find(self, name: bytes, below_rank: int) -> Ranked | None:
        """Return the pattern that ``name`` fits, among those of sources before ``below_rank``."""
        found = self.names.get(name)
        if found is not None and (found[0] < below_rank or name in COUNTING_EVERYWHERE):
            return found
        if self.suffixes:
            dot = name.find(b".")
            while dot >= 0:
                found = self.suffixes.get(name[dot:])
                if found is not None and found[0] < below_rank:
                    return found
                dot = name.find(b".", dot + 1)
        return None

    def __iter__(self) -> Iterator[Ranked]:
        yield from self.names.values()
        yield from self.suffixes.values()


class RuleNode:
    """A path on which, or below which, there are rules."""

    __slots__ = (
        "children",
        "leads_by_link",
        "leads_by_link_below",
        "leads_through",
        "leads_through_below",
        "leads_to_open",
        "patterns",
        "rank",
        "readmits_below",
        "rule",
        "states_below",
    )

    def __init__(self) -> None:
        self.rule: PathRule | None = None
        self.rank = 0
        """The number of the rule's source."""
        self.patterns: NamePatterns | None = None
        self.children: dict[bytes, RuleNode] = {}
        self.states_below: dict[RuleState, Rule] = {}
        """The states that rules strictly below have, each with one such rule."""
        self.readmits_below: PathRule | None = None
        """A rule for a path strictly below that is not written ``…/**``: in there all patterns
        count.
        """
        self.leads_to_open = False
        """Whether a rule for a path strictly below is not hidden: then the way to it has to be
        passable.
        """
        self.leads_through: Rule | None = None
        """A rule whose path leads here or through here
        (:attr:`yolofs.rules.spelling.RuleSet.waypoints`).
        """
        self.leads_through_below: Rule | None = None
        """The same of a path strictly below."""
        self.leads_by_link: Rule | None = None
        """A rule whose path leads on by a link at just this path."""
        self.leads_by_link_below: Rule | None = None
        """The same of a path strictly below."""

    @property
    def is_hidden(self) -> bool:
        """Whether a rule for just this path hides it, and no rule below leads through it."""
        return self.rule is not None and self.rule.state is RuleState.HIDDEN and not self.leads_to_open


class Verdict:
    """What is in force at one path.  Compare by identity; holds for one version of the rules."""

    __slots__ = (
        "asks_to_read",
        "asks_to_write",
        "hides_inside",
        "is_way",
        "limit",
        "may_list",
        "may_read",
        "may_stat",
        "may_write",
        "named",
        "node",
        "outside",
        "patterns",
        "rest",
        "rule",
        "seems_absent",
        "state",
    )

    def __init__(
        self,
        rule: Rule | None,
        node: RuleNode | None,
        patterns: tuple[NamePatterns, ...] = (),
        outside: int = 0,
        limit: int = EVERY_RANK,
    ) -> None:
        self.rule = rule
        """The rule that decides, None where there is none."""
        state = self.state = rule.state if rule is not None else RuleState.ASK
        self.may_stat = state.may_stat
        self.may_list = state.may_list
        self.may_read = state.may_read
        self.may_write = state.may_write
        self.asks_to_read = state.asks_to_read
        self.asks_to_write = state.asks_to_write
        self.node = node
        self.patterns = patterns
        """The patterns that may decide over names in here, the deepest directory's last."""
        self.outside = outside
        """How many of :attr:`patterns` are of directories above one for whose whole a rule
        decides.
        """
        self.limit = limit
        """Of these only patterns count whose source has a lower number."""
        self.is_way = self.state is RuleState.HIDDEN and node is not None and node.leads_to_open
        """Whether this is a hidden directory that one has to pass to reach what a rule below
        opens.
        """
        self.seems_absent = not (self.may_stat or self.is_way)
        """Whether nothing may be known of the path, not even that it is a way."""
        hides_one = node is not None and any(child.is_hidden for child in node.children.values())
        self.hides_inside = self.is_way or hides_one
        """Whether a rule for a path hides a name in here, be there anything of that name or not."""
        self.rest = self if node is None else Verdict(rule, None, patterns, outside, limit)
        """The verdict over names in here that no rule is about."""
        self.named: dict[bytes, Verdict] = {}
        """The verdicts found so far over names in here at which, or below which, there is a rule
        for a path.
        """

    def stricter_below(self) -> Rule | None:
        """Return a rule strictly below that lets less through than this verdict, None if there is
        none.

        A rule of any state whose path leads on by a link strictly below counts, too: that link
        would go along.

        If patterns from outside do not count, that may be any rule below which they count again.
        Patterns that hold here and below are not looked at: they go along with the names (but see
        :meth:`pattern_lost`).
        """
        if self.node is None:
            return None
        if self.outside and self.node.readmits_below is not None:
            return self.node.readmits_below
        stricter = (rule for state, rule in self.node.states_below.items() if state.is_stricter_than(self.state))
        return next(stricter, self.node.leads_by_link_below)

    @property
    def leads_to_built_in(self) -> bool:
        """Whether a built-in rule asks before changes here, and another one is about a path
        strictly below.

        Rules of a tree and of the user's own open nothing by this.
        """
        if not self.asks_to_write or self.node is None or self.rule is None or not _is_built_in(self.rule):
            return False
        return any(map(_is_built_in, self.node.states_below.values()))

    def astray_by_link(self) -> Rule | None:
        """Return a rule whose path or directory would lead elsewhere if this were a symbolic link,
        None if none would.

        Besides those of :meth:`stricter_below`, that is a rule of any state whose path leads on
        through the link here, and a stricter pattern of this directory alone.
        """
        rule = self.stricter_below()
        if rule is not None or self.node is None:
            return rule
        if self.node.leads_by_link is not None or self.node.patterns is None:
            return self.node.leads_by_link
        return next((one for _, one in self.node.patterns if one.state.is_stricter_than(self.state)), None)

    def led_by_new_link(self) -> Rule | None:
        """Return a rule of any state that a new link here would take elsewhere, None if there is
        none.
        """
        return (self.node.leads_through or self.node.leads_through_below) if self.node is not None else None

    def led_by_link_inside(self) -> Rule | None:
        """Return a rule of any state that a link in a directory that is put here could take
        elsewhere, None if none.
        """
        return self.node.leads_through_below if self.node is not None else None

    def pattern_lost(self, new: Verdict) -> Rule | None:
        """Return a pattern that guards names in here and would not if this directory became the one
        of ``new``.

        None if there is none: then what lies below is guarded at the new place at least as well by
        patterns.
        """
        ruled_below = new.node is not None and new.node.states_below
        if self.has_patterns_of(new) and not ruled_below:
            return None
        here, there = self.patterns_in_force(), new.patterns_in_force()
        added = [rule.state for key, rule in there.items() if key not in here]
        added += new.node.states_below if new.node is not None else ()
        instead = [new.state, *(rule.state for rule in there.values())]
        for key, rule in here.items():
            others = added if key in there else added + instead
            if any(rule.state.is_stricter_than(state) for state in others):
                return rule
        return None

    def pattern_gained(self, new: Verdict) -> Rule | None:
        """Return a pattern that would guard names in here, not guarded by it so far, at the place
        of ``new``.

        None if there is none: then nothing can be brought to a place where it could not have been
        made.
        """
        if self.has_patterns_of(new):
            return None
        here, there = self.patterns_in_force(), new.patterns_in_force()
        so_far = [self.state, *(rule.state for rule in here.values())]
        gained = (rule for key, rule in there.items() if key not in here)
        return next((rule for rule in gained if any(rule.state.is_stricter_than(state) for state in so_far)), None)

    def has_patterns_of(self, other: Verdict) -> bool:
        """Tell whether the same patterns may decide over names in here and there."""
        return self.patterns == other.patterns and (self.outside, self.limit) == (other.outside, other.limit)

    def find_pattern(self, name: bytes) -> Ranked | None:
        """Return the pattern that decides over ``name`` in here, unless there is a rule for just
        that path.
        """
        patterns = self.patterns
        for index in range(len(patterns) - 1, -1, -1):
            found = patterns[index].find(name, self.limit if index < self.outside else EVERY_RANK)
            if found is not None:
                return found
        return None

    def patterns_in_force(self) -> dict[RuleSubject, Rule]:
        """Return the patterns that count below the path, by what they are about."""
        return {
            subject(rule): rule
            for index, patterns in enumerate(self.patterns)
            for rank, rule in patterns
            if index >= self.outside or rank < self.limit or counts_everywhere(rule)
        }


def counts_everywhere(rule: Rule) -> bool:
    """Tell whether no ``PATH/**`` and no exempt directory keeps a pattern out."""
    return isinstance(rule, NameRule) and rule.name in COUNTING_EVERYWHERE


def _is_built_in(rule: Rule) -> bool:
    return rule.source.startswith(PRESET_SOURCE)
