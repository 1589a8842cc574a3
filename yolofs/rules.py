"""Rules: what a path's state lets a program do, and how ``[rules]`` spells the paths.

A rule's key is an absolute path, a path below ``~``, a path relative to the project, or a pattern: ``**/NAME`` for
a name anywhere, ``**/*.EXT`` for an ending anywhere.  Nothing here looks at the disk: links in a key are not
followed, and a path need not exist.
"""

from __future__ import annotations

import enum
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from yolofs.errors import ConfigError


class Access(enum.Enum):
    """The state of a path; the value is its spelling in TOML.

    ``may_…`` says that it is settled in favour, ``asks_to_…`` that somebody has to answer; where both are false
    the access is refused, with ENOENT for what :attr:`is_hidden` covers and EACCES for everything else.
    """

    ALLOW = "allow"
    READ_ONLY = "read-only"
    WRITE_ASK = "write-ask"
    ASK = "ask"
    DENY = "deny"
    HIDDEN = "hidden"

    @property
    def is_hidden(self) -> bool:
        """Whether the path seems not to exist."""
        return self is Access.HIDDEN

    @property
    def may_stat(self) -> bool:
        """Whether attributes and the target of a link may be read; never asked."""
        return self is not Access.HIDDEN

    @property
    def may_list(self) -> bool:
        """Whether a directory's names may be read; never asked."""
        return self not in (Access.DENY, Access.HIDDEN)

    @property
    def may_read(self) -> bool:
        """Whether a file may be opened for reading or executed."""
        return self in (Access.ALLOW, Access.READ_ONLY, Access.WRITE_ASK)

    @property
    def asks_to_read(self) -> bool:
        """Whether opening for reading or executing asks."""
        return self is Access.ASK

    @property
    def may_write(self) -> bool:
        """Whether the path may be changed: content, name, attributes."""
        return self is Access.ALLOW

    @property
    def asks_to_write(self) -> bool:
        """Whether changing the path asks."""
        return self in (Access.WRITE_ASK, Access.ASK)

    @property
    def may_ask(self) -> bool:
        """Whether any access to the path asks."""
        return self.asks_to_read or self.asks_to_write


@dataclass(frozen=True, slots=True)
class PathRule:
    """A rule for one path and, where no nearer rule stands, for all below it."""

    path: bytes
    """Absolute, without ``.``, ``..``, doubled or trailing slashes; ``b"/"`` is the root."""

    access: Access
    source: str
    """Where the rule was written, for messages: ``.yolofs.toml:7``."""


@dataclass(frozen=True, slots=True)
class NameRule:
    """A rule for every path with this last name, written ``**/NAME``."""

    name: bytes
    access: Access
    source: str


@dataclass(frozen=True, slots=True)
class SuffixRule:
    """A rule for every name that ends so and has something before it, written ``**/*.EXT``."""

    suffix: bytes
    """With its dot: ``b".pem"``."""

    access: Access
    source: str


Rule: TypeAlias = PathRule | NameRule | SuffixRule


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a session, in the order in which they were written; no two are about the same."""

    rules: tuple[Rule, ...] = ()


def parse_rules(
    lines: Iterable[tuple[str, str, int | None]], project_dir: bytes, home: bytes, *, file_name: str = ".yolofs.toml"
) -> RuleSet:
    """Return the rules that ``lines`` spell, each a key, a state and the line in ``file_name`` or None.

    ``project_dir`` and ``home`` are absolute; relative keys and those below ``~`` start from them.

    Raises:
        ConfigError: a key is no path or pattern, climbs out of the project, or stands for the same as another;
            or a state is none of :class:`Access`.
    """
    rules: dict[tuple[type[Rule], bytes], Rule] = {}
    for key, state, line in lines:
        source = file_name if line is None else f"{file_name}:{line}"
        try:
            rule = _parse_rule(key, _parse_access(state), source, project_dir, home)
            same = rules.setdefault((type(rule), _subject(rule)), rule)
            if same is not rule:
                raise ValueError(f"the rule at {same.source} is about the same; keep one of them")
        except ValueError as error:
            raise ConfigError(f"{source}: rules.{_quoted(key)}: {error}") from error
    return RuleSet(tuple(rules.values()))


def _parse_rule(key: str, access: Access, source: str, project_dir: bytes, home: bytes) -> Rule:
    if "\0" in key:
        raise ValueError("a path cannot hold a NUL byte")
    if "*" in key:
        return _parse_pattern(key, access, source)
    return PathRule(_absolute(key, project_dir, home), access, source)


def _parse_access(state: str) -> Access:
    try:
        return Access(state)
    except ValueError:
        words = ", ".join(access.value for access in Access)
        raise ValueError(f"expected one of {words}, got {_quoted(state)}") from None


def _parse_pattern(key: str, access: Access, source: str) -> Rule:
    found = re.fullmatch(r"\*\*/(?:\*(?P<suffix>\.[^*/]+)|(?P<name>[^*/]+))", key)
    if found is None or found["name"] in (".", ".."):
        raise ValueError('expected a path, "**/NAME" or "**/*.EXT"; * has no other use in a rule')
    if found["suffix"] is not None:
        return SuffixRule(os.fsencode(found["suffix"]), access, source)
    return NameRule(os.fsencode(found["name"]), access, source)


def _absolute(key: str, project_dir: bytes, home: bytes) -> bytes:
    """Return the path that ``key`` stands for.

    ``..`` is refused wherever it stands: with links about, it does not say which directory is meant.
    """
    if not key:
        raise ValueError('expected a path, "**/NAME" or "**/*.EXT"; the project itself is "."')
    names = key.split("/")
    if key.startswith("/"):
        start = b"/"
    elif names[0] == "~":
        start, names = home, names[1:]
    elif key.startswith("~"):
        raise ValueError(f'only ~ itself is understood, not the home of others; "./{key}" is a file of that name')
    else:
        start = project_dir
    _refuse_parents(names, is_relative=key[0] not in "/~")
    below = [os.fsencode(name) for name in names if name not in ("", ".")]
    return b"/" + b"/".join([name for name in start.split(b"/") if name] + below)


def _refuse_parents(names: list[str], *, is_relative: bool) -> None:
    depth = 0
    for name in names:
        depth += -1 if name == ".." else name not in ("", ".")
        if is_relative and depth < 0:
            raise ValueError("climbs out of the project; write an absolute path for what is outside it")
    if ".." in names:
        raise ValueError('expected a path without ".."')


def _subject(rule: Rule) -> bytes:
    match rule:
        case PathRule(path=path):
            return path
        case NameRule(name=name):
            return name
        case SuffixRule(suffix=suffix):
            return suffix


def _quoted(key: str) -> str:
    return json.dumps(key, ensure_ascii=not key.isprintable())
