"""Finds the rules of a tree that hold: they open nothing more, or the user has agreed to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from yolofs.config.lines import Meaning
from yolofs.config.settings import RuleLine
from yolofs.config.trust import WaitingLine, toml_text
from yolofs.paths import display, is_in, with_ancestors
from yolofs.registry.trust import Agreed, place_text
from yolofs.rules.budget import MOST_LOOKS, Budget, BudgetSpentError
from yolofs.rules.index import RuleIndex
from yolofs.rules.linked_keys import follow_links, leads_to
from yolofs.rules.loosening import ANY, JudgedRules, LoosenedPath, find_loosening_rules, judge
from yolofs.rules.rule_states import RuleState
from yolofs.rules.sources import PRESET_SOURCE, Level
from yolofs.rules.spelling import (
    NameRule,
    PathRule,
    Rule,
    RuleSet,
    RuleSubject,
    SuffixRule,
    parse_rule,
    spell_rule,
    subject,
)
from yolofs.rules.tightening import SureRules, find_sure
from yolofs.system.symlinks import TargetOf
from yolofs.text.enumeration import some_of

_WORD = "rules"
_EXAMPLES = 3
"""How many places of a kind are named."""
NOT_JUDGED = "not judged: the file has too many rules to tell what each of them opens"
"""How :attr:`WaitingLine.opens` starts where that is so."""
_TRIES = 4
"""What is hidden in one place may lie in what is hidden in another."""
_NOW = {
    RuleState.ALLOW: "may be read and changed",
    RuleState.READ_ONLY: "may be read",
    RuleState.WRITE_ASK: "may be read, and changed if somebody says so",
    RuleState.ASK: "may be read and changed if somebody says so",
    RuleState.DENY: "is seen",
    RuleState.HIDDEN: "is passed",
}


class TrustedRules(NamedTuple):
    """The rules of a tree, parted."""

    in_force: RuleSet
    waiting: tuple[WaitingLine, ...]

    @classmethod
    def find(
        cls,
        lines: Sequence[RuleLine],
        rules: Sequence[Rule],
        others: Mapping[Level, RuleSet],
        agreed: Agreed,
        project: bytes,
        home: bytes,
        target_of: TargetOf,
    ) -> Self:
        """Part the ``rules`` of a tree, each made of one of ``lines``; ``others`` are those of all
        other sources.

        ``project`` and ``home`` as for :func:`yolofs.rules.parse_rules`; links of ``others`` have
        been followed.
        """
        numbered = [msgspec.structs.replace(rule, source=str(number)) for number, rule in enumerate(rules)]

        def index_of(chosen: Sequence[Rule]) -> RuleIndex:
            followed = follow_links(RuleSet(tuple(chosen)), project, target_of).rules
            by_level = {**others, Level.PROJECT: followed}
            return RuleIndex(*(by_level.get(level, RuleSet()) for level in Level))

        known = _agreed(rules, agreed, project, target_of)
        budget = Budget()
        if known:
            exceptions = _gone(rules, agreed, project, home)
            if exceptions:
                known -= _opened_without(exceptions, numbered, known, index_of, budget)
        sure = find_sure(
            numbered,
            known,
            index_of([numbered[number] for number in sorted(known)]),
            project,
            lambda some: follow_links(RuleSet(some), project, target_of).rules.rules,
            lambda rule: _lesser(rule, project),
            Budget(MOST_LOOKS),
        )

        def wait(number: int, opens: str) -> WaitingLine:
            line = lines[number]
            shown = f"{toml_text(line.key)} = {toml_text(line.state)}"
            return WaitingLine(
                (_WORD, line.key), shown, opens, (meaning_of(rules[number], project, target_of),), line.line
            )

        rest = [number for number in range(len(rules)) if number not in sure.as_written and number not in known]
        if not rest:
            return cls(_together(rules, known, sure), ())
        try:
            bundled = _Bundles(numbered, known, index_of, budget, sure)
            bundled.keep_hidden(project)
            bundled.hold_meanwhile(project)
        except BudgetSpentError:
            return cls(_together(rules, known, sure), tuple(wait(n, _meanwhile(n, sure, rules)) for n in rest))
        waiting = tuple(wait(n, _opens(rules[n], places)) for n, places in sorted(bundled.judged.waiting.items()))
        return cls(RuleSet(tuple(bundled.in_force(rules))), waiting)


def _together(rules: Sequence[Rule], known: frozenset[int], sure: SureRules) -> RuleSet:
    """Return the rules agreed to and those that are sure, with the sources of ``rules``."""
    by_subject: dict[RuleSubject, Rule] = {}
    written = [(number, rules[number]) for number in sorted(known)]
    written += [(number, bundle[0]) for number, bundle in sure.bundles.items()]
    more = [(number, rule) for number, bundle in sure.bundles.items() for rule in bundle[1:]]
    for number, rule in (*written, *more):  # agreed and written ones come before added ones
        by_subject.setdefault(subject(rule), msgspec.structs.replace(rule, source=rules[number].source))
    return RuleSet(tuple(by_subject.values()))


def _meanwhile(number: int, sure: SureRules, rules: Sequence[Rule]) -> str:
    """Return what to say about a line that was not judged."""
    if number not in sure.bundles:
        return f"{NOT_JUDGED}; until you agree (yolofs trust), what holds is as if it were not there"
    place = _place_of(sure.bundles[number][0])
    if place == _place_of(rules[number]):
        return f"{NOT_JUDGED}; until you agree (yolofs trust), it holds without its /**"
    return f"{NOT_JUDGED}; until you agree (yolofs trust), it holds below {display(place)} alone"


def _place_of(rule: Rule) -> bytes:
    return rule.path if isinstance(rule, PathRule) else rule.scope


class _Bundles:
    """The rules of a tree, each with others that it has to stand with, and what of it all holds."""

    def __init__(
        self,
        rules: Sequence[Rule],
        known: frozenset[int],
        index_of: Callable[[Sequence[Rule]], RuleIndex],
        budget: Budget,
        sure: SureRules,
    ) -> None:
        """``rules`` have their number as ``source``; ``known``: the user has agreed to those."""
        self._bundles: list[tuple[Rule, ...]] = [
            sure.bundles[number] if number in sure.as_written else (rule,) for number, rule in enumerate(rules)
        ]
        self._known = known
        self._index_of = index_of
        self._budget = budget
        self.judged = self._judge(self._bundles)

    def _judge(self, bundles: Sequence[tuple[Rule, ...]]) -> JudgedRules:
        """Judge rules as if nothing lay in directories that are called like keys (``x.pem/``).

        If no pattern lets anything be changed in other sessions' directories, these count as empty,
        too.
        """

        def index_of(chosen: Sequence[int]) -> RuleIndex:
            by_subject: dict[RuleSubject, Rule] = {}
            for rule in itertools.chain.from_iterable(bundles[number] for number in chosen):
                by_subject.setdefault(subject(rule), rule)
            return self._index_of(tuple(by_subject.values()))

        firsts = [bundle[0] for bundle in bundles]
        gives = any(rule.state.may_write and not isinstance(rule, PathRule) for rule in firsts)

        def is_of_files(rule: Rule) -> bool:
            if rule.source.startswith(PRESET_SOURCE):
                return rule.state is RuleState.DENY or (rule.state is RuleState.READ_ONLY and not gives)
            return rule.source.isdigit()  # of the tree: what another of its patterns says in there needs no word more

        return judge(firsts, self._known, index_of, is_of_files, self._budget)

    def keep_hidden(self, project: bytes) -> None:
        """Have patterns that deny show nothing hidden: like all that only tightens, they hold at
        once.

        A hidden directory that leads to something open can be passed.  A pattern would decide over
        names in it, and deny is less than hidden: there it hides.
        """
        for _ in range(_TRIES):
            shows = {
                number: frozenset(_named_part(place.path) for place in places)
                for number, places in self.judged.waiting.items()
                if self._bundles[number][0].state is RuleState.DENY
                and not isinstance(self._bundles[number][0], PathRule)
                and all(place.before is RuleState.HIDDEN for place in places)
            }
            if not shows:
                return
            for number, directories in shows.items():
                first, *more = self._bundles[number]
                hides = [_confined(first, directory, RuleState.HIDDEN) for directory in sorted(directories)]
                here = _confined(first, project, RuleState.DENY)
                self._bundles[number] = tuple(dict.fromkeys([first, here, *more, *hides]))
            self.judged = self._judge(self._bundles)

    def hold_meanwhile(self, project: bytes) -> None:
        """Have what of a waiting rule only tightens hold: a pattern in the project, a path without
        its ``/**``.
        """
        instead = {
            number: _lesser(self._bundles[number][0], project)
            for number in self.judged.waiting
            if number not in self._known
        }
        lesser = {number: rule for number, rule in instead.items() if rule is not None}
        if not lesser:
            return
        bundles = list(self._bundles)
        for number in self.judged.waiting:
            bundles[number] = (lesser[number],) if number in lesser else ()
        kept = [number for number, bundle in enumerate(bundles) if bundle]
        renumbered = {number: at for at, number in enumerate(kept)}
        lesser_bundles = _Bundles([], frozenset(), self._index_of, self._budget, SureRules({}, frozenset()))
        lesser_bundles._bundles = [
            tuple(msgspec.structs.replace(rule, source=str(renumbered[number])) for rule in bundles[number])
            for number in kept
        ]
        lesser_bundles._known = frozenset(renumbered[number] for number in self._known if number in renumbered)
        in_force = lesser_bundles._judge(lesser_bundles._bundles).in_force
        self._bundles = bundles
        self.judged = self.judged._replace(in_force=tuple(kept[at] for at in in_force))

    def in_force(self, rules: Sequence[Rule]) -> Iterator[Rule]:
        """Yield the rules that hold, as they were written: with the sources of ``rules``."""
        by_subject: dict[RuleSubject, Rule] = {}
        for number in self.judged.in_force:
            for rule in self._bundles[number]:
                by_subject.setdefault(subject(rule), msgspec.structs.replace(rule, source=rules[number].source))
        yield from by_subject.values()


def _named_part(path: bytes) -> bytes:
    """Return the directory of a place as far as it has a name of its own."""
    directory = path.rpartition(b"/")[0]
    return directory.partition(b"/" + ANY)[0] or b"/"


def _confined(rule: Rule, directory: bytes, state: RuleState) -> Rule:
    """Return a pattern for what lies in a directory alone."""
    assert not isinstance(rule, PathRule)
    scope = directory if is_in(directory, rule.scope) else rule.scope
    return msgspec.structs.replace(rule, scope=scope, state=state)


def _lesser(rule: Rule, project: bytes) -> Rule | None:
    """Return a rule that says only what it has to, None if it does so already."""
    if isinstance(rule, PathRule):
        return msgspec.structs.replace(rule, is_whole=False) if rule.is_whole else None
    if rule.scope != project and is_in(project, rule.scope):
        return msgspec.structs.replace(rule, scope=project, is_whole=False)
    return msgspec.structs.replace(rule, is_whole=False) if rule.is_whole else None


def meaning_of(rule: Rule, project: bytes, target_of: TargetOf) -> Meaning:
    """Return what a rule of a tree comes to: its path or pattern, its state, and where links lead
    it now.
    """
    meaning = (_WORD, spell_rule(rule, project), rule.state.value)
    place = leads_to(rule, project, target_of)
    return meaning if place is None else (*meaning, place_text(place, project))


def remaining(
    rules: Sequence[Rule], meanings: frozenset[Meaning], project: bytes, target_of: TargetOf
) -> tuple[frozenset[Meaning], frozenset[Meaning]]:
    """Return those of ``meanings`` that ``rules`` have, and the exceptions that other rules make of
    these.

    An exception is a stricter rule for something that the agreed one is about: without it more
    would be opened than the user has seen.
    """
    by_meaning = {meaning_of(rule, project, target_of): rule for rule in rules}
    kept = meanings & by_meaning.keys()
    closed = (
        _exception(rule, project)
        for rule in rules
        if any(_makes_exception(rule, by_meaning[meaning]) for meaning in kept)
    )
    return kept, frozenset(closed)


def _agreed(rules: Sequence[Rule], agreed: Agreed, project: bytes, target_of: TargetOf) -> frozenset[int]:
    """Return the numbers of the rules that the user has agreed to."""
    if not any(meaning[0] == _WORD for meaning in agreed.meanings):
        return frozenset()
    meanings = agreed.meanings
    return frozenset(n for n, rule in enumerate(rules) if meaning_of(rule, project, target_of) in meanings)


def _gone(rules: Sequence[Rule], agreed: Agreed, project: bytes, home: bytes) -> list[Rule]:
    """Return the exceptions that the file made then and does not make any more."""
    now = {subject(rule): rule for rule in rules}
    then = (parse_rule(key, RuleState(state), "", project, home) for _, key, state in agreed.closed)
    return [
        rule
        for rule in then
        if (same := now.get(subject(rule))) is None
        or rule.state.is_stricter_than(same.state)
        or same.is_whole != rule.is_whole
    ]


def _opened_without(
    exceptions: Sequence[Rule],
    rules: Sequence[Rule],
    known: frozenset[int],
    index_of: Callable[[Sequence[Rule]], RuleIndex],
    budget: Budget,
) -> frozenset[int]:
    """Return the numbers of the rules agreed to that let more through for lack of some exceptions.

    Where it takes too much to tell, that is all of them.
    """
    agreed = [rules[number] for number in sorted(known)]
    instead = {subject(rule) for rule in exceptions}
    then = [*exceptions, *(rule for rule in agreed if subject(rule) not in instead)]
    try:
        return frozenset(find_loosening_rules(index_of(then), index_of(agreed), rules, known, budget=budget))
    except BudgetSpentError:
        return known


def _exception(rule: Rule, project: bytes) -> Meaning:
    return (_WORD, spell_rule(rule, project), rule.state.value)


def _makes_exception(rule: Rule, of: Rule) -> bool:
    if not rule.state.is_stricter_than(of.state):
        return False
    place = rule.path if isinstance(rule, PathRule) else rule.scope
    around = of.path if isinstance(of, PathRule) else of.scope
    return is_in(place, around) or (not isinstance(rule, PathRule) and is_in(around, place))


def _opens(rule: Rule, places: Sequence[LoosenedPath]) -> str:
    """Return what a rule lets through, as a clause."""
    groups: dict[RuleState, dict[bytes, None]] = {}
    for place in sorted(places, key=lambda place: (place.path.count(b"/"), place.path)):
        paths = groups.setdefault(place.before, {})
        if not any(above in paths for above in with_ancestors(place.path)):
            paths[place.path] = None
    if not groups:
        return "with it other rules count, which let more through"
    states = sorted(groups, key=lambda state: (state.read_rank, state.write_rank), reverse=True)
    if not isinstance(rule, PathRule):
        return f"{_names_of(rule)} {_NOW[rule.state]}: {_or([state.value for state in states])} without it"
    return "; ".join(
        f"{_examples(list(groups[state]))} {_NOW[rule.state]}: {state.value} without it" for state in states
    )


def _names_of(rule: Rule) -> str:
    name = f"what is called {display(rule.name)}" if isinstance(rule, NameRule) else ""
    if isinstance(rule, SuffixRule):
        name = f"what has a name that ends in {display(rule.suffix)}"
    scope = rule.path if isinstance(rule, PathRule) else rule.scope
    return name + (f" below {display(scope)}" if scope != b"/" else ", wherever it is,")


def _or(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _examples(paths: Sequence[bytes]) -> str:
    return some_of([display(path.replace(ANY, b"*")) for path in paths], _EXAMPLES)
