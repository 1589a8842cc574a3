"""Which rules of a tree let more through than would hold without them.  Pure: nothing here looks at
a disk.

Two rule books are compared over all paths there could be.  That is possible as there are only
finitely many kinds of names: those in rules' paths, those that patterns fit, those of exempt
directories, and all others, for which one name stands.  A place without rules below it is looked at
once for each way in which the two books can stand there.

Rules that hold at once may nowhere be less strict, in reading or in writing, than the rules without
the tree's (but with the agreed ones).  The loosening rules are found by taking rules out until
nothing is less strict any more: each time those that decide at a loosened place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from yolofs.paths import is_in
from yolofs.rules.budget import Budget
from yolofs.rules.index import RuleIndex
from yolofs.rules.rule_states import RuleState
from yolofs.rules.spelling import NameRule, PathRule, Rule, SuffixRule, endings, fits
from yolofs.rules.verdict import COUNTING_EVERYWHERE, NamePatterns, Verdict

ANY: Final = b"\x01"
"""A name, or what stands before an ending, that no rule is about: it stands for all of these."""


class LoosenedPath(NamedTuple):
    """A path at which a rule lets more through."""

    path: bytes
    """Absolute; :data:`ANY` in it stands for any name, or any beginning of one."""
    before: RuleState
    now: RuleState


class JudgedRules(NamedTuple):
    """Which of a tree's rules hold, by their number."""

    in_force: tuple[int, ...]
    waiting: Mapping[int, tuple[LoosenedPath, ...]]
    """The paths that each other rule would open; empty if one rule alone does not tell."""


def _of_anything(_: Rule) -> bool:
    return False


def judge(
    rules: Sequence[Rule],
    agreed: frozenset[int],
    index_of: Callable[[Sequence[int]], RuleIndex],
    is_of_files: Callable[[Rule], bool] = _of_anything,
    budget: Budget | None = None,
) -> JudgedRules:
    """Return which of a tree's ``rules`` hold at once.

    ``agreed``: the numbers of those that the user has agreed to.  ``index_of`` returns the index of
    all sources if of ``rules`` just those of some numbers hold; each of these is to have its number
    as its ``source``.  ``is_of_files`` tells of a pattern that there are no directories of such
    names, in which other patterns would decide.  ``budget`` is how much work that may be; without
    one it is as much as it takes.

    Raises:
        BudgetSpentError: it takes more.
    """
    budget = budget if budget is not None else Budget(sys.maxsize)
    chosen = list(range(len(rules)))
    waiting: dict[int, tuple[LoosenedPath, ...]] = {}
    if len(agreed) == len(rules):
        return JudgedRules(tuple(chosen), waiting)
    budget.take(len(rules) // 4)
    before = index_of(sorted(agreed))
    while True:
        open_to_doubt = frozenset(chosen) - agreed
        if not open_to_doubt:
            break
        budget.take(len(rules) // 4)  # what an index takes
        found = find_loosening_rules(before, index_of(chosen), rules, open_to_doubt, is_of_files, budget)
        if not found:
            break
        waiting |= {number: tuple(places) for number, places in found.items()}
        chosen = [number for number in chosen if number not in found]
    return JudgedRules(tuple(chosen), waiting)


def find_loosening_rules(
    before: RuleIndex,
    now: RuleIndex,
    rules: Sequence[Rule],
    doubtful: frozenset[int],
    is_of_files: Callable[[Rule], bool] = _of_anything,
    budget: Budget | None = None,
) -> dict[int, dict[LoosenedPath, None]]:
    """Return the doubtful rules that let more through, each with where; empty if all is as strict
    as before.

    ``rules``, ``doubtful`` (numbers of these), ``is_of_files``, ``budget``: as for :func:`judge`.

    Raises:
        BudgetSpentError: as :func:`judge`.
    """
    budget = budget if budget is not None else Budget(sys.maxsize)
    names = {str(number): number for number in doubtful}
    found: dict[int, dict[LoosenedPath, None]] = {}
    involved: set[int] = set()
    for path, was, is_ in _Walk(before, now, is_of_files, budget).run():
        number = names.get(is_.rule.source) if is_.rule is not None else None
        if number is not None:
            found.setdefault(number, {})[LoosenedPath(path, was.state, is_.state)] = None
        else:  # a rule of somebody else decides, as one of these lets it in: which one the path tells
            budget.take(len(doubtful) // 8)
            is_above = was.state.is_stricter_than(is_.state)
            involved.update([one for one in doubtful if _is_involved(rules[one], path, is_above=is_above)] or doubtful)
    return found or {number: {} for number in involved}  # without those that decide the others may well be harmless


def _is_involved(rule: Rule, path: bytes, *, is_above: bool) -> bool:
    """Tell whether a rule for a directory above may have let in what decides, or one below have
    opened the way.
    """
    if not is_above:
        return isinstance(rule, PathRule) and is_in(rule.path, path) and rule.state is not RuleState.HIDDEN
    if isinstance(rule, PathRule):
        return is_in(path, rule.path)
    return any(fits(rule, name) for name in path.split(b"/"))


# ---- comparing two books


class _Walk:
    """A walk over both books at once."""

    def __init__(self, before: RuleIndex, now: RuleIndex, is_of_files: Callable[[Rule], bool], budget: Budget) -> None:
        self._before = before
        self._budget = budget
        self._is_of_files = is_of_files
        self._now = now
        here, there = ([rule for one in index.sources for rule in one.rules] for index in (before, now))
        in_both = {id(rule) for rule in here} & {id(rule) for rule in there}
        own = [rule for rule in (*here, *there) if id(rule) not in in_both]
        self._own = frozenset(map(id, own))
        """The rules that one has and the other has not."""
        self._touched = _prefixes(rule.path if isinstance(rule, PathRule) else rule.scope for rule in own)
        self._exempt = sorted(frozenset[bytes]().union(*(one.exempt for one in (*before.sources, *now.sources))))
        self._kinds: dict[tuple[int, ...], tuple[list[bytes], list[bytes]]] = {}
        self._seen: set[tuple[object, ...]] = set()

    def run(self) -> Iterator[tuple[bytes, Verdict, Verdict]]:
        """Yield places at which ``now`` lets more through, one for all that are alike."""
        steps = [(b"/", self._before.at(b"/"), self._now.at(b"/"))]
        while steps:
            path, was, is_ = steps.pop()
            if _is_looser(was, is_):
                yield path, was, is_
            if is_.seems_absent or (was.node is None and is_.node is None and self._is_file(was)):
                continue  # nobody gets in there
            above = path.rstrip(b"/") + b"/"
            price = 1 + (len(was.patterns) + len(is_.patterns)) // 4 + len(path) // 256
            for name in self._names(path, was, is_):
                self._budget.take(price)
                steps.append((above + name, self._before.below(was, name), self._now.below(is_, name)))

    def _is_file(self, verdict: Verdict) -> bool:
        rule = verdict.rule
        return rule is not None and not isinstance(rule, PathRule) and self._is_of_files(rule)

    def _names(self, path: bytes, was: Verdict, is_: Verdict) -> Iterator[bytes]:
        """Yield the names in a directory that are to be looked at."""
        every, ours = self._kinds_of(was, is_)
        is_same = (was.state, was.limit, self._outside(was)) == (is_.state, is_.limit, self._outside(is_))
        of_node = {
            **(was.node.children if was.node is not None else {}),
            **(is_.node.children if is_.node is not None else {}),
        }
        if is_same and not ours:
            above = path.rstrip(b"/") + b"/"
            yield from (name for name in of_node if above + name in self._touched)
            return
        yield from of_node
        yield from self._unseen(was, is_, every, ours, is_same=is_same, known=of_node)

    def _unseen(
        self,
        was: Verdict,
        is_: Verdict,
        every: list[bytes],
        ours: list[bytes],
        *,
        is_same: bool,
        known: Mapping[bytes, object],
    ) -> Iterator[bytes]:
        """Yield stand-ins for names without a rule of their own, once for all like places."""
        ways = (*_decided_by(was), *_decided_by(is_))
        decides = is_.rule.source if is_.rule is not None and id(is_.rule) in self._own else None
        key = (was.state, is_.state, decides, *ways)
        if key in self._seen:
            return
        self._seen.add(key)
        names = every
        if is_same:
            # What patterns find in here does not depend on the state: once for all places with
            # these patterns.
            names = every if (is_same, *ways) not in self._seen else [*ours, *self._exempt]
            self._seen.add((is_same, *ways))
        if any(name in known for name in names):
            self._seen.discard(key)  # of such a name the rule for the path was looked at: the next place tells
            self._seen.discard((is_same, *ways))
        yield from (name for name in names if name not in known)

    def _outside(self, verdict: Verdict) -> int:
        """Return :attr:`Verdict.outside` as it would be without directories that have patterns of
        one of them alone.
        """
        return sum(any(id(rule) not in self._own for _, rule in some) for some in verdict.patterns[: verdict.outside])

    def _kinds_of(self, was: Verdict, is_: Verdict) -> tuple[list[bytes], list[bytes]]:
        """Return a name for each kind that is told apart, and those that patterns of one of them
        alone fit.
        """
        key = tuple(map(id, (*was.patterns, None, *is_.patterns)))
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._find_kinds((*was.patterns, *is_.patterns))
        return found

    def _find_kinds(self, patterns: tuple[NamePatterns, ...]) -> tuple[list[bytes], list[bytes]]:
        rules = [rule for some in patterns for _, rule in some if not isinstance(rule, PathRule)]
        own = [rule for rule in rules if id(rule) in self._own]
        self._budget.take(len(rules) // 4)
        names = dict.fromkeys(rule.name if isinstance(rule, NameRule) else ANY + rule.suffix for rule in rules)
        every = list(dict.fromkeys([ANY, *names, *self._exempt, *sorted(COUNTING_EVERYWHERE)]))
        of_own = {rule.name for rule in own if isinstance(rule, NameRule)}
        suffixes = {rule.suffix for rule in own if isinstance(rule, SuffixRule)}
        return every, [name for name in names if name in of_own or any(one in suffixes for one in endings(name))]


def _decided_by(verdict: Verdict) -> tuple[object, ...]:
    """Return what, besides its rule, decides over names in a place that no rule's path has."""
    return (*map(id, verdict.patterns), None, verdict.outside, verdict.limit)


def _is_looser(before: Verdict, now: Verdict) -> bool:
    """Tell whether anything gets through now that did not before."""
    return (
        before.state.is_stricter_than(now.state)
        or (before.seems_absent and not now.seems_absent)
        or (now.is_way and not before.is_way and not before.may_list)
    )


def _prefixes(paths: Iterable[bytes]) -> frozenset[bytes]:
    found = {b"/"}
    for path in paths:
        while path not in found and path:
            found.add(path)
            path = path.rpartition(b"/")[0]
    return frozenset(found)
