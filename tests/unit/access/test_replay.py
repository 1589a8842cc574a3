"""What recorded accesses come to by other rules, and which rules are suggested for them."""

from __future__ import annotations

from collections import Counter

import pytest

from yolofs.access.explain import AccessOutcome, outcome
from yolofs.access.questions import Operation
from yolofs.access.replay import RecordedAccess, Tally, asked, suggest, tally, with_rules
from yolofs.rules import RuleBook, RuleState, parse_rules

READ, WRITE = Operation.READ, Operation.WRITE


def book(**keys: str) -> RuleBook:
    return RuleBook(parse_rules([(key, state, None) for key, state in keys.items()], b"/h/p", b"/h"))


def access(path: str, operation: Operation = READ, *, answer: bool | None = True, count: int = 1) -> RecordedAccess:
    return RecordedAccess(path.encode(), operation, count, answer)


def suggested(found: RuleBook, accesses: list[RecordedAccess]) -> list[tuple[str, str, int, int, int]]:
    return [
        (one.rule.path.decode(), one.rule.state.value, one.asks, one.paths, one.answered)
        for one in suggest(found, accesses, [b"/h/p", b"/h"])
    ]


RULES = book(**{".": "allow", "~": "ask", "~/.ssh": "hidden", "/etc": "read-only"})


def test_accesses_are_counted_by_what_becomes_of_them_now() -> None:
    accesses = [access("/h/p/x", WRITE, count=3), access("/h/a", count=2), access("/h/.ssh/k"), access("/etc/x", WRITE)]
    assert tally(RULES, accesses) == Tally(allowed=3, asks=2, refused=2)
    assert asked(RULES, accesses) == [accesses[1]]


def test_three_paths_in_a_directory_make_a_rule_for_the_nearest_one_that_holds_them() -> None:
    accesses = [access(f"/h/doc/a/{n}", count=2) for n in range(2)] + [access("/h/doc/b/x")]
    assert suggested(RULES, accesses) == [("/h/doc", "write-ask", 5, 3, 5)]


def test_two_paths_in_a_directory_make_rules_of_their_own() -> None:
    accesses = [access("/h/doc/a", count=2), access("/h/doc/b")]
    assert suggested(RULES, accesses) == [("/h/doc/a", "write-ask", 2, 1, 2), ("/h/doc/b", "write-ask", 1, 1, 1)]


def test_home_the_project_and_what_is_above_are_never_suggested() -> None:
    accesses = [access(f"/h/{n}") for n in range(5)]
    assert {path for path, *_ in suggested(RULES, accesses)} == {f"/h/{n}" for n in range(5)}


def test_allowed_changes_make_allow_and_denials_make_deny() -> None:
    accesses = [access(f"/h/a/{n}", WRITE) for n in range(3)] + [access(f"/h/b/{n}", answer=False) for n in range(4)]
    assert suggested(RULES, accesses) == [("/h/b", "deny", 4, 4, 4), ("/h/a", "allow", 3, 3, 3)]


def test_a_denied_path_stays_denied_in_a_directory_for_which_a_rule_is_suggested() -> None:
    accesses = [*(access(f"/h/doc/long-name-{n}") for n in range(4)), access("/h/doc/x", answer=False)]
    assert suggested(RULES, accesses) == [("/h/doc/x", "deny", 1, 1, 1), ("/h/doc", "write-ask", 4, 4, 4)]


def test_a_rule_that_contradicts_an_answer_is_not_suggested() -> None:
    accesses = [access(f"/h/doc/{n}") for n in range(3)] + [access("/h/doc/0", answer=False)]
    assert suggested(RULES, accesses) == [("/h/doc/1", "write-ask", 1, 1, 1), ("/h/doc/2", "write-ask", 1, 1, 1)]
    mixed = [access("/h/x", WRITE), access("/h/x", WRITE, answer=False)]
    assert suggested(RULES, mixed) == []


def test_a_write_that_was_denied_does_not_stand_against_reading() -> None:
    accesses = [*(access(f"/h/doc/{n}") for n in range(3)), access("/h/doc/1", WRITE, answer=None)]
    assert suggested(RULES, accesses) == [("/h/doc", "write-ask", 3, 3, 3)]


def test_accesses_that_nobody_answered_count_but_suggest_no_rule_by_themselves() -> None:
    assert suggested(RULES, [access(f"/h/a/{n}", answer=None) for n in range(9)]) == []
    accesses = [access("/h/a/0"), *(access(f"/h/a/{n}", answer=None) for n in range(1, 4))]
    assert suggested(RULES, accesses) == [("/h/a", "write-ask", 4, 4, 1)]


def test_paths_that_a_nearer_rule_decides_do_not_count_for_a_suggestion() -> None:
    rules = book(**{"~": "ask", "~/d/secret": "ask", "~/d/**/*.key": "hidden"})
    accesses = [*(access(f"/h/d/{n}") for n in range(3)), access("/h/d/secret/x"), access("/h/d/y.key", answer=False)]
    assert suggested(rules, accesses) == [("/h/d", "write-ask", 3, 3, 3), ("/h/d/secret/x", "write-ask", 1, 1, 1)]


def test_with_the_suggested_rules_no_recorded_access_is_asked() -> None:
    accesses = [access(f"/h/{top}/{n}", WRITE if n % 2 else READ) for top in "abc" for n in range(5)]
    rules = [one.rule for one in suggest(RULES, accesses, [b"/h"])]
    assert len(rules) == 3
    assert tally(with_rules(RULES, rules), accesses) == Tally(allowed=15, asks=0, refused=0)


def test_no_rule_is_suggested_that_would_refuse_what_rules_allowed() -> None:
    denied = [access(f"/h/doc/{n}", answer=False) for n in range(3)]
    free = RecordedAccess(b"/h/doc/open", READ, 1, None, was_free=True)
    assert suggested(RULES, denied) == [("/h/doc", "deny", 3, 3, 3)]
    assert {path for path, *_ in suggested(RULES, [*denied, free])} == {"/h/doc/0", "/h/doc/1", "/h/doc/2"}


def test_thousands_of_answers_of_both_kinds_are_each_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter[Operation]()

    def counted(state: RuleState, operation: Operation) -> AccessOutcome:
        looks[operation] += 1
        return outcome(state, operation)

    monkeypatch.setattr("yolofs.access.replay.outcome", counted)
    accesses = [access(f"/h/{n % 7}/{n}", answer=bool(n // 7 % 2)) for n in range(280)]
    accesses += [RecordedAccess(f"/etc/{n}".encode(), READ, 1, None, was_free=True) for n in range(1000)]
    found = suggest(RULES, accesses, [b"/h"])
    assert [one.rule.state for one in found] == [RuleState.DENY] * 140 + [RuleState.WRITE_ASK] * 7
    assert looks[READ] < 20 * len(accesses)
