"""What holds of a tree's rules is nowhere less strict than without them, looked for at every path
of a small world.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_steps import so_many
from yolofs.rules import NameRule, PathRule, Rule, RuleIndex, RuleSet, RuleState, SuffixRule, Verdict, subject
from yolofs.rules.budget import Budget
from yolofs.rules.loosening import find_loosening_rules, judge
from yolofs.rules.tightening import find_sure

NAMES = (b"a", b"b", b"c.x", b"d.x", b"e", b".git", b".yolofs")
"""Of all kinds: with rules and without, with an ending, that keeps patterns out, and where nothing
does.
"""
PATHS = [b"/" + b"/".join(names) for depth in range(5) for names in itertools.product(NAMES, repeat=depth)]
_paths = st.sampled_from([b"/", b"/a", b"/a/b", b"/a/b/c.x", b"/b", b"/b/a", b"/c.x", b"/c.x/b", b"/.git", b"/a/.git"])
_states = st.sampled_from(list(RuleState))
_whole = st.sampled_from((False, False, True))


def _rules(source: str) -> st.SearchStrategy[list[Rule]]:
    one: st.SearchStrategy[Rule] = st.one_of(
        st.builds(PathRule, _paths, _states, st.just(source), _whole),
        st.builds(
            NameRule, st.sampled_from((b"a", b"b", b"c.x", b".yolofs")), _states, st.just(source), _paths, _whole
        ),
        st.builds(SuffixRule, st.just(b".x"), _states, st.just(source), _paths, _whole),
    )
    return st.lists(one, max_size=4, unique_by=subject)


_exempt = st.sampled_from((frozenset[bytes](), frozenset({b".git"})))


def _reachable(index: RuleIndex, path: bytes) -> Verdict | None:
    """Return the verdict over a path, None if nothing leads there."""
    verdict = index.at(b"/")
    for name in path.split(b"/"):
        if verdict.seems_absent:
            return None
        verdict = index.below(verdict, name) if name else verdict
    return verdict


def _is_looser(before: RuleIndex, now: RuleIndex, path: bytes) -> bool:
    there = _reachable(now, path)
    if there is None or there.seems_absent:
        return False
    was = before.at(path)
    becomes_way = there.is_way and not was.is_way and not was.may_list
    return was.state.is_stricter_than(there.state) or was.seems_absent or becomes_way


@so_many(ci=8, nightly=2000)
@given(_rules("near"), _rules("0"), _rules("far"), _exempt, st.data())
def test_rules_of_a_tree_that_are_in_force_open_nothing(
    near: list[Rule], drawn: list[Rule], far: list[Rule], exempt: frozenset[bytes], data: st.DataObject
) -> None:
    tree = [msgspec.structs.replace(rule, source=str(number)) for number, rule in enumerate(drawn)]

    def index_of(chosen: Sequence[int]) -> RuleIndex:
        of_tree = RuleSet(tuple(tree[number] for number in chosen))
        return RuleIndex(RuleSet(tuple(near)), of_tree, RuleSet(tuple(far), exempt))

    agreed = frozenset(data.draw(st.sets(st.sampled_from(range(len(tree))))) if tree else ())
    judged = judge(tree, agreed, index_of)
    before, now = index_of(sorted(agreed)), index_of(judged.in_force)
    assert agreed <= set(judged.in_force)
    assert sorted([*judged.in_force, *judged.waiting]) == list(range(len(tree)))
    assert [path for path in PATHS if _is_looser(before, now, path)] == []


@so_many(ci=8, nightly=2000)
@given(_rules("near"), _rules("0"), _rules("far"), _exempt)
def test_a_rule_of_a_tree_is_blamed_only_if_a_path_gets_looser(
    near: list[Rule], drawn: list[Rule], far: list[Rule], exempt: frozenset[bytes]
) -> None:
    tree = [msgspec.structs.replace(rule, source=str(number)) for number, rule in enumerate(drawn)]
    before = RuleIndex(RuleSet(tuple(near)), RuleSet(), RuleSet(tuple(far), exempt))
    now = RuleIndex(RuleSet(tuple(near)), RuleSet(tuple(tree)), RuleSet(tuple(far), exempt))
    found = find_loosening_rules(before, now, tree, frozenset(range(len(tree))))
    told = [place.path for places in found.values() for place in places]  # may lie deeper than all of PATHS
    assert bool(found) == any(_is_looser(before, now, path) for path in (*PATHS, *told))


def test_a_path_that_gets_looser_deep_below_a_suffix_rule_is_found() -> None:
    tree: list[Rule] = [NameRule(b"a", RuleState.ALLOW, "0", b"/")]
    near = RuleSet((PathRule(b"/", RuleState.ALLOW, "near"),))
    far = RuleSet((SuffixRule(b".x", RuleState.READ_ONLY, "far", b"/a/b/c.x"),))
    before, now = RuleIndex(near, RuleSet(), far), RuleIndex(near, RuleSet(tuple(tree)), far)
    (places,) = find_loosening_rules(before, now, tree, frozenset({0})).values()
    assert all(_is_looser(before, now, place.path) for place in places)


def test_a_path_with_a_filler_for_any_name_is_told_with_that_filler() -> None:
    tree: list[Rule] = [SuffixRule(b".x", RuleState.ALLOW, "0")]
    far = RuleSet((PathRule(b"/a", RuleState.DENY, "far"),))
    before, now = RuleIndex(far), RuleIndex(RuleSet(tuple(tree)), far)
    (places,) = find_loosening_rules(before, now, tree, frozenset({0})).values()
    assert {(os.fsdecode(place.path), place.before.value) for place in places} >= {("/a/\x01.x", "deny")}


# ---- told of each rule by itself

PROJECT = b"/a/b"


def _lesser(rule: Rule) -> Rule | None:
    return msgspec.structs.replace(rule, is_whole=False) if rule.is_whole else None


@so_many(ci=31, nightly=3000)
@given(_rules("near"), _rules("0"), _rules("far"), _exempt, st.data())
def test_rules_that_are_sure_let_nothing_through_together(
    near: list[Rule], drawn: list[Rule], far: list[Rule], exempt: frozenset[bytes], data: st.DataObject
) -> None:
    tree = [msgspec.structs.replace(rule, source=str(number)) for number, rule in enumerate(drawn)]
    agreed = frozenset(data.draw(st.sets(st.sampled_from(range(len(tree))))) if tree else ())
    known = [tree[number] for number in sorted(agreed)]
    most = data.draw(st.sampled_from((10**6, 40)))

    def index_of(chosen: Sequence[Rule]) -> RuleIndex:
        by_subject = {subject(rule): rule for rule in reversed(chosen)}
        return RuleIndex(RuleSet(tuple(near)), RuleSet(tuple(by_subject.values())), RuleSet(tuple(far), exempt))

    before = index_of(known)
    sure = find_sure(tree, agreed, before, PROJECT, lambda rules: rules, _lesser, Budget(most))
    assert not agreed & sure.bundles.keys()
    assert sure.as_written <= sure.bundles.keys()
    # Any of them hold together: that some others wait takes nothing away.
    chosen = data.draw(st.sets(st.sampled_from(sorted(sure.bundles)))) if sure.bundles else set()
    for numbers in (sorted(sure.bundles), sorted(chosen)):
        now = index_of([*known, *itertools.chain.from_iterable(sure.bundles[number] for number in numbers)])
        assert [path for path in PATHS if _is_looser(before, now, path)] == []
