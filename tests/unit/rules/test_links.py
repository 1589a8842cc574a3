"""Where rules are in force whose paths lead through symbolic links."""

from __future__ import annotations

from yolofs.rules import Rule, RuleSet, parse_rules
from yolofs.rules.links import Followed, follow_links

LINKS = {
    b"/home": b"/var/home",
    b"/var/home/u/.ssh": b"/data/ssh",
    b"/p/in": b"/p/src",
    b"/p/out": b"/etc",
    b"/p/self": b"/p",
    b"/srv/p": b"/p",
}


def resolve(path: bytes) -> bytes:
    """Follow :data:`LINKS`."""
    done = b""
    for name in path.split(b"/")[1:] if path != b"/" else []:
        done = LINKS.get(done + b"/" + name, done + b"/" + name)
    return done or b"/"


def follow(**keys: str) -> Followed:
    rules = parse_rules([(key, state, line) for line, (key, state) in enumerate(keys.items(), 1)], b"/p", b"/home/u")
    return follow_links(rules, b"/p", resolve)


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
    assert follow_links(RuleSet(), b"/p", resolve) == Followed(RuleSet(), ())
