"""What the states allow, and which paths the keys of ``[rules]`` stand for."""

from __future__ import annotations

from typing import get_args

import pytest

from yolofs.config.settings import RuleState
from yolofs.errors import ConfigError
from yolofs.rules import Access, NameRule, PathRule, RuleSet, SuffixRule, parse_rules

YES, NO, ASKS = "yes", "no", "asks"


@pytest.mark.parametrize(
    ("access", "stat", "listing", "read", "write"),
    [
        (Access.ALLOW, YES, YES, YES, YES),
        (Access.READ_ONLY, YES, YES, YES, NO),
        (Access.WRITE_ASK, YES, YES, YES, ASKS),
        (Access.ASK, YES, YES, ASKS, ASKS),
        (Access.DENY, YES, NO, NO, NO),
        (Access.HIDDEN, NO, NO, NO, NO),
    ],
)
def test_each_state_allows_what_the_table_says(access: Access, stat: str, listing: str, read: str, write: str) -> None:
    def verdict(may: bool, asks: bool = False) -> str:
        assert not (may and asks)
        return YES if may else ASKS if asks else NO

    assert verdict(access.may_stat) == stat
    assert verdict(access.may_list) == listing
    assert verdict(access.may_read, access.asks_to_read) == read
    assert verdict(access.may_write, access.asks_to_write) == write
    assert access.may_ask == (ASKS in (read, write))
    assert access.is_hidden == (access is Access.HIDDEN)


def test_the_settings_know_the_same_states() -> None:
    literal, _ = get_args(RuleState)
    assert list(get_args(literal)) == [access.value for access in Access]


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
        (PathRule(path, Access.ASK, ".yolofs.toml:4"),)
    )


def test_a_project_at_the_root_of_the_filesystem_has_no_doubled_slash() -> None:
    (rule,) = parse_rules([("src", "ask", 1)], b"/", b"/root").rules
    assert rule == PathRule(b"/src", Access.ASK, ".yolofs.toml:1")


def test_patterns_are_told_from_paths() -> None:
    lines = [("**/.env", "deny", None), ("**/*.pem", "hidden", 2), ("**/*.tar.gz", "allow", 3), ("**/[id]", "ask", 4)]
    assert parse_rules(lines, b"/p", b"/h", file_name="rules.toml") == RuleSet(
        (
            NameRule(b".env", Access.DENY, "rules.toml"),
            SuffixRule(b".pem", Access.HIDDEN, "rules.toml:2"),
            SuffixRule(b".tar.gz", Access.ALLOW, "rules.toml:3"),
            NameRule(b"[id]", Access.ASK, "rules.toml:4"),
        )
    )


NO_PATTERN = 'expected a path, "**/NAME" or "**/*.EXT"; * has no other use in a rule'


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
        ("/a/**/b", NO_PATTERN),
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
