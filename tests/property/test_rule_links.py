"""Random links and rules: rules hold where a naive walk says that links lead, and the ways there
are held.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_rule_book import NAMES, PATHS, RULES
from tests.support.model_steps import so_many
from tests.support.naive_rules import holds
from tests.support.naive_ways import path_of, way_of, with_places
from yolofs.rules import Rule, RuleBook, RuleSet, subject
from yolofs.rules.linked_keys import follow_links

STEPS = st.lists(st.one_of(NAMES, st.sampled_from([b"..", b"."])), min_size=1, max_size=4).map(b"/".join)
LINKS = st.dictionaries(PATHS.filter(lambda path: path != b"/"), st.one_of(STEPS, PATHS), max_size=6)
WRITTEN = st.lists(RULES, max_size=6, unique_by=subject)


@given(WRITTEN, LINKS, PATHS)
@so_many(ci=31, nightly=3000)
def test_rules_hold_where_links_lead_by_a_naive_walk(
    rules: list[Rule], links: dict[bytes, bytes], project: bytes
) -> None:
    followed = follow_links(RuleSet(tuple(rules)), project, links.get).rules
    meant = with_places(rules, project, links.get)
    assert {subject(rule): rule for rule in followed.rules} == {subject(rule): rule for rule in meant}
    assert len(followed.rules) == len(meant)


@given(WRITTEN, LINKS, PATHS, st.lists(PATHS, max_size=10))
@so_many(ci=31, nightly=3000)
def test_no_link_may_be_put_onto_the_way_of_a_rule_or_taken_off_it(
    rules: list[Rule], links: dict[bytes, bytes], project: bytes, paths: list[bytes]
) -> None:
    followed = follow_links(RuleSet(tuple(rules)), project, links.get).rules
    book = RuleBook(followed)
    ways = [way_of(path_of(rule), links.get) for rule in rules]
    spots = {spot for way in ways for spot in way.spots}
    held = {link for way in ways for link in way.held_links}
    for path in (*paths, *spots, *held):
        verdict = book.at(path)
        is_above = any(holds(path, spot) for spot in spots)
        assert (verdict.led_by_link_inside() is not None) == is_above
        assert (verdict.led_by_new_link() is not None) == (is_above or path in spots)
        if path in held or any(holds(path, link) for link in held):
            assert verdict.astray_by_link() is not None
        if any(holds(path, link) for link in held):
            assert verdict.stricter_below() is not None


@given(st.lists(RULES, max_size=6, unique_by=subject), LINKS, PATHS)
@so_many(ci=31, nightly=3000)
def test_waypoints_do_not_change_the_verdict_of_a_path(
    rules: list[Rule], links: dict[bytes, bytes], path: bytes
) -> None:
    followed = follow_links(RuleSet(tuple(rules)), b"/a", links.get).rules
    with_ways, without = RuleBook(followed).at(path), RuleBook(RuleSet(followed.rules)).at(path)
    seen = [(one.state, one.is_way, one.hides_inside, one.rule) for one in (with_ways, without)]
    assert seen[0] == seen[1]
