"""How ``[rules]`` spells the paths, and the rules that come of it.

A rule's key is an absolute path, a path below ``~``, a path relative to the project, a ``file:``
URI (for paths that TOML cannot hold), or a pattern: ``**/NAME`` for a name anywhere, ``**/*.EXT``
for an ending anywhere.  A directory before a pattern confines it: ``DIR/**/NAME``.  ``/**`` behind
any of them says that the rule holds for everything in there, whatever farther patterns say.
Nothing here looks at the disk: links in a key are not followed, and a path need not exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias, assert_never

import msgspec

from yolofs.errors import ConfigError
from yolofs.rules.rule_states import RuleState
from yolofs.text.characters import toml_string
from yolofs.text.percent import quote_from_bytes, unquote_to_bytes

URI_START = "file:///"
"""How a key starts that is a percent-encoded absolute path (RFC 8089)."""
_EVERYTHING = "/**"
"""How a key ends whose rule farther patterns do not touch."""


class PathRule(msgspec.Struct, frozen=True):
    """A rule for one path and, where no nearer rule stands, for all below it."""

    path: bytes
    """Absolute, without ``.``, ``..``, doubled or trailing slashes; ``b"/"`` is the root."""

    state: RuleState
    source: str
    """Where the rule was written, for messages: ``.yolofs.toml:7``."""

    is_whole: bool = False
    """Whether patterns from outside do not count below it, written ``PATH/**``."""


class NameRule(msgspec.Struct, frozen=True):
    """A rule for every path with this last name, written ``**/NAME``."""

    name: bytes
    state: RuleState
    source: str
    scope: bytes = b"/"
    """The directory below which it holds, as :attr:`PathRule.path`."""
    is_whole: bool = False
    """As :attr:`PathRule.is_whole`, below each path that it is about."""


class SuffixRule(msgspec.Struct, frozen=True):
    """A rule for every name that ends so, written ``**/*.EXT``."""

    suffix: bytes
    """With its dot: ``b".pem"``."""

    state: RuleState
    source: str
    scope: bytes = b"/"
    """As :attr:`NameRule.scope`."""
    is_whole: bool = False
    """As :attr:`NameRule.is_whole`."""


Rule: TypeAlias = PathRule | NameRule | SuffixRule
RuleSubject: TypeAlias = tuple[type[Rule], bytes, bytes]
"""What a rule is about; of several rules with the same one counts."""


class Waypoint(NamedTuple):
    """A place on the way to what a rule is about: a link that came there would lead the rule
    elsewhere.
    """

    path: bytes
    """As :attr:`PathRule.path`; in base no directory above it is a link, unless it is the rule's
    own path.
    """
    rule: Rule
    is_link: bool
    """Whether the rule's path goes on by a link here, which must not go away either."""


class RuleSet(msgspec.Struct, frozen=True):
    """The rules of one source, in the order in which they were written; no two are about the
    same.
    """

    rules: tuple[Rule, ...] = ()

    exempt: frozenset[bytes] = frozenset()
    """Names of directories below which the patterns of this source, and of farther ones, do not
    count.
    """

    waypoints: tuple[Waypoint, ...] = ()
    """What keeps the rules' paths leading to the same places; they change nothing else."""


def subject(rule: Rule) -> RuleSubject:
    """Return what a rule is about; its state, its source and a ``/**`` at its end do not count."""
    match rule:
        case PathRule(path=path):
            return PathRule, path, b""
        case NameRule(name=name, scope=scope):
            return NameRule, scope, name
        case SuffixRule(suffix=suffix, scope=scope):
            return SuffixRule, scope, suffix
        case _:
            assert_never(rule)


def is_like_uri(key: str) -> bool:
    """Tell whether a key starts as some spelling of a ``file:`` URI does; only :data:`URI_START` is
    understood.
    """
    return key[:5].lower() == "file:"


def fits(pattern: NameRule | SuffixRule, name: bytes) -> bool:
    """Tell whether a pattern is about a name below its directory."""
    if isinstance(pattern, NameRule):
        return name == pattern.name
    return name.endswith(pattern.suffix)


def endings(name: bytes) -> Iterator[bytes]:
    """Yield what stands from each dot of a name on, longest first: all suffixes that it fits."""
    dot = name.find(b".")
    while dot >= 0:
        yield name[dot:]
        dot = name.find(b".", dot + 1)


def parse_rules(
    lines: Iterable[tuple[str, str, int | None]],
    project_dir: bytes | None,
    home: bytes,
    *,
    file_name: str = ".yolofs.toml",
) -> RuleSet:
    """Return the rules that ``lines`` spell, each a key, a state and the line in ``file_name`` or
    None.

    ``project_dir`` and ``home`` are absolute; relative keys and those below ``~`` start from them.
    Without a ``project_dir`` relative keys are refused.

    Raises:
        ConfigError: a key is no path or pattern, climbs out of the project, or stands for the same
            as another; or a state is none of :class:`RuleState`.
    """
    rules: dict[RuleSubject, Rule] = {}
    for key, state, line in lines:
        source = file_name if line is None else f"{file_name}:{line}"
        try:
            rule = parse_rule(key, _parse_state(state), source, project_dir, home)
            same = rules.setdefault(subject(rule), rule)
            if same is not rule:
                raise ValueError(f"the rule at {same.source} is about the same; keep one of them")
        except ValueError as error:
            raise ConfigError(f"{source}: rules.{toml_string(key)}: {error}") from error
    return RuleSet(tuple(rules.values()))


def parse_rule(key: str, state: RuleState, source: str, project_dir: bytes | None, home: bytes) -> Rule:
    """Return the rule that one key spells; arguments as for :func:`parse_rules`.

    Raises:
        ValueError: the key is no path or pattern; the message says what was expected.
    """
    if "\0" in key:
        raise ValueError("a path cannot hold a NUL byte")
    is_whole = key.endswith(_EVERYTHING)
    head = key.removesuffix(_EVERYTHING) or "/" if is_whole else key
    if "*" not in head:
        return PathRule(_absolute(head, project_dir, home), state, source, is_whole)
    found = _PATTERN.fullmatch(head)
    if found is None or found["name"] in (".", ".."):
        raise ValueError(_NO_PATTERN)
    scope = b"/" if found["scope"] is None else _absolute(found["scope"], project_dir, home)
    if found["suffix"] is not None:
        return SuffixRule(os.fsencode(found["suffix"]), state, source, scope, is_whole)
    return NameRule(os.fsencode(found["name"]), state, source, scope, is_whole)


_PATTERN = re.compile(r"(?:(?P<scope>[^*]*/))?\*\*/(?:\*(?P<suffix>\.[^*/]+)|(?P<name>[^*/]+))")
_NO_PATTERN = (
    'expected a path, "**/NAME" or "**/*.EXT"; '
    'apart from "DIR/**/NAME", "DIR/**/*.EXT" and "/**" at the end, * has no other use in a rule'
)


def spell_rule(rule: Rule, project_dir: bytes | None = None) -> str:
    """Return the key that :func:`parse_rule` makes the same rule of; relative to ``project_dir`` if
    it lies there.

    Raises:
        ValueError: the name or ending of a pattern is not UTF-8: there is no such key.
    """
    end = _EVERYTHING if rule.is_whole else ""
    match rule:
        case PathRule(path=path):
            return _spell_path(path, project_dir).removesuffix("/" if end else "") + end
        case NameRule(name=name, scope=scope):
            return _spell_scope(scope, project_dir) + "**/" + name.decode() + end
        case SuffixRule(suffix=suffix, scope=scope):
            return _spell_scope(scope, project_dir) + "**/*" + suffix.decode() + end
        case _:
            assert_never(rule)


def _spell_scope(scope: bytes, project_dir: bytes | None) -> str:
    return "" if scope == b"/" else _spell_path(scope, project_dir) + "/"


def _spell_path(path: bytes, project_dir: bytes | None) -> str:
    try:
        text = path.decode()
    except UnicodeDecodeError:
        text = "*"
    if "*" in text:
        return "file://" + quote_from_bytes(path)
    if project_dir is None or project_dir == b"/":
        return text
    if path == project_dir:
        return "."
    if not path.startswith(project_dir + b"/"):
        return text
    inside = path[len(project_dir) + 1 :].decode()
    return "./" + inside if inside.startswith("~") or is_like_uri(inside) else inside


def _parse_state(state: str) -> RuleState:
    try:
        return RuleState(state)
    except ValueError:
        words = ", ".join(state.value for state in RuleState)
        raise ValueError(f"expected one of {words}, got {toml_string(state)}") from None


def _absolute(key: str, project_dir: bytes | None, home: bytes) -> bytes:
    """Return the path that ``key`` stands for.

    ``..`` is refused wherever it stands: with links about, it does not say which directory is
    meant.
    """
    if not key:
        raise ValueError('expected a path, "**/NAME" or "**/*.EXT"; the project itself is "."')
    if key.startswith(URI_START):
        return _clean(b"/", _parse_uri(key), is_relative=False)
    if is_like_uri(key):
        raise ValueError(f'expected "{URI_START}PATH"; "./{key}" is a file of that name')
    path = os.fsencode(key)
    names = path.split(b"/")
    if key.startswith("/"):
        if not (b"" in names[1:] or b"." in names or b".." in names):
            return path  # as nearly all are
        start = b"/"
    elif names[0] == b"~":
        start, names = home, names[1:]
    elif key.startswith("~"):
        raise ValueError(f'only ~ itself is understood, not the home of others; "./{key}" is a file of that name')
    elif project_dir is None:
        raise ValueError("expected an absolute path or one below ~: this file is not about one project")
    else:
        start = project_dir
    return _clean(start, names, is_relative=key[0] not in "/~")


def _parse_uri(key: str) -> list[bytes]:
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00", key):
        raise ValueError("expected %XX, with two hex digits but 00, for each % in a file: URI")
    return unquote_to_bytes(key.removeprefix("file://")).split(b"/")


def _clean(start: bytes, names: list[bytes], *, is_relative: bool) -> bytes:
    if b".." in names:
        if is_relative and _climbs_out(names):
            raise ValueError("climbs out of the project; write an absolute path for what is outside it")
        raise ValueError('expected a path without ".."')
    below = [name for name in names if name and name != b"."]
    return b"/" + b"/".join([name for name in start.split(b"/") if name] + below)


def _climbs_out(names: list[bytes]) -> bool:
    depth = 0
    for name in names:
        depth += -1 if name == b".." else name not in (b"", b".")
        if depth < 0:
            return True
    return False
