"""Rules as they go over the control socket (``docs/reference/rpc.md``).

Keys are as one writes them in ``[rules]``, with an absolute path, and travel percent-encoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from yolofs.access.questions import Operation
from yolofs.daemon.rpc.protocol import quote, unquote
from yolofs.errors import UsageError
from yolofs.rules import Level, Rule, RuleSet, RuleState, Sources, parse_rule, spell_rule

PAGE = 1000
"""How many rules, or accesses, one message holds."""
_PAGE_BYTES = 500_000
"""How long all paths in a message may be together: half of what one may hold."""


class SourcedRule(msgspec.Struct, frozen=True):
    """A rule with its state, the place where it is written, and the level of that."""

    key: str
    state: RuleState
    source: str
    level: Level


class RulesParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``rules``: how many to leave out at the start."""

    after: int = 0


class RulesResult(msgspec.Struct, frozen=True):
    """The result of ``rules``, nearest source first; ``more`` if not all fit into a message."""

    rules: tuple[SourcedRule, ...]
    more: bool
    warnings: tuple[str, ...]


class SetRuleParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``set_rule``: ``lasting`` writes it to ``rules.toml``, else it holds for
    this session.
    """

    key: str
    state: RuleState
    lasting: bool = True


class UnsetRuleParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``unset_rule``."""

    key: str


class UnsetRuleResult(msgspec.Struct, frozen=True):
    """The result of ``unset_rule``: the sources that had such a rule."""

    removed: tuple[Level, ...]


class AccessesParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``accesses``: how many to leave out at the start."""

    after: int = 0


class NotedAccess(msgspec.Struct, frozen=True):
    """What a rule allowed."""

    path: str
    operation: Operation


class AccessesResult(msgspec.Struct, frozen=True):
    """The result of ``accesses``, in the order of the first time; ``more`` if not all fit into a
    message.
    """

    accesses: tuple[NotedAccess, ...]
    more: bool
    is_full: bool
    """Whether there may have been others, which are not noted."""


def accesses_page(noted: Sequence[tuple[bytes, Operation]], after: int, *, is_full: bool) -> AccessesResult:
    """Return some of what the gate noted, from number ``after`` on, as far as that fits into a
    message.
    """
    page: list[NotedAccess] = []
    size = 0
    for path, operation in noted[after:][:PAGE]:
        access = NotedAccess(quote(path), operation)
        size += len(access.path)
        if page and size > _PAGE_BYTES:
            break
        page.append(access)
    return AccessesResult(tuple(page), after + len(page) < len(noted), is_full)


def page_of(sources: Sources, warnings: tuple[str, ...], after: int) -> RulesResult:
    """Return some rules in the form in which they travel, from number ``after`` on."""
    rules = [(rule, level) for level, rule_set in zip(Level, sources.sets(), strict=True) for rule in rule_set.rules]
    page = tuple(SourcedRule(encode_key(rule), rule.state, rule.source, level) for rule, level in rules[after:][:PAGE])
    return RulesResult(page, after + PAGE < len(rules), warnings)


def sources_of(rules: Iterable[SourcedRule], warnings: Sequence[str]) -> Sources:
    """Undo :func:`page_of`, of all pages."""
    by_level: dict[Level, list[Rule]] = {level: [] for level in Level}
    for rule in rules:
        by_level[rule.level].append(decode_rule(rule.key, rule.state, rule.source))
    sets = {level: RuleSet(tuple(found)) for level, found in by_level.items()}
    if by_level[Level.PRESET]:
        from yolofs.rules.preset import EXEMPT  # some hundred lines that most commands have no use for

        sets[Level.PRESET] = RuleSet(sets[Level.PRESET].rules, EXEMPT)
    return Sources(sets, tuple(warnings))


def encode_key(rule: Rule) -> str:
    """Return what a rule is about in the form in which it travels."""
    return quote(os.fsencode(spell_rule(rule)))


def decode_rule(key: str, state: RuleState, source: str) -> Rule:
    """Return the rule of a key in the form in which it travels.

    Raises:
        UsageError: it is no absolute path, and no pattern below one.
    """
    try:
        text = unquote(key).decode()
        if text.startswith("~"):
            raise ValueError("the daemon knows no home directory; expected an absolute path")
        return parse_rule(text, state, source, None, b"/")
    except ValueError as error:
        raise UsageError(f"not a rule's key: {error}") from error
