"""The example file, the reference page and the settings say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from yolofs.config.check import dotted, key_paths
from yolofs.config.expected import expected
from yolofs.config.lines import key_lines
from yolofs.config.load import parse
from yolofs.config.settings import Settings, UserSettings
from yolofs.config.trust import _JUDGES, KEYS, KeyTrust
from yolofs.rules import parse_rules
from yolofs.text import git_binary

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / ".yolofs.toml.example"
REFERENCE = ROOT / "docs/reference/config.md"
TABLES = {("mount",), ("run",), ("diff",), ("keep_commits",), ("rules",)}


def test_the_example_holds_every_key() -> None:
    assert set(key_lines(EXAMPLE.read_text())) == set(key_paths())


def test_the_example_is_the_defaults() -> None:
    assert parse(EXAMPLE.read_bytes()) == Settings.defaults()


def test_every_key_of_the_example_is_explained_above_it() -> None:
    lines = EXAMPLE.read_text().splitlines()
    for path, number in key_lines(EXAMPLE.read_text()).items():
        above = lines[number - 2]
        if path not in TABLES and not re.match("[a-z]", above):  # a key right below another shares its comment
            assert above.startswith("# "), f"{dotted(path)} in line {number} lacks a comment"


def test_the_rules_that_the_example_suggests_are_valid() -> None:
    text = EXAMPLE.read_text()
    suggested = re.findall(r'^# (".*" += ".*")$', text, re.MULTILINE)
    settings = parse(("[rules]\n" + "\n".join(suggested)).encode())
    assert len(parse_rules(settings.rules, b"/project", b"/home/user").rules) == 6


def test_a_diff_shows_lines_of_what_has_lines_as_hunks() -> None:
    assert Settings.defaults().diff.max_text_bytes == git_binary.MAX_TEXT_BYTES


def test_the_reference_lists_every_key_with_its_default_and_what_it_may_be() -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.+?) \| `(.+?)` \| .+ \|$", REFERENCE.read_text(), re.MULTILINE)
    documented = {key: (what, tomllib.loads(f"x = {default}")["x"]) for key, what, default in rows}
    assert documented == {key: (expected(type_), _in_toml(default)) for key, type_, default in _values(Settings)}


def test_the_reference_lists_what_the_users_own_file_may_have() -> None:
    section = REFERENCE.read_text().partition("\n## Your own file\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^- `([a-z_.]+)`: (.+?),", section, re.MULTILINE))
    known = {key: expected(type_) for key, type_, _ in _values(UserSettings)}
    assert rows == {key: what for key, what in known.items() if key not in ("keep_commits.days", "keep_commits.gib")}


def test_what_is_expected_names_the_bounds_and_words_that_are_checked() -> None:
    for key, type_, _ in _values(Settings) + _values(UserSettings):
        info = inspect.type_info(type_)
        assert isinstance(info, inspect.Metadata)
        for word in _checked(info.type):
            assert re.search(rf"\b{re.escape(word)}\b", expected(type_)), f"{key}: {expected(type_)} lacks {word}"


def _in_toml(value: Any) -> Any:
    """Return a value as TOML has it."""
    return list(value) if isinstance(value, tuple) else value


def _values(table: type[msgspec.Struct], above: str = "") -> list[tuple[str, Any, Any]]:
    """Return key, annotated type and default of every value that is no table."""
    rows: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(table):
        if isinstance(field.default, msgspec.Struct):
            rows += _values(type(field.default), f"{above}{field.name}.")
        elif field.name != "rules":
            rows.append((f"{above}{field.name}", field.type, field.default))
    return rows


def _checked(info: inspect.Type) -> list[str]:
    match info:
        case inspect.UnionType(types=types):
            return [word for inner in types for word in _checked(inner)]
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.IntType(ge=low, le=high) | inspect.FloatType(ge=low, le=high):
            return [f"{low:.10g}", f"{high:.10g}"] if isinstance(low, float) else [str(low), f"{high:.0f}"]
        case inspect.BoolType():
            return ["true", "false"]
        case _:
            return []


def test_every_key_has_its_class_of_trust_and_the_reference_tells_it() -> None:
    leaves = {path for path in key_paths() if path not in TABLES - {("rules",)}}
    assert set(KEYS) == leaves
    assert set(_JUDGES) == {path for path, trust in KEYS.items() if trust is KeyTrust.WAITS} - {("rules",)}
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| .+? \| `.+?` \| (.+?) \| .+ \|$", REFERENCE.read_text(), re.MULTILINE))
    assert rows.keys() == {".".join(path) for path in leaves - {("rules",)}}
    for path in leaves - {("rules",)}:
        assert re.match(rf"{KEYS[path].value}\b", rows[".".join(path)]), path
