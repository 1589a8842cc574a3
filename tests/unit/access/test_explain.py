"""Why a path is as it is."""

from __future__ import annotations

import stat

import pytest

from yolofs.access.explain import AccessOutcome, Explanation, explain, outcome
from yolofs.access.questions import Operation
from yolofs.rules import PathRule, RuleBook, RuleState, parse_rules

YES, NO, ASKS, ABSENT = AccessOutcome.ALLOWED, AccessOutcome.REFUSED, AccessOutcome.ASKS, AccessOutcome.ABSENT


def of(path: str, *sources: dict[str, str], kind: int = stat.S_IFREG) -> Explanation:
    sets = (
        parse_rules(
            [(key, state, line) for line, (key, state) in enumerate(keys.items(), 1)], b"/p", b"/h", file_name=f"f{n}"
        )
        for n, keys in enumerate(sources)
    )
    return explain(RuleBook(*sets), path.encode(), kind)


@pytest.mark.parametrize(
    ("path", "state", "source", "place"),
    [
        ("/p/a/b", "allow", "f0:1", "/p"),
        ("/p", "allow", "f0:1", "/p"),
        ("/p/x/.env/y", "hidden", "f0:2", "/p/x/.env"),
        ("/etc/x", "read-only", "f1:1", "/etc"),
        ("/p/q/r", "deny", "f1:2", "/p/q"),
    ],
)
def test_the_deciding_rule_is_told_with_its_place_and_where_it_is_written(
    path: str, state: str, source: str, place: str
) -> None:
    found = of(path, {".": "allow", "**/.env": "hidden"}, {"/etc": "read-only", "q": "deny"})
    assert found.rule is not None
    assert (found.state.value, found.rule.source, found.place) == (state, source, place.encode())


def test_a_path_that_no_rule_is_about_is_explained_without_one() -> None:
    found = of("/x", {"/y": "allow"})
    assert (found.state, found.rule, found.place, found.overridden) == (RuleState.ASK, None, b"/", ())


def test_overridden_rules_for_the_same_path_are_listed_in_the_order_of_their_levels() -> None:
    found = of("/p/a/x", {"a": "allow", "/p": "deny"}, {"a/**": "deny", "a/x": "ask"}, {"/p/a": "hidden"})
    assert [rule.source for rule in found.overridden] == []
    found = of("/p/a/y", {"a": "allow", "/p": "deny"}, {"a/**": "deny", "a/x": "ask"}, {"/p/a": "hidden"})
    assert [(rule.state.value, rule.source) for rule in found.overridden] == [("deny", "f1:1"), ("hidden", "f2:1")]
    assert [rule.source for rule in of("/x", {"**/x": "ask"}, {"**/x": "deny", "/x/**/x": "ask"}).overridden] == [
        "f1:1"
    ]


def test_a_hidden_directory_on_the_way_to_an_allowed_one_can_be_listed() -> None:
    found = of("/a", {"/a": "hidden", "/a/b": "allow"})
    assert (found.is_way, found.outcome(Operation.LIST), found.outcome(Operation.METADATA)) == (True, YES, NO)
    assert of("/a/c", {"/a": "hidden", "/a/b": "allow"}).outcome(Operation.LIST) is ABSENT


@pytest.mark.parametrize(
    ("state", "listing", "read", "change", "create"),
    [
        (RuleState.ALLOW, YES, YES, YES, YES),
        (RuleState.READ_ONLY, YES, YES, NO, NO),
        (RuleState.WRITE_ASK, YES, YES, ASKS, ASKS),
        (RuleState.ASK, YES, ASKS, ASKS, ASKS),
        (RuleState.DENY, NO, NO, NO, NO),
        (RuleState.HIDDEN, ABSENT, ABSENT, ABSENT, NO),
    ],
)
def test_each_state_has_its_outcome_for_each_operation(
    state: RuleState, listing: AccessOutcome, read: AccessOutcome, change: AccessOutcome, create: AccessOutcome
) -> None:
    expected = dict.fromkeys(Operation, change)
    expected |= {Operation.LIST: listing, Operation.CREATE: create, Operation.READ: read, Operation.EXECUTE: read}
    assert {operation: outcome(state, operation) for operation in Operation} == expected


def test_a_pattern_opens_no_way_into_what_is_hidden() -> None:
    found = of("/a/d/x.md", {"/a": "hidden", "**/*.md": "allow"})
    assert found.state is RuleState.ALLOW
    assert found.closed is not None
    assert found.closed.source == "f0:1"
    assert {found.outcome(operation) for operation in Operation} == {ABSENT}
    found = of("/a/d/x.md", {"/a": "hidden", "**/*.md": "allow", "/a/d/y": "allow"})
    assert found.closed is None
    assert found.outcome(Operation.READ) is YES


@pytest.mark.parametrize(
    ("kind", "kept_by"), [(stat.S_IFDIR, ["/p/a/b"]), (stat.S_IFLNK, ["/p/a/b"]), (stat.S_IFREG, [])]
)
def test_explain_tells_the_rule_that_keeps_a_directory_from_going_away(kind: int, kept_by: list[str]) -> None:
    found = of("/p/a", {".": "allow", "a/b": "read-only", "a/c": "allow"}, kind=kind)
    assert [rule.path.decode() for rule in (found.kept_by,) if isinstance(rule, PathRule)] == kept_by
    expected = NO if kept_by else YES
    assert (found.outcome(Operation.RENAME), found.outcome(Operation.DELETE)) == (expected, expected)
    assert found.outcome(Operation.METADATA) is YES
    assert of("/p/c", {".": "allow", "a/b": "read-only"}, kind=kind).kept_by is None


@pytest.mark.parametrize(
    ("names", "read", "change"),
    [
        ([], YES, YES),
        ([b"/p/open/f"], YES, YES),
        ([b"/p/fixed/f"], YES, NO),
        ([b"/p/open/f", b"/p/asked/f"], ASKS, ASKS),
        ([b"/p/asked/f", b"/p/closed/f"], NO, NO),
        ([b"/p/hid/f"], NO, NO),
    ],
)
def test_a_change_is_judged_by_all_names_of_a_file_and_reading_by_those_that_are_staged(
    names: list[bytes], read: AccessOutcome, change: AccessOutcome
) -> None:
    keys = {".": "allow", "fixed": "read-only", "asked": "ask", "closed": "deny", "hid": "hidden"}
    book = RuleBook(parse_rules([(key, state, None) for key, state in keys.items()], b"/p", b"/h"))
    changing = dict.fromkeys((Operation.WRITE, Operation.METADATA, Operation.LINK), change)
    reading = dict.fromkeys((Operation.READ, Operation.EXECUTE), read)
    staged, found = explain(book, b"/p/f", staged_names=names), explain(book, b"/p/f", names=names)
    expected = dict.fromkeys(Operation, YES) | changing
    assert {operation: found.outcome(operation) for operation in Operation} == expected
    assert {operation: staged.outcome(operation) for operation in Operation} == expected | reading
    for explained, is_staged in ((staged, True), (found, False)):
        assert [(other.path, other.is_staged) for other in explained.others] == [
            (name, is_staged) for name in names if b"open" not in name
        ]


def test_names_that_were_not_found_are_asked_about_unless_a_rule_is_about_the_very_file() -> None:
    for key, change in ((".", ASKS), ("f", YES)):
        rules = parse_rules([(key, "allow", 1)], b"/p", b"/h")
        found = explain(RuleBook(rules), b"/p/f", more_names_of=b"/p/f")
        assert found.outcome(Operation.WRITE) is change
        assert found.outcome(Operation.READ) is YES


def test_a_renamed_file_whose_names_were_not_found_is_judged_where_base_has_it() -> None:
    for key, change in (("f", ASKS), ("home", YES)):
        rules = parse_rules([(".", "allow", 1), (key, "allow", 2)], b"/p", b"/h")
        found = explain(RuleBook(rules), b"/p/f", more_names_of=b"/p/home")
        assert (found.outcome(Operation.WRITE), found.has_more) == (change, change is ASKS)
