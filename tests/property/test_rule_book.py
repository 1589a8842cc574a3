"""Random rules and paths: the rule book says what a naive walk over all rules says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.model_steps import so_many
from tests.support.naive_rules import holds, in_force, walk
from yolofs.rules import NameRule, PathRule, RuleBook, RuleSet, RuleState, SuffixRule, subject

NAMES = st.sampled_from([b"a", b"b", b"c.x", b".x", b"d.y.x", b"y", b".yolofs"])
PATHS = st.lists(NAMES, max_size=5).map(lambda names: b"/" + b"/".join(names))
STATES = st.sampled_from(list(RuleState))
RULES = st.one_of(
    st.builds(PathRule, PATHS, STATES, st.just("f"), st.booleans()),
    st.builds(NameRule, NAMES, STATES, st.just("f"), PATHS, st.booleans()),
    st.builds(SuffixRule, st.sampled_from([b".x", b".y", b".y.x"]), STATES, st.just("f"), PATHS, st.booleans()),
)
SETS = st.builds(
    lambda rules, exempt: RuleSet(tuple(rules), exempt),
    st.lists(RULES, max_size=8, unique_by=subject),
    st.frozensets(NAMES, max_size=2),
)
SOURCES = st.lists(SETS, min_size=1, max_size=3)


@given(SOURCES, st.lists(PATHS, max_size=20))
@so_many(ci=39, nightly=4000)
def test_verdicts_are_those_of_a_naive_walk(sources: list[RuleSet], paths: list[bytes]) -> None:
    book = RuleBook(*sources)
    for path in paths:
        found = walk(sources, path)
        verdict = book.at(path)
        assert verdict.rule is found.rule
        assert verdict.state is (found.rule.state if found.rule is not None else RuleState.ASK)
        chained = book.at(b"/")
        for name in path.split(b"/")[1:] if path != b"/" else []:
            chained = book.below(chained, name)
        assert (chained.rule, chained.state, chained.is_way) == (verdict.rule, verdict.state, verdict.is_way)


@given(SOURCES, st.lists(PATHS, max_size=20))
@so_many(ci=39, nightly=4000)
def test_ways_and_stricter_rules_below_are_those_of_a_naive_search(sources: list[RuleSet], paths: list[bytes]) -> None:
    book = RuleBook(*sources)
    for path in paths:
        verdict = book.at(path)
        below = [rule for rule in in_force(sources) if isinstance(rule, PathRule) and holds(path, rule.path)]
        is_way = verdict.state is RuleState.HIDDEN and any(rule.state is not RuleState.HIDDEN for rule in below)
        assert verdict.is_way == is_way
        confined = [rule for rule in in_force(sources) if not isinstance(rule, PathRule) and holds(path, rule.scope)]
        states = {rule.state for rule in [*below, *confined] if rule.state.is_stricter_than(verdict.state)}
        stricter = verdict.stricter_below()
        if verdict.outside and any(not rule.is_whole for rule in below):
            assert stricter in below
        else:
            assert (stricter.state in states) if stricter is not None else not states


@given(SOURCES, PATHS, PATHS, st.lists(NAMES, max_size=3))
@so_many(ci=78, nightly=8000)
def test_a_directory_that_may_move_takes_nothing_out_from_under_a_stricter_rule(
    sources: list[RuleSet], old: bytes, new: bytes, names: list[bytes]
) -> None:
    book = RuleBook(*sources)
    before, after = book.at(old), book.at(new)
    if any((holds(old, new), holds(new, old), before.stricter_below(), before.pattern_lost(after))):
        return
    was, becomes = before, after
    for name in names:
        was, becomes = book.below(was, name), book.below(becomes, name)
    if was.state.is_stricter_than(before.state):
        assert not was.state.is_stricter_than(becomes.state)


@given(SOURCES, PATHS, NAMES)
@so_many(ci=39, nightly=4000)
def test_shows_agrees_with_the_verdict_about_the_path(sources: list[RuleSet], directory: bytes, name: bytes) -> None:
    book = RuleBook(*sources)
    above = book.at(directory)
    for _ in range(2):  # the verdict of a rule's path is kept
        assert book.shows(above, name) is not book.below(above, name).seems_absent


MOSTLY_READ_ONLY = st.sampled_from([RuleState.READ_ONLY] * 4 + [RuleState.DENY])


@given(SOURCES, MOSTLY_READ_ONLY, st.data(), st.lists(st.lists(NAMES, max_size=4), max_size=10))
@so_many(ci=78, nightly=8000)
def test_below_what_is_mostly_in_a_state_no_path_but_the_exceptions_has_another(
    sources: list[RuleSet], state: RuleState, data: st.DataObject, below: list[list[bytes]]
) -> None:
    alike = [
        RuleSet(tuple(replace(rule, state=data.draw(MOSTLY_READ_ONLY)) for rule in one.rules), one.exempt)
        for one in sources
    ]
    for top, exceptions in RuleBook(*alike).mostly(state).items():
        assert all(holds(top, path) for path in exceptions)
        for names in below:
            path = b"/" + b"/".join([*top.split(b"/")[1:], *names]).strip(b"/")
            if any(path == exception or holds(exception, path) for exception in exceptions):
                continue
            found = walk(alike, path)
            assert found.rule is not None
            assert found.rule.state is state
