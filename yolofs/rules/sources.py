"""Where rules come from, nearest first."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from yolofs.config.trust import Waiting
from yolofs.rules.spelling import Rule, RuleSet

PRESET_SOURCE = "built-in: "
"""How it starts where the built-in rules are written, for messages; what follows is a section's
title.
"""


class Origin(enum.Enum):
    """A source of rules; the value is its name in JSON.  On equal paths the first of them
    counts.
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


@dataclass(frozen=True, slots=True)
class Sources:
    """The rules of all sources at one moment."""

    by_origin: Mapping[Origin, RuleSet] = field(default_factory=lambda: MappingProxyType({}))
    """A source that is absent has no rules."""

    notes: tuple[str, ...] = ()
    """What the user should know about them."""

    waiting: tuple[Waiting, ...] = ()
    """The lines of ``.yolofs.toml``, other settings among them, that are not in force until the
    user agrees to them.
    """

    def rules_of(self, origin: Origin) -> tuple[Rule, ...]:
        """Return the rules of one source."""
        found = self.by_origin.get(origin)
        return found.rules if found is not None else ()

    def sets(self) -> tuple[RuleSet, ...]:
        """Return the rules nearest first, one set for each :class:`Origin`, as :class:`RuleBook`
        takes them.
        """
        return tuple(self.by_origin.get(origin, RuleSet()) for origin in Origin)
