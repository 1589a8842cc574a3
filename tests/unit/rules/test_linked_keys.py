"""Where rules are in force whose paths lead through symbolic links."""

from __future__ import annotations

import pytest

from yolofs.rules import Rule, RuleSet, RuleState, parse_rules
from yolofs.rules.linked_keys import Followed, follow_links, waypoints

LINKS = {
    b"/home": b"/var/home",
    b"/var/home/u/.ssh": b"/data/ssh",
    b"/p/in": b"/p/src",
    b"/p/out": b"/etc",
    b"/p/self": b"/p",
    b"/srv/p": b"/p",
    b"/srv/bin": b"../p/out",
    b"/srv/round": b"../p/round",
    b"/p/data": b"mid",
    b"/p/mid": b"./real//",
    b"/p/key": b"../p/m1",
    b"/p/m1": b"real/secret",
    b"/srv/x/config": b"../../p/hop",
    b"/p/hop": b"dot/c.toml",
    b"/p/up": b"mid/../src/x",
    b"/p/round": b"about",
    b"/p/about": b"round",
    b"/p/away": b"/o/one",
    b"/o/one": b"two",
}


def follow(**keys: str) -> Followed:
    rules = parse_rules([(key, state, line) for line, (key, state) in enumerate(keys.items(), 1)], b"/p", b"/home/u")
    return follow_links(rules, b"/p", LINKS.get)


def added(followed: Followed, count: int) -> list[tuple[str, str]]:
    """Return key and state of what is there beside ``count`` written rules."""
    return [(where(rule), rule.state.value) for rule in followed.rules.rules[count:]]


def where(rule: Rule) -> str:
    return getattr(rule, "path", getattr(rule, "scope", b"")).decode()


def test_a_rule_is_in_force_at_the_link_and_where_it_leads() -> None:
    followed = follow(**{"~/.ssh/**": "hidden"})
    assert added(followed, 1) == [("/data/ssh", "hidden")]
    assert all(rule.is_whole and rule.source == ".yolofs.toml:1" for rule in followed.rules.rules)


def test_without_links_nothing_is_added() -> None:
    followed = follow(**{"src": "allow", "/": "ask", "**/x": "deny", "/etc/**/x": "deny"})
    assert len(followed.rules.rules) == 4
    assert followed.notes == ()


def test_patterns_below_a_directory_follow_links() -> None:
    assert added(follow(**{"~/.ssh/**/x": "deny"}), 1) == [("/data/ssh", "deny")]


def test_what_is_written_comes_before_what_a_link_adds() -> None:
    assert added(follow(**{"/data/ssh": "allow", "~/.ssh": "hidden"}), 2) == []


def test_of_two_rules_that_links_add_the_stricter_counts() -> None:
    for first, second in (("deny", "allow"), ("allow", "deny")):
        followed = follow(**{"/srv/p/in": first, "in": second})
        assert ("/p/src", "deny") in added(followed, 2)
        assert ("/p/src", "allow") not in added(followed, 2)


def test_links_out_of_the_project_take_only_strict_rules_along() -> None:
    for state in ("allow", "read-only", "write-ask", "ask"):
        followed = follow(out=state)
        assert added(followed, 1) == []
        where_to = "leads out of the project by the link /p/out, to /etc"
        assert followed.notes == (f".yolofs.toml:1: /p/out {where_to}: {state} is not in force there",)
    for state in ("deny", "hidden"):
        assert added(follow(out=state), 1) == [("/etc", state)]


def test_links_inside_the_project_and_into_it_take_all_along() -> None:
    assert added(follow(**{"in": "allow"}), 1) == [("/p/src", "allow")]
    assert added(follow(**{"/srv/p": "allow"}), 1) == [("/p", "allow")]
    assert follow_links(RuleSet(), b"/p", LINKS.get) == Followed(RuleSet(), ())


@pytest.mark.parametrize(
    ("key", "place", "waypoints"),
    [
        ("src", "/p/src", ["/p/src"]),
        ("data/secret", "/p/real/secret", ["/p/data@", "/p/mid@", "/p/real/secret", "/p/data/secret"]),
        ("key", "/p/real/secret", ["/p/key", "/p/m1@", "/p/real/secret", "/p"]),
        ("/srv/x/config", "/p/dot/c.toml", ["/srv/x/config", "/p/hop@", "/p/dot/c.toml", "/srv/x", "/srv"]),
        ("up", "/p/src/x", ["/p/up", "/p/mid@", "/p/src/x", "/p/real"]),
        ("round/x", "/p/round/x", ["/p/round@", "/p/about@", "/p/round/x"]),
        ("data/**/x", "/p/real", ["/p/data", "/p/mid@", "/p/real"]),
        ("away", "/o/two", ["/p/away", "/o/one@", "/o/two"]),
    ],
)
@pytest.mark.parametrize("state", [state.value for state in RuleState])
def test_what_a_rules_path_goes_through_is_noted_whatever_its_state(
    state: str, key: str, place: str, waypoints: list[str]
) -> None:
    """Those with an @ are links that must not go away; a link at the rule's own path is what the
    rule says it is.
    """
    rules = follow(**{key: state}).rules
    (written, *others), found = rules.rules, rules.waypoints
    assert [where(rule) for rule in others] in ([], [place])
    assert [one.path.decode() + "@" * one.is_link for one in found] == waypoints
    assert {one.rule for one in found} == {written}


def test_a_way_out_of_the_project_is_told_once() -> None:
    followed = follow(away="read-only")
    assert added(followed, 1) == []
    where_to = "leads out of the project by the link /p/away, to /o/two"
    assert followed.notes == (f".yolofs.toml:1: /p/away {where_to}: read-only is not in force there",)
    assert added(follow(away="deny"), 1) == [("/o/two", "deny")]


@pytest.mark.parametrize("key", ["/srv/bin", "/srv/p/out", "/srv/bin/x", "/srv/bin/**/x"])
def test_a_rule_from_elsewhere_does_not_leave_the_project_again(key: str) -> None:
    for state in ("allow", "read-only", "write-ask", "ask"):
        followed = follow(**{key: state})
        assert added(followed, 1) == []
        (note,) = followed.notes
        assert "leads out of the project by the link /p/out, to /etc" in note
    assert [one for _, one in added(follow(**{key: "deny"}), 1)] == ["deny"]


def test_links_that_lead_round_in_a_circle_lead_nowhere() -> None:
    assert follow(**{"/srv/round": "allow"}).notes == ()
    assert added(follow(**{"/srv/round": "allow"}), 1) == []


def test_waypoints_of_rules_that_have_travelled_are_the_same() -> None:
    for keys in ({"key": "allow", "out": "deny"}, {"/srv/p/in": "ask", "in": "allow", "data/**/x": "hidden"}):
        rules = follow(**keys).rules
        travelled = waypoints(RuleSet(rules.rules), LINKS.get)
        assert {one[::2] for one in travelled} == {one[::2] for one in rules.waypoints}
