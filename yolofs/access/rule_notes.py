"""Rules and their changes in the form in which the audit keeps them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from yolofs.audit.audit import RuleChange, RuleNote
from yolofs.rules import Rule, RuleSet, spell_rule, subject
from yolofs.text.percent import quote_from_bytes


def rule_note(rule: Rule | None) -> RuleNote | None:
    """Return a rule as it is now."""
    return RuleNote(_key(rule), rule.state.value, rule.source) if rule is not None else None


def rule_changes(before: Sequence[RuleSet], now: Sequence[RuleSet]) -> Iterator[RuleChange]:
    """Yield what differs between the rules as they were and as they are, source by source."""
    for old, new in zip(before, now, strict=True):
        yield from _differences(old, new)


def _differences(old: RuleSet, new: RuleSet) -> Iterator[RuleChange]:
    before = {subject(rule): rule for rule in old.rules}
    now = {subject(rule): rule for rule in new.rules}
    for about in dict.fromkeys((*before, *now)):
        was, is_ = before.get(about), now.get(about)
        rule = is_ or was
        assert rule is not None
        if was is None or is_ is None or (was.state, was.is_whole) != (is_.state, is_.is_whole):
            yield RuleChange(
                time.time_ns(),
                _key(rule),
                is_.state.value if is_ is not None else None,
                was.state.value if was is not None else None,
                rule.source,
            )


def _key(rule: Rule) -> str:
    return quote_from_bytes(os.fsencode(spell_rule(rule)))
