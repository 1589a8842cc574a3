"""Where rules come from, nearest first."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from yolofs.config.trust import WaitingLine
from yolofs.rules.spelling import Rule, RuleSet

PRESET_SOURCE = "built-in: "
"""How it starts where the built-in rules are written, for messages; what follows is a section's
title.
"""


class Level(enum.Enum):
    """Where a rule comes from, nearest first; the value is its name in JSON.  Of two rules for one
    path that of the nearer level counts.
    """

    SESSION = "session"
    """Answers for this session only, kept in memory."""
    LEARNED = "learned"
    """``.yolofs/rules.toml``: answers for good, and ``yolofs rule``."""
    PROJECT = "project"
    """``.yolofs.toml``."""
    USER = "user"
    """The user's ``config.toml``."""
    PRESET = "preset"
    """The built-in rules."""


class Sources(msgspec.Struct, frozen=True):
    """The rules of all levels at one moment."""

    by_level: Mapping[Level, RuleSet] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """A level that is absent has no rules."""

    notes: tuple[str, ...] = ()
    """What the user should know about them."""

    waiting: tuple[WaitingLine, ...] = ()
    """The lines of ``.yolofs.toml``, other settings among them, that are not in force until the
    user agrees to them.
    """

    def rules_of(self, level: Level) -> tuple[Rule, ...]:
        """Return the rules of one level."""
        found = self.by_level.get(level)
        return found.rules if found is not None else ()

    def sets(self) -> tuple[RuleSet, ...]:
        """Return the rules nearest first, one set for each :class:`Level`, as
        :class:`yolofs.rules.book.RuleBook` takes them.
        """
        return tuple(self.by_level.get(level, RuleSet()) for level in Level)
