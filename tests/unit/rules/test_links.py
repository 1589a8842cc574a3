"""Where rules are in force whose paths lead through symbolic links."""

from __future__ import annotations

import pytest

from yolofs.rules import Rule, RuleSet, parse_rules
from yolofs.rules.links import Followed, follow_links

LINKS = {
    b"/home": b"/var/home",
    b"/var/home/u/.ssh": b"/data/ssh",
    b"/p/in": b"/p/src",
    b"/p/out": b"/etc",
    b"/p/self": b"/p",
    b"/srv/p": b"/p",
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
    assert added(followed, 1) == [("/var/home/u/.ssh", "hidden"), ("/data/ssh", "hidden")]
    assert all(rule.is_whole and rule.source == ".yolofs.toml:1" for rule in followed.rules.rules)


def test_without_links_nothing_is_added() -> None:
    followed = follow(**{"src": "allow", "/": "ask", "**/x": "deny", "/etc/**/x": "deny"})
    assert len(followed.rules.rules) == 4
    assert followed.notes == ()


def test_confined_patterns_follow_too() -> None:
    assert added(follow(**{"~/.ssh/**/x": "deny"}), 1) == [("/var/home/u/.ssh", "deny"), ("/data/ssh", "deny")]


def test_what_is_written_comes_before_what_a_link_adds() -> None:
    followed = follow(**{"/data/ssh": "allow", "~/.ssh": "hidden"})
    assert added(followed, 2) == [("/var/home/u/.ssh", "hidden")]


def test_of_two_that_links_add_the_stricter_counts() -> None:
    for first, second in (("deny", "allow"), ("allow", "deny")):
        followed = follow(**{"/srv/p/in": first, "in": second})
        assert ("/p/src", "deny") in added(followed, 2)
        assert ("/p/src", "allow") not in added(followed, 2)


def test_links_out_of_the_project_take_only_strict_rules_along() -> None:
    for state in ("allow", "read-only", "write-ask", "ask"):
        followed = follow(out=state)
        assert added(followed, 1) == []
        assert followed.notes == (
            f".yolofs.toml:1: /p/out leads out of the project by a link, to /etc: {state} is not in force there",
        )
    for state in ("deny", "hidden"):
        assert added(follow(out=state), 1) == [("/etc", state)]


def test_links_inside_the_project_and_into_it_take_all_along() -> None:
    assert added(follow(**{"in": "allow"}), 1) == [("/p/src", "allow")]
    assert added(follow(**{"/srv/p": "allow"}), 1) == [("/p", "allow")]
    assert follow_links(RuleSet(), b"/p", LINKS.get) == Followed(RuleSet(), ())


@pytest.mark.parametrize(
    ("key", "places"),
    [
        ("data/secret", ["/p/mid/secret", "/p/real/secret"]),
        ("key", ["/p/m1", "/p/real/secret"]),
        ("/srv/x/config", ["/p/hop", "/p/dot/c.toml"]),
        ("up", ["/p/src/x"]),
        ("round/x", []),
    ],
)
def test_each_link_on_the_way_is_guarded(key: str, places: list[str]) -> None:
    """Whoever could put another link in its place would have the rule be about something else."""
    for state in ("deny", "read-only"):
        assert added(follow(**{key: state}), 1) == [(place, state) for place in places]


def test_a_way_out_of_the_project_is_told_once() -> None:
    followed = follow(away="read-only")
    assert added(followed, 1) == []
    assert followed.notes == (
        ".yolofs.toml:1: /p/away leads out of the project by a link, to /o/two: read-only is not in force there",
    )
    assert added(follow(away="deny"), 1) == [("/o/one", "deny"), ("/o/two", "deny")]
