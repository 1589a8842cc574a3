"""Finds rules of a tree that can let nothing more through, each by itself: no two rule books are
compared.

The *ground* is what holds without the rules in question.  A rule is *sure* if no place where it
decides is stricter on the ground, whatever other sure rules stand beside it.  So any number of them
holds together, and each costs about as much as looking one path up.  That rests on four facts:

1. If a rule for a path decides over something below it, no other rule for a path lies between, not
even on the ground.  If the ground has a pattern that fits, the book with the tree's rules has one
as well.  So on the ground what lies there is decided by what decides at the rule's own path: one
verdict tells.
2. The second half of that holds as no sure rule is written ``…/**``, except for what hides and
   cannot be entered.  Rules do let patterns in again that were kept out.  On a *calm* ground these
   are never less strict than what decides where they were kept out.
3. What seems absent is not entered: below it anything may decide.  What is hidden and can be
   entered is a *way* to something open.  No sure rule makes a new way.
4. A pattern that denies would show names in a way, so for ways it brings patterns along that hide.

A rule about which this tells nothing is not sure; it need not open anything.

Pure: nothing here looks at a disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from yolofs.paths import is_in
from yolofs.rules.budget import Budget, BudgetSpentError
from yolofs.rules.index import RuleIndex
from yolofs.rules.rule_states import RuleState
from yolofs.rules.spelling import NameRule, PathRule, Rule, SuffixRule, endings, fits
from yolofs.rules.verdict import COUNTING_EVERYWHERE, RuleNode, Verdict

_LONGEST_NAME = 1024
"""In bytes: FUSE knows no longer names (``FUSE_NAME_MAX``)."""
_EVERY_RANK = sys.maxsize


class SureRules(NamedTuple):
    """The rules of a tree that hold without a comparison, by their number."""

    bundles: dict[int, tuple[Rule, ...]]
    """The rules to use for each of them: itself, a lesser one, or several with the same meaning
    together.
    """
    as_written: frozenset[int]
    """Those that hold as they are written."""


def find_sure(
    rules: Sequence[Rule],
    agreed: frozenset[int],
    before: RuleIndex,
    project: bytes,
    follow: Callable[[tuple[Rule, ...]], tuple[Rule, ...]],
    lesser: Callable[[Rule], Rule | None],
    budget: Budget,
) -> SureRules:
    """Return which of a tree's ``rules`` are sure, those ``agreed`` to left out.

    When ``budget`` ends, these are those that are known by then; any part of them holds without the
    others.  ``before``: the index of all other sources, and of what is agreed to.  ``follow`` adds
    to rules those that links add; ``lesser`` returns what a rule comes to that says no more than it
    has to.
    """
    bundles: dict[int, tuple[Rule, ...]] = {}
    as_written: set[int] = set()
    questions = [number for number in range(len(rules)) if number not in agreed]
    try:
        ground = OtherRules(before, project, budget)
        opened = _Names()
        for number in questions:
            for rule in follow((rules[number],)):
                budget.take()
                if isinstance(rule, PathRule) and rule.state is not RuleState.HIDDEN:
                    budget.take(rule.path.count(b"/"))
                    opened.add_above(rule.path)
        for number in questions:
            for one in (rules[number], lesser(rules[number])):
                bundle = ground.bundle(one) if one is not None else ()
                if one is None or not ground.are_sure(bundle, follow(bundle), opened):
                    continue
                bundles[number] = bundle
                if one is rules[number]:
                    as_written.add(number)
                break
    except BudgetSpentError:
        pass
    return SureRules(bundles, frozenset(as_written))


class OtherRules:
    """What holds without the rules in question, looked through once."""

    def __init__(self, index: RuleIndex, project: bytes, budget: Budget) -> None:
        """``index``: the rules of all others, and those of the tree that the user has agreed to.

        Raises:
            BudgetSpentError: there are not enough steps left to look at it.
        """
        self._index = index
        self._project = project
        self._budget = budget
        self._ways: list[bytes] = []
        """Hidden directories that lead to something open; each comes after those above it."""
        self._leading = _Names()
        """The names of all directories that lead to something open."""
        self._patterns: list[tuple[int, NameRule | SuffixRule]] = []
        exempting = [rank for rank, source in enumerate(index.sources) if source.exempt]
        self._has_one_exempting = len(exempting) <= 1
        self._is_calm = self._look(min(exempting, default=_EVERY_RANK)) and self._has_one_exempting
        self._hiding = _Fitting(rule for _, rule in self._patterns if rule.state is RuleState.HIDDEN)
        self._topmost: dict[bytes, list[bytes]] = {}
        self._states: dict[bytes, frozenset[RuleState]] = {}

    # ---- the ground

    def _look(self, lowest: int) -> bool:
        """Note the patterns and ways of these rules.  Return whether they are calm: no way leads to
        something outside of it, and where a pattern is kept out, what decides there is stricter.

        ``lowest``: the number of the nearest source that keeps patterns out by directories' names.
        """
        is_free = True
        shut = _Names()
        for path, node, verdict in self._nodes(b"/"):
            if node.rule is not None and node.rule.is_whole:
                lowest = min(lowest, node.rank)
            for rank, rule in node.patterns or ():
                if isinstance(rule, PathRule):
                    raise AssertionError("not a pattern")
                self._patterns.append((rank, rule))
                lowest = min(lowest, rank) if rule.is_whole else lowest
            if node.leads_to_open:
                self._leading.add(path.rpartition(b"/")[2])
                if verdict.state is RuleState.DENY:
                    shut.add(path.rpartition(b"/")[2])
            if verdict.is_way:
                self._ways.append(path)
                is_free = is_free and not verdict.outside
        return is_free and self._are_strict(lowest, shut)

    def _nodes(self, path: bytes) -> Iterator[tuple[bytes, RuleNode, Verdict]]:
        """Yield the places at and below a path that rules name or lead through, each after those
        above it.
        """
        verdict = self._index.at(path)
        steps = [(path, verdict.node, verdict)]
        while steps:
            path, node, verdict = steps.pop()
            self._budget.take()
            if node is None:
                continue
            yield path, node, verdict
            above = path.rstrip(b"/") + b"/"
            steps += [(above + name, child, self._index.below(verdict, name)) for name, child in node.children.items()]

    def _are_strict(self, lowest: int, shut: _Names) -> bool:
        """Tell whether no pattern that may be kept out anywhere is less strict than what decides
        there instead.

        ``shut``: the names of what is denied and leads to something open: hidden, it would become a
        way.
        """
        kept_out = [
            (rank, rule)
            for rank, rule in self._patterns
            if rank >= lowest and not (isinstance(rule, NameRule) and rule.name in COUNTING_EVERYWHERE)
        ]
        if any(rule.is_whole or not self._is_strict(rule) for _, rule in kept_out):
            return False
        if any(rule.state is RuleState.HIDDEN and shut.has_one_for(rule) for _, rule in kept_out):
            return False
        for rank in {rank for rank, rule in kept_out if rule.state is RuleState.DENY}:
            nearer = _Fitting(rule for at, rule in self._patterns if at < rank and rule.state is RuleState.HIDDEN)
            denying = (rule for at, rule in kept_out if at == rank and rule.state is RuleState.DENY)
            if any(nearer.may_share(rule) for rule in denying):
                return False
        return True

    def _is_strict(self, rule: NameRule | SuffixRule) -> bool:
        """Tell whether a pattern is nowhere less strict than what rules for paths say there."""
        if rule.state in (RuleState.DENY, RuleState.HIDDEN):
            return True
        states = {self._index.at(rule.scope).state, *(verdict.state for _, _, verdict in self._nodes(rule.scope))}
        return not any(state.is_stricter_than(rule.state) for state in states)

    def _ways_in(self, directory: bytes) -> list[bytes]:
        """Return the ways at and below a directory, but those that lie in other ones."""
        found = self._topmost.get(directory)
        if found is None:
            self._budget.take(1 + len(self._ways) // 8)
            found = self._topmost[directory] = []
            for way in self._ways:
                if is_in(way, directory) and not any(is_in(way, one) for one in found):
                    found.append(way)
        return found

    def _states_in(self, directory: bytes) -> frozenset[RuleState]:
        """Return all states that anything in a directory may have."""
        found = self._states.get(directory)
        if found is None:
            self._budget.take(directory.count(b"/"))
            states = {self._index.at(directory).state, *(rule.state for _, rule in self._patterns)}
            states.update(verdict.state for _, _, verdict in self._nodes(directory))
            found = self._states[directory] = frozenset(states)
        return found

    # ---- rules on it

    def bundle(self, rule: Rule) -> tuple[Rule, ...]:
        """Return a rule with those that have to stand beside it: a pattern that denies shows
        nothing in ways.
        """
        if isinstance(rule, PathRule) or rule.state is not RuleState.DENY:
            return (rule,)
        bundle = [_confined(rule, way, RuleState.HIDDEN) for way in self._ways_in(rule.scope)]
        if self._project != rule.scope and any(is_in(self._project, one.scope) for one in bundle):
            here = _confined(rule, self._project, RuleState.DENY)
            bundle += [here, *(_confined(rule, way, RuleState.HIDDEN) for way in self._ways_in(self._project))]
        by_scope: dict[bytes, NameRule | SuffixRule] = {}
        for one in (rule, *bundle):  # of one directory: what hides comes first
            if one.scope not in by_scope or one.state is RuleState.HIDDEN:
                by_scope[one.scope] = one
        self._budget.take(len(by_scope))
        return tuple(by_scope.values())

    def are_sure(self, bundle: Sequence[Rule], followed: Iterable[Rule], opened: _Names) -> bool:
        """Tell whether a bundle lets nothing through, with the rules that links add; ``followed``
        are all of these.
        """
        own = set(bundle)
        return all(
            self.is_sure(one, opened)
            and (
                one in own or isinstance(one, PathRule) or one.state is RuleState.HIDDEN or not self._ways_in(one.scope)
            )
            for one in followed
        )

    def is_sure(self, rule: Rule, opened: _Names) -> bool:
        """Tell whether a rule is sure, as the module's docstring says.

        ``opened``: the directories above all that rules in question open.

        Raises:
            BudgetSpentError: there are not enough steps left to tell.
        """
        if isinstance(rule, PathRule):
            return self._is_sure_path(rule, opened)
        name = _name_of(rule)
        self._budget.take(1 + name.count(b".") // 8)
        if len(name) > _LONGEST_NAME or not self._has_one_exempting:
            return False
        if rule.state is RuleState.HIDDEN:  # what it is about cannot be entered: nothing below matters
            return not (opened.has_one_for(rule) or self._leading.has_one_for(rule))
        if rule.is_whole or not self._is_calm or _is_about(rule, COUNTING_EVERYWHERE):
            return False
        if rule.state is not RuleState.DENY:
            return not any(state.is_stricter_than(rule.state) for state in self._states_in(rule.scope))
        return not self._hiding.may_share(rule)

    def _is_sure_path(self, rule: PathRule, opened: _Names) -> bool:
        names = [name for name in rule.path.split(b"/") if name]
        self._budget.take(1 + len(names))
        is_hidden = rule.state is RuleState.HIDDEN
        verdict = self._index.at(b"/")
        for name in names:
            leads = verdict.node is not None and verdict.node.leads_to_open
            if not is_hidden and not leads and verdict.state in (RuleState.DENY, RuleState.HIDDEN):
                return False  # that would lead to something open now
            verdict = self._index.below(verdict, name)
        leads = verdict.node is not None and verdict.node.leads_to_open
        if is_hidden and not leads and rule.path not in opened.paths:
            return True  # it cannot be entered
        if rule.is_whole or (is_hidden and verdict.state is RuleState.DENY):
            return False
        lets_patterns_in = verdict.outside or verdict.limit != _EVERY_RANK
        return not verdict.state.is_stricter_than(rule.state) and (self._is_calm or not lets_patterns_in)


class _Names:
    """Names of directories, to ask which of them a pattern is about."""

    def __init__(self) -> None:
        self.paths: set[bytes] = set()
        self._names: set[bytes] = set()
        self._tails: set[bytes] = set()

    def add(self, name: bytes) -> None:
        if name not in self._names and len(name) <= _LONGEST_NAME:
            self._names.add(name)
            self._tails.update(endings(name))

    def add_above(self, path: bytes) -> None:
        """Add all directories above a path."""
        path = path.rpartition(b"/")[0] or b"/"
        while path not in self.paths:
            self.paths.add(path)
            above, _, name = path.rpartition(b"/")
            self.add(name)
            path = above or b"/"

    def has_one_for(self, rule: NameRule | SuffixRule) -> bool:
        """Tell whether a pattern fits one of them, wherever it is."""
        return rule.name in self._names if isinstance(rule, NameRule) else rule.suffix in self._tails


class _Fitting:
    """Patterns, to ask whether a name may be one for both of them and another pattern."""

    def __init__(self, rules: Iterable[NameRule | SuffixRule]) -> None:
        self._names: set[bytes] = set()
        self._suffixes: set[bytes] = set()
        self._tails: set[bytes] = set()
        for rule in rules:
            name = _name_of(rule)
            (self._names if isinstance(rule, NameRule) else self._suffixes).add(name)
            if len(name) <= _LONGEST_NAME:
                self._tails.update(endings(name))

    def may_share(self, rule: NameRule | SuffixRule) -> bool:
        """Tell whether there are names that both ``rule`` and one of these fit."""
        name = _name_of(rule)
        if any(tail in self._suffixes for tail in endings(name)):
            return True
        return name in self._names if isinstance(rule, NameRule) else name in self._tails


def _name_of(rule: NameRule | SuffixRule) -> bytes:
    return rule.name if isinstance(rule, NameRule) else rule.suffix


def _is_about(rule: NameRule | SuffixRule, names: Iterable[bytes]) -> bool:
    return any(fits(rule, name) for name in names)


def _confined(rule: NameRule | SuffixRule, directory: bytes, state: RuleState) -> NameRule | SuffixRule:
    return msgspec.structs.replace(rule, scope=directory, state=state)
