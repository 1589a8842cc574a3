"""What an ask can be answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolofs.access.answers import least_state
from yolofs.access.questions import Decision, Operation, Question
from yolofs.access.scopes import widest_scope
from yolofs.rules import NameRule, PathRule, Rule, RuleBook, RuleSet, RuleState, SuffixRule

ASK = RuleState.ASK


@pytest.mark.parametrize(
    ("rule", "widest"),
    [
        (None, b"/"),
        (PathRule(b"/", ASK, "x"), b"/"),
        (PathRule(b"/d*", ASK, "x"), b"/d*"),
        (PathRule(b"/d*/a b/c.k", ASK, "x"), b"/d*/a b/c.k"),
        (NameRule(b"c.k", ASK, "x"), b"/d*/a b/c.k"),
        (NameRule(b"a b", ASK, "x"), b"/d*/a b"),
        (SuffixRule(b".k", ASK, "x", b"/d*"), b"/d*/a b/c.k"),
        (PathRule(b"/elsewhere", ASK, "x"), b"/d*/a b/c.k"),
    ],
)
def test_the_widest_scope_is_where_the_rule_decides(rule: Rule | None, widest: bytes) -> None:
    assert widest_scope(Question(b"/d*/a b/c.k", Operation.READ, ASK, rule)) == widest


def test_where_other_names_are_what_is_asked_about_only_the_file_itself_will_do() -> None:
    allowed = PathRule(b"/d", RuleState.ALLOW, "x")
    assert widest_scope(Question(b"/d/f", Operation.WRITE, RuleState.ALLOW, allowed)) == b"/d/f"


names = st.sampled_from([b"a", b"b.k", b"c.l.k", b".k"])
paths = st.lists(names, max_size=4).map(lambda parts: b"/" + b"/".join(parts))
states = st.sampled_from(RuleState)
rules = st.one_of(
    st.builds(PathRule, paths, states, st.just("x")),
    st.builds(NameRule, names, states, st.just("x"), paths),
    st.builds(SuffixRule, st.sampled_from([b".k", b".l.k"]), states, st.just("x"), paths),
)


@given(sources=st.lists(st.lists(rules, max_size=6), max_size=3), path=paths, operation=st.sampled_from(Operation))
def test_a_rule_settles_what_is_asked_up_to_the_widest_scope_and_no_higher(
    sources: list[list[Rule]], path: bytes, operation: Operation
) -> None:
    sets = [RuleSet(tuple(source)) for source in sources]
    verdict = RuleBook(*sets).at(path)
    question = Question(path, operation, verdict.state, verdict.rule)
    if not question.is_still_asked_under(verdict):
        return
    widest = widest_scope(question)
    state = least_state(question, Decision.ALLOW)
    scope = path
    while True:
        book = RuleBook(RuleSet((PathRule(scope, state, "answer"),)), *sets)
        is_within = widest == b"/" or scope == widest or scope.startswith(widest + b"/")
        assert question.is_still_asked_under(book.at(path)) is not is_within, scope
        if scope == b"/":
            return
        scope = scope.rpartition(b"/")[0] or b"/"
