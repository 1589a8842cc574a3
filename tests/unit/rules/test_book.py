"""Which rule decides over a path, written out case by case."""

from __future__ import annotations

import contextlib
import threading

import pytest

from tests.support.core_in_python import core_in_python
from yolofs.rules import NameRule, PathRule, RuleBook, RuleIndex, RuleSet, RuleState, Waypoint, parse_rules

HOME, PROJECT = b"/home/u", b"/home/u/p"


def rules(source: str = "f", **keys: str) -> RuleSet:
    """Return the rules of a source; use ``**{…}`` for the keys."""
    return parse_rules([(key, state, None) for key, state in keys.items()], PROJECT, HOME, file_name=source)


def book(*sources: dict[str, str]) -> RuleBook:
    return RuleBook(*(rules(str(number), **source) for number, source in enumerate(sources)))


def state(found: RuleBook, path: str) -> str:
    return found.at(path.encode()).state.value


def decided(found: RuleBook, path: str) -> tuple[str, str]:
    """Return the state over a path, and which source the deciding rule is from."""
    rule = found.at(path.encode()).rule
    assert rule is not None
    return rule.state.value, rule.source


def test_without_rules_everything_is_asked() -> None:
    verdict = book().at(b"/etc/passwd")
    assert (verdict.state, verdict.rule, verdict.is_way) == (RuleState.ASK, None, False)
    assert book().at(b"/").state is RuleState.ASK


def test_the_nearest_rule_decides_in_both_directions() -> None:
    found = book({"/": "read-only", "/a": "deny", "/a/b": "allow", "/a/b/c": "deny"})
    assert [state(found, path) for path in ("/", "/x", "/a", "/a/x", "/a/b", "/a/b/x/y", "/a/b/c", "/a/b/c/d")] == (
        ["read-only", "read-only", "deny", "deny", "allow", "allow", "deny", "deny"]
    )


@pytest.mark.parametrize("state_", ["hidden", "deny"])
def test_an_ending_may_have_several_dots_or_end_with_one(state_: str) -> None:
    found = book({"/": "allow", "**/*.tar.gz": state_, "**/*.x.": state_, "**/*.old~": state_})
    fitting = ("a.tar.gz", ".tar.gz", "a.b.tar.gz", "a.x.", ".x.", "a.old~")
    others = ("tar.gz", "a.gz", "a.tar", "a.tar.gz.b", "a.x", "x.", "a.", "a", ".", "~", "old~", "a.old", "gz")
    for name in fitting + others:
        expected = state_ if name in fitting else "allow"
        assert (name, state(found, f"/d/{name}")) == (name, expected)
        assert found.shows(found.at(b"/d"), name.encode()) is (expected != "hidden")


def test_names_that_begin_alike_are_not_below() -> None:
    assert state(book({"/a": "allow"}), "/ab") == "ask"


def test_a_pattern_is_nearer_than_any_directory_and_farther_than_the_path() -> None:
    found = book({".": "allow", "a/x.pem": "read-only", "**/*.pem": "deny", "**/.env": "hidden"})
    assert state(found, "/home/u/p/a/x.pem") == "read-only"
    assert state(found, "/home/u/p/a/y.pem") == "deny"
    assert state(found, "/home/u/p/.env") == "hidden"
    assert state(found, "/home/u/p/.env/inside") == "hidden"
    assert state(found, "/home/u/p/x.env") == "allow"
    assert state(found, "/.env") == "hidden"


def test_a_rule_for_a_directory_inside_what_a_pattern_names_opens_it() -> None:
    found = book({"**/.env": "hidden", "/a/.env/public": "allow"})
    assert state(found, "/a/.env/public/x") == "allow"
    assert found.at(b"/a/.env").is_way


def test_of_patterns_the_name_comes_first_and_then_the_longest_ending() -> None:
    found = book({"**/*.gz": "ask", "**/*.tar.gz": "deny", "**/a.tar.gz": "allow"})
    assert [state(found, path) for path in ("/a.tar.gz", "/b.tar.gz", "/b.x.gz", "/tar.gz")] == [
        "allow",
        "deny",
        "ask",
        "ask",
    ]


def test_a_pattern_for_an_ending_fits_a_name_that_is_nothing_else() -> None:
    """As in .gitignore: what protects keys had better not leave one out."""
    found = book({"**/*.pem": "deny", "/": "allow"})
    assert [state(found, path) for path in ("/.pem", "/a.pem", "/.a.pem", "/pem", "/..pem")] == [
        "deny",
        "deny",
        "deny",
        "allow",
        "deny",
    ]


def test_the_pattern_of_the_deepest_directory_comes_first() -> None:
    found = book({"**/x": "deny", "/a/**/*.x": "deny", "/a/**/x": "ask", "/a/b/**/*.c": "read-only", "**/y.c": "allow"})
    assert state(found, "/x") == "deny"
    assert state(found, "/a/x") == "ask"
    assert state(found, "/a/b/c/x") == "ask"
    assert state(found, "/a/b/y.c") == "read-only"
    assert state(found, "/a/y.c") == "allow"


def test_a_directorys_patterns_do_not_name_the_directory_itself() -> None:
    assert state(book({"/a/x/**/x": "deny"}), "/a/x") == "ask"
    assert state(book({"/a/x/**/x": "deny"}), "/a/x/x") == "deny"


def test_on_equal_paths_the_first_source_counts_and_only_there() -> None:
    found = book({"/a": "allow", "**/x": "ask"}, {"/a": "deny", "/a/b": "deny", "**/x": "deny", "**/*.c": "hidden"})
    assert decided(found, "/a/c") == ("allow", "0")
    assert decided(found, "/a/b") == ("deny", "1")
    assert decided(found, "/a/x") == ("ask", "0")
    assert decided(found, "/a/b.c") == ("hidden", "1")


def test_a_whole_keeps_patterns_of_its_own_and_of_farther_sources_out() -> None:
    found = book({"**/*.key": "deny"}, {"/usr/**": "read-only", "**/*.pem": "hidden"}, {"**/.env": "hidden"})
    assert state(found, "/usr/a.pem") == "read-only"
    assert state(found, "/usr/x/.env") == "read-only"
    assert state(found, "/usr/x/a.key") == "deny"
    assert state(found, "/etc/a.pem") == "hidden"


def test_a_rule_for_a_whole_directory_leaves_nearer_rules_in_force() -> None:
    found = book(
        {"/tmp/**": "allow", "**/.env": "hidden", "/tmp/**/*.c": "ask", "/tmp/p": "allow", "/tmp/p/q/**": "deny"}
    )
    assert state(found, "/tmp/.env") == "allow"
    assert state(found, "/tmp/x/a.c") == "ask"
    assert state(found, "/tmp/p/.env") == "hidden"
    assert state(found, "/tmp/p/x/.env") == "hidden"
    assert state(found, "/tmp/p/q/.env") == "deny"


def test_a_whole_pattern_decides_over_endings_inside_it() -> None:
    found = book({"/p": "allow", "/p/**/node_modules/**": "allow", "**/*.pem": "deny", "/p/node_modules/own": "allow"})
    assert state(found, "/p/a.pem") == "deny"
    assert state(found, "/p/x/node_modules/y/a.pem") == "allow"
    assert state(found, "/node_modules/a.pem") == "deny"
    assert state(found, "/p/node_modules/own/a.pem") == "deny"


def test_a_hidden_directory_with_something_open_below_is_a_way() -> None:
    found = book({"/h": "hidden", "/h/a/b": "deny", "/h/c": "hidden", "/h/**/x": "allow"})
    assert found.at(b"/h").is_way
    assert found.at(b"/h/a").is_way
    assert not found.at(b"/h/a/b").is_way
    assert not found.at(b"/h/c").is_way
    assert not found.at(b"/h/z").is_way


def test_an_overridden_rule_opens_no_way() -> None:
    assert not book({"/h/a": "hidden", "/h": "hidden"}, {"/h/a": "allow"}).at(b"/h").is_way


def test_a_verdict_below_follows_from_the_verdict_of_the_directory() -> None:
    found = book({"/a": "allow", "/a/b": "deny", "**/x": "hidden"})
    a = found.below(found.at(b"/"), b"a")
    assert (a.state, found.below(a, b"b").state, found.below(a, b"x").state) == (
        RuleState.ALLOW,
        RuleState.DENY,
        RuleState.HIDDEN,
    )
    other = found.below(a, b"other")
    assert other.state is RuleState.ALLOW
    assert found.below(other, b"more") is other, "below a path without rules nothing new is made"
    assert found.below(a, b"another") is other


def test_stricter_below_tells_a_rule_that_a_rename_would_leave_behind() -> None:
    found = book(
        {"/a": "allow", "/a/b/c": "read-only", "/z": "deny", "/z/y": "deny", "/s": "allow", "/s/t/**/x": "deny"}
    )
    stricter = found.at(b"/a").stricter_below()
    assert stricter is not None
    assert stricter.state is RuleState.READ_ONLY
    assert found.at(b"/a/b").stricter_below() is stricter
    assert found.at(b"/a/b/c").stricter_below() is None
    assert found.at(b"/z").stricter_below() is None
    assert found.at(b"/s").stricter_below() is not None
    assert found.at(b"/s/t").stricter_below() is None, "the patterns of a directory that moves itself are pattern_lost"
    assert found.at(b"/").stricter_below() is not None
    assert found.at(b"/other").stricter_below() is None


@pytest.mark.parametrize("one", RuleState)
def test_waypoints_keep_links_and_what_they_are_in_and_settle_nothing(one: RuleState) -> None:
    rule = PathRule(b"/a", one, "x")
    waypoints = (Waypoint(b"/h/links/mid", rule, is_link=True), Waypoint(b"/h/end", rule, is_link=False))
    hidden = PathRule(b"/h", RuleState.HIDDEN, "y")
    found = RuleBook(RuleSet((hidden,), waypoints=waypoints))
    for path in (b"/h", b"/h/links", b"/h/links/mid", b"/h/end"):
        verdict = found.at(path)
        assert (verdict.rule, verdict.is_way, verdict.seems_absent) == (hidden, False, True)
        assert verdict.led_by_new_link() is rule
    assert [bool(found.at(path).stricter_below()) for path in (b"/h", b"/h/links", b"/h/links/mid", b"/h/end")] == [
        True,
        True,
        False,
        False,
    ]
    assert found.at(b"/h/links/mid").astray_by_link() is rule
    assert found.at(b"/h/end").astray_by_link() is None
    assert [bool(found.at(path).led_by_link_inside()) for path in (b"/", b"/h", b"/h/links", b"/h/end")] == [
        True,
        True,
        True,
        False,
    ]
    assert found.at(b"/h/other").led_by_new_link() is None


def test_a_less_strict_rule_below_does_not_keep_a_directory_from_moving() -> None:
    assert book({"/a": "ask", "/a/b": "allow"}).at(b"/a").stricter_below() is None


def test_where_patterns_do_not_count_a_place_below_where_they_do_is_stricter() -> None:
    found = book({"/tmp/**": "allow", "/tmp/a/p": "allow", "**/.env": "hidden"})
    assert found.at(b"/tmp/a").stricter_below() is not None
    assert found.at(b"/tmp/b").stricter_below() is None


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("/p/d", "/p/e", None),
        ("/p/d", "/tmp/d", ".env"),  # /tmp is open as a whole
        ("/tmp/d", "/p/d", None),
        ("/p/d", "/q/d", "x"),  # the pattern is confined to /p
        ("/q/d", "/p/d", ".env"),  # below /p a node_modules in it would be open
        ("/tmp/d", "/q/d", None),
        ("/p/d", "/p/node_modules", ".env"),
        ("/p/d", "/p/s/d", ".env"),  # another pattern there opens what this one guards
        ("/z/d", "/q/d", None),  # less strict than what it loses
        ("/q/d", "/y/d", None),
    ],
)
def test_pattern_lost_tells_a_pattern_that_would_not_guard_any_more(old: str, new: str, lost: str | None) -> None:
    found = book(
        {
            "/": "allow",
            "/tmp/**": "allow",
            "/p/**/x": "deny",
            "**/.env": "hidden",
            "/p/**/node_modules/**": "allow",
            "/p/s/**/*.env": "allow",
            "/z/**/x": "allow",
            "/y/**/x": "hidden",
        }
    )
    rule = found.at(old.encode()).pattern_lost(found.at(new.encode()))
    assert rule is None or isinstance(rule, NameRule)
    assert (rule.name.decode() if rule is not None else None) == lost


def test_a_directory_that_carries_its_own_patterns_loses_them_with_its_name() -> None:
    found = book({"/a": "allow", "/a/d/**/x": "deny"})
    assert found.at(b"/a/d").pattern_lost(found.at(b"/a/e")) is not None


def test_every_change_counts_the_version_up() -> None:
    found = book({"/a": "allow"})
    before = found.version
    found.replace(rules(**{"/a": "deny"}))
    assert found.version == before + 1
    assert state(found, "/a") == "deny"
    found.touch()
    assert found.version == before + 2


def mostly(*sources: dict[str, str], exempt: frozenset[bytes] = frozenset()) -> dict[str, list[str]]:
    sets = [rules(str(number), **source) for number, source in enumerate(sources)]
    sets[-1] = RuleSet(sets[-1].rules, exempt)
    found = RuleBook(*sets).mostly(RuleState.READ_ONLY)
    return {path.decode(): sorted(below.decode() for below in exceptions) for path, exceptions in found.items()}


@core_in_python
def test_what_mostly_has_a_state_is_found_once_for_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run and the survey for it ask at the same time, and it takes long."""
    together = threading.Barrier(2)
    found: list[RuleState] = []
    find = RuleIndex._find_mostly

    def find_slowly(index: RuleIndex, state: RuleState) -> dict[bytes, list[bytes]]:
        found.append(state)
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.3)
        return find(index, state)

    monkeypatch.setattr(RuleIndex, "_find_mostly", find_slowly)
    read_only = book({"/a": "read-only"})
    threads = [threading.Thread(target=read_only.mostly, args=(RuleState.READ_ONLY,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [RuleState.READ_ONLY]
    assert read_only.mostly(RuleState.READ_ONLY) == {b"/a": []}


def test_mostly_are_the_highest_paths_from_which_on_one_state_holds() -> None:
    assert mostly({"/": "allow", "/a": "read-only", "/b/c": "read-only"}) == {"/a": [], "/b/c": []}
    assert mostly({"/": "read-only", "/a": "read-only"}) == {"/": []}
    assert mostly({"/a": "allow"}) == {}


@pytest.mark.parametrize("below", ["/a/b", "/a/b/c/d", "/a/b/**"])
def test_a_rule_for_a_path_below_with_another_state_is_an_exception(below: str) -> None:
    found = mostly({"/a": "read-only", below: "deny"})
    assert found["/a"] == [below.removesuffix("/**")]
    assert mostly({"/a": "read-only", below: "read-only"})["/a"] == []


@pytest.mark.parametrize("below", ["/a/**/x", "**/x", "**/*.x"])
def test_a_pattern_takes_a_path_out_of_what_is_mostly_in_a_state(below: str) -> None:
    assert mostly({"/a": "read-only", below: "deny"}) == {}
    assert mostly({"/a": "read-only", below: "read-only"})["/a"] == []


def test_a_pattern_from_a_path_below_on_makes_that_path_an_exception() -> None:
    assert mostly({"/a": "read-only", "/a/b/**/*.x": "deny"}) == {"/a": ["/a/b"]}


def test_what_lies_beside_and_below_exceptions_may_be_mostly_in_a_state_too() -> None:
    assert mostly({"/a": "read-only", "/a/b": "deny", "/a/b/e": "read-only", "/a/c/d": "read-only"}) == {
        "/a": ["/a/b"],
        "/a/b/e": [],
        "/a/c": [],
    }
    assert mostly({"/": "read-only", "/a/b": "deny", "/c": "allow"}) == {"/": ["/a/b", "/c"], "/a": ["/a/b"]}


def test_patterns_that_a_whole_rule_keeps_out_do_not_count_for_what_is_mostly_in_a_state() -> None:
    assert mostly({"/a/**": "read-only", "**/x": "deny"}) == {"/a": []}
    assert mostly({"**/x": "deny"}, {"/a/**": "read-only"}) == {}  # it is of a nearer level
    assert mostly({"/a/**": "read-only"}, {"**/x": "deny"}) == {"/a": []}
    assert mostly({"/a/**": "read-only", "/a/b/**": "read-only", "**/x": "deny"}) == {"/a": []}
    # below /a/b it counts again
    assert mostly({"/a/**": "read-only", "/a/b": "read-only", "**/x": "deny"}) == {"/a": ["/a/b"]}
    assert mostly({"/a/**": "read-only", "/a/**/y": "read-only", "**/x": "deny"}) == {}  # and below each y
    # and below each .yolofs, to which that of a farther source lets it in
    assert mostly({"/a/**": "read-only", "**/x": "deny"}, {"**/.yolofs/**": "read-only"}) == {}
    assert mostly({"/a/**": "read-only", "**/x": "deny"}, {"**/.yolofs": "read-only"}) == {"/a": []}


def test_a_directory_that_keeps_patterns_out_takes_nothing_from_what_is_mostly_in_a_state() -> None:
    assert mostly({"/a/node_modules": "read-only", "**/x": "deny"}, exempt=frozenset({b"node_modules"})) == {
        "/a/node_modules": []
    }
    assert mostly({"/a/**": "read-only", "**/x": "deny"}, exempt=frozenset({b"node_modules"})) == {"/a": []}


def test_what_is_mostly_in_a_state_may_lie_as_deep_as_a_path_can() -> None:
    assert mostly({"/": "allow", "/a" * 2000: "read-only"}) == {"/a" * 2000: []}
    assert mostly({"/": "read-only", "/a" * 2000: "read-only"}) == {"/": []}


def test_a_state_is_stricter_if_it_lets_less_be_read_or_less_be_changed() -> None:
    for stricter, looser in (
        (RuleState.DENY, RuleState.READ_ONLY),
        (RuleState.ASK, RuleState.WRITE_ASK),
        (RuleState.READ_ONLY, RuleState.ALLOW),
    ):
        assert stricter.is_stricter_than(looser)
        assert not looser.is_stricter_than(stricter)
    assert RuleState.READ_ONLY.is_stricter_than(RuleState.ASK)
    assert RuleState.ASK.is_stricter_than(RuleState.READ_ONLY)


def test_one_rule_that_is_no_allow_guards_writing() -> None:
    assert not book({"/": "allow"}).guards_writing
    assert book({"/": "allow", "/d/x": "read-only"}).guards_writing
    assert book().guards_writing
