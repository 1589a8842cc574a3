"""What the states allow, and which paths the keys of ``[rules]`` stand for."""

from __future__ import annotations

import tomllib
from typing import get_args

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from yolofs.config.settings import StateWord
from yolofs.errors import ConfigError
from yolofs.rules import NameRule, PathRule, Rule, RuleSet, RuleState, SuffixRule, parse_rule, parse_rules, spell_rule

YES, NO, ASKS = "yes", "no", "asks"


@pytest.mark.parametrize(
    ("access", "stat", "listing", "read", "write"),
    [
        (RuleState.ALLOW, YES, YES, YES, YES),
        (RuleState.READ_ONLY, YES, YES, YES, NO),
        (RuleState.WRITE_ASK, YES, YES, YES, ASKS),
        (RuleState.ASK, YES, YES, ASKS, ASKS),
        (RuleState.DENY, YES, NO, NO, NO),
        (RuleState.HIDDEN, NO, NO, NO, NO),
    ],
)
def test_each_state_allows_what_the_table_says(
    access: RuleState, stat: str, listing: str, read: str, write: str
) -> None:
    def verdict(may: bool, asks: bool = False) -> str:
        assert not (may and asks)
        return YES if may else ASKS if asks else NO

    assert verdict(access.may_stat) == stat
    assert verdict(access.may_list) == listing
    assert verdict(access.may_read, access.asks_to_read) == read
    assert verdict(access.may_write, access.asks_to_write) == write
    assert access.may_ask == (ASKS in (read, write))
    assert access.is_hidden == (access is RuleState.HIDDEN)


def test_the_settings_know_the_same_states() -> None:
    literal, _ = get_args(StateWord)
    assert list(get_args(literal)) == [access.value for access in RuleState]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("src", b"/home/u/project/src"),
        (".", b"/home/u/project"),
        ("./a//b/./c/", b"/home/u/project/a/b/c"),
        ("~", b"/home/u"),
        ("~/.ssh", b"/home/u/.ssh"),
        ("./~x", b"/home/u/project/~x"),
        ("/", b"/"),
        ("/etc//ssl/", b"/etc/ssl"),
        ("...", b"/home/u/project/..."),
        ("app/[id]/what?.tsx", b"/home/u/project/app/[id]/what?.tsx"),
        ("caf\u00e9", b"/home/u/project/caf\xc3\xa9"),
    ],
)
def test_a_path_becomes_absolute(key: str, path: bytes) -> None:
    assert parse_rules([(key, "ask", 4)], b"/home/u/project", b"/home/u") == RuleSet(
        (PathRule(path, RuleState.ASK, ".yolofs.toml:4"),)
    )


def test_a_project_at_the_root_of_the_filesystem_has_no_doubled_slash() -> None:
    (rule,) = parse_rules([("src", "ask", 1)], b"/", b"/root").rules
    assert rule == PathRule(b"/src", RuleState.ASK, ".yolofs.toml:1")


def test_patterns_are_told_from_paths() -> None:
    lines = [("**/.env", "deny", None), ("**/*.pem", "hidden", 2), ("**/*.tar.gz", "allow", 3), ("**/[id]", "ask", 4)]
    assert parse_rules(lines, b"/p", b"/h", file_name="rules.toml") == RuleSet(
        (
            NameRule(b".env", RuleState.DENY, "rules.toml"),
            SuffixRule(b".pem", RuleState.HIDDEN, "rules.toml:2"),
            SuffixRule(b".tar.gz", RuleState.ALLOW, "rules.toml:3"),
            NameRule(b"[id]", RuleState.ASK, "rules.toml:4"),
        )
    )


NO_PATTERN = (
    'expected a path, "**/NAME" or "**/*.EXT"; '
    'apart from "DIR/**/NAME", "DIR/**/*.EXT" and "/**" at the end, * has no other use in a rule'
)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("../x", "climbs out of the project; write an absolute path for what is outside it"),
        ("a/../../x", "climbs out of the project; write an absolute path for what is outside it"),
        ("..", "climbs out of the project; write an absolute path for what is outside it"),
        ("a/../b", 'expected a path without ".."'),
        ("/a/../b", 'expected a path without ".."'),
        ("~/../b", 'expected a path without ".."'),
        ("~bob/x", 'only ~ itself is understood, not the home of others; "./~bob/x" is a file of that name'),
        ("", 'expected a path, "**/NAME" or "**/*.EXT"; the project itself is "."'),
        ("src/*.py", NO_PATTERN),
        ("*", NO_PATTERN),
        ("**", NO_PATTERN),
        ("**/", NO_PATTERN),
        ("**/*", NO_PATTERN),
        ("**/*.", NO_PATTERN),
        ("**/a/b", NO_PATTERN),
        ("**/..", NO_PATTERN),
        ("**/*x", NO_PATTERN),
        ("**/*.p*", NO_PATTERN),
        ("/a/**/b/c", NO_PATTERN),
        ("/a*/**/b", NO_PATTERN),
        ("**/a/**/b", NO_PATTERN),
        ("src/**/..", NO_PATTERN),
        ("a/../**/b", 'expected a path without ".."'),
        ("file:///a*", NO_PATTERN),
        ("file:/etc/hosts", 'expected "file:///PATH"; "./file:/etc/hosts" is a file of that name'),
        ("file://localhost/x/**", 'expected "file:///PATH"; "./file://localhost/x" is a file of that name'),
        ("FILE:///a", 'expected "file:///PATH"; "./FILE:///a" is a file of that name'),
        ("file:///a%2", "expected %XX, with two hex digits but 00, for each % in a file: URI"),
        ("file:///a%zz", "expected %XX, with two hex digits but 00, for each % in a file: URI"),
        ("file:///a%00b", "expected %XX, with two hex digits but 00, for each % in a file: URI"),
        ("file:///a/%2e%2e/b", 'expected a path without ".."'),
    ],
)
def test_a_bad_key_is_told_with_file_and_line(key: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules([("ok", "allow", 3), (key, "allow", 7)], b"/p", b"/h")
    assert caught.value.message == f'.yolofs.toml:7: rules."{key}": {message}'


def test_a_nul_byte_is_refused_and_shown_as_an_escape() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules([("a\0b", "allow", 7)], b"/p", b"/h")
    assert caught.value.message == '.yolofs.toml:7: rules."a\\u0000b": a path cannot hold a NUL byte'


def test_two_keys_for_one_path_are_refused_even_with_one_state() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules([("src", "allow", 3), ("/p/src/", "allow", 5)], b"/p", b"/h")
    assert caught.value.message == (
        '.yolofs.toml:5: rules."/p/src/": the rule at .yolofs.toml:3 is about the same; keep one of them'
    )


def test_a_name_and_a_path_of_the_same_spelling_are_two_rules() -> None:
    assert len(parse_rules([("/x", "allow", 1), ("**/x", "deny", 2)], b"/p", b"/h").rules) == 2


def test_an_unknown_state_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules([("src", "rw", 3)], b"/p", b"/h", file_name="rules.toml")
    assert caught.value.message == (
        'rules.toml:3: rules."src": expected one of allow, read-only, write-ask, ask, deny, hidden, got "rw"'
    )


WHOLE = RuleState.ALLOW


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("src/**", PathRule(b"/p/src", WHOLE, "f", is_whole=True)),
        ("./**", PathRule(b"/p", WHOLE, "f", is_whole=True)),
        ("/**", PathRule(b"/", WHOLE, "f", is_whole=True)),
        ("~/**", PathRule(b"/h", WHOLE, "f", is_whole=True)),
        ("**/build/**", NameRule(b"build", WHOLE, "f", is_whole=True)),
        ("**/*.app/**", SuffixRule(b".app", WHOLE, "f", is_whole=True)),
        ("src/**/x", NameRule(b"x", WHOLE, "f", b"/p/src")),
        ("./**/x/**", NameRule(b"x", WHOLE, "f", b"/p", is_whole=True)),
        ("~/**/*.key", SuffixRule(b".key", WHOLE, "f", b"/h")),
        ("/**/x", NameRule(b"x", WHOLE, "f", b"/")),
        ("file:///a%2Ab/caf%E9", PathRule(b"/a*b/caf\xe9", WHOLE, "f")),
        ("file:///", PathRule(b"/", WHOLE, "f")),
        ("file:///a%0Ab/**", PathRule(b"/a\nb", WHOLE, "f", is_whole=True)),
        ("file:///a%2A/**/x", NameRule(b"x", WHOLE, "f", b"/a*")),
        ("./FILE:x", PathRule(b"/p/FILE:x", WHOLE, "f")),
        ("./file:///x", PathRule(b"/p/file:/x", WHOLE, "f")),
    ],
)
def test_wholes_and_confined_patterns_and_uris_are_understood(key: str, rule: Rule) -> None:
    assert parse_rule(key, WHOLE, "f", b"/p", b"/h") == rule


@pytest.mark.parametrize("key", ["src", ".", "./**", "./**/x", "./file:/x", "src/**/*.c"])
def test_without_a_project_relative_keys_are_refused(key: str) -> None:
    with pytest.raises(
        ValueError, match="expected an absolute path or one below ~: this file is not about one project"
    ):
        parse_rule(key, WHOLE, "f", None, b"/h")


@pytest.mark.parametrize("key", ["/etc", "~/x", "**/x", "~/**/x", "file:///x", "/**"])
def test_without_a_project_all_other_keys_are_understood(key: str) -> None:
    assert parse_rule(key, WHOLE, "f", None, b"/h") == parse_rule(key, WHOLE, "f", b"/p", b"/h")


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        (PathRule(b"/p/src/a b", WHOLE, "f"), "src/a b"),
        (PathRule(b"/p", WHOLE, "f"), "."),
        (PathRule(b"/p", WHOLE, "f", is_whole=True), "./**"),
        (PathRule(b"/", WHOLE, "f", is_whole=True), "/**"),
        (PathRule(b"/", WHOLE, "f"), "/"),
        (PathRule(b"/px", WHOLE, "f"), "/px"),
        (PathRule(b"/p/~x", WHOLE, "f"), "./~x"),
        (PathRule(b"/p/file:", WHOLE, "f"), "./file:"),
        (PathRule(b"/p/File:x", WHOLE, "f"), "./File:x"),
        (PathRule(b"/p/a*b", WHOLE, "f"), "file:///p/a%2Ab"),
        (PathRule(b"/p/**", WHOLE, "f"), "file:///p/%2A%2A"),
        (PathRule(b"/caf\xe9", WHOLE, "f", is_whole=True), "file:///caf%E9/**"),
        (NameRule(b"x", WHOLE, "f"), "**/x"),
        (NameRule(b"x", WHOLE, "f", b"/p/src"), "src/**/x"),
        (SuffixRule(b".c", WHOLE, "f", b"/p", is_whole=True), "./**/*.c/**"),
    ],
)
def test_the_key_of_a_rule_is_the_shortest_that_is_exact(rule: Rule, key: str) -> None:
    assert spell_rule(rule, b"/p") == key
    assert parse_rule(key, WHOLE, "f", b"/p", b"/h") == rule


NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: not {b"\0"[0], b"/"[0]} & {*name} and name not in (b".", b"..")
)
PATHS = st.lists(
    st.one_of(NAMES, st.sampled_from([b"p", b"*", b"**", b"~", b"file:", b"\n", b'"', b"\xff"])), max_size=4
)


@given(PATHS, st.booleans(), st.sampled_from([None, b"/", b"/p", b"/\xff"]))
def test_every_path_has_a_key_that_toml_holds(names: list[bytes], is_whole: bool, project: bytes | None) -> None:
    rule = PathRule(b"/" + b"/".join(names), WHOLE, "f", is_whole)
    key = spell_rule(rule, project)
    written = tomli_w.dumps({"rules": {key: "allow"}})
    (read,) = tomllib.loads(written)["rules"]
    assert parse_rule(read, WHOLE, "f", project, b"/h") == rule


def test_the_key_of_a_pattern_that_is_not_utf8_does_not_exist() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        spell_rule(NameRule(b"\xff", WHOLE, "f"))
