"""Learning rules from commands, and forgetting them: through the mount, or, if there is none, in
``rules.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from yolofs.access.rule_notes import rule_changes
from yolofs.audit.audit import append_notes
from yolofs.cli.output import say
from yolofs.cli.project.connection import connected
from yolofs.cli.rules.in_force import read_rule_files, sources_in_force
from yolofs.cli.rules.rule_lines import key_text
from yolofs.errors import UsageError
from yolofs.rules import Level, PathRule, Rule, RuleState, Sources, subject
from yolofs.rules.linked_keys import leads_to
from yolofs.rules.rule_files import RuleFiles
from yolofs.system.symlinks import HostLinks

T = TypeVar("T")


def learn_rules(project: bytes, rules: Sequence[Rule]) -> None:
    """Put rules in force for good, one after the other, and say what each changes."""
    with connected(project) as client:
        for rule in rules:
            before = _find(sources_in_force(project), rule)
            if client is not None:
                client.set_rule(rule)
            else:
                _change_learned(project, partial(_learn, rule))
            also = _also_in_force(rule, project)
            say(f"{key_text(rule, project)} is {rule.state.value} {_since(before, rule.state)}{also}")


def forget_rule(project: bytes, rule: Rule) -> None:
    """Forget the learned rule about the same as ``rule``, and say what is in force there now.

    Raises:
        UsageError: nothing was learned about it.
    """
    with connected(project) as client:
        if client is not None:
            was_there = bool(client.unset_rule(rule))
        else:
            was_there = _change_learned(project, lambda files: files.forget(rule))
    left = _find(sources_in_force(project), rule)
    if not was_there:
        where = f"; the rule about it is written at {left.source}" if left is not None else ""
        raise UsageError(f"nothing was learned about {key_text(rule, project)}{where}", hint="yolofs rule list")
    now = f": it is {left.state.value} now ({left.source})" if left is not None else ""
    say(f"forgot the rule about {key_text(rule, project)}{now}")


def _also_in_force(rule: Rule, project: bytes) -> str:
    """Return where a rule is in force besides, as a link of base leads there, as the end of a
    sentence.
    """
    place = leads_to(rule, project, HostLinks().target)
    if place is None or not isinstance(rule, PathRule):
        return ""
    there = key_text(PathRule(place, rule.state, rule.source, rule.is_whole), project)
    return f"; also {there}, where a link of base leads"


def _since(before: Rule | None, state: RuleState) -> str:
    """Return what a new rule changes, as the end of a sentence."""
    if before is None:
        return "now"
    if before.state is state:
        return f"as before ({before.source})"
    return f"now, and not {before.state.value} ({before.source}) any more"


def _learn(rule: Rule, files: RuleFiles) -> None:
    files.learn(rule)


def _change_learned(project: bytes, change: Callable[[RuleFiles], T]) -> T:
    """Change ``rules.toml`` without a daemon, which would note it in the audit."""
    files = read_rule_files(project)
    before = files.sources().sets()
    result = change(files)
    append_notes(files.directory, rule_changes(before, files.sources().sets()))
    return result


def _find(sources: Sources, rule: Rule) -> Rule | None:
    """Return the rule in force that is about the same as ``rule``."""
    about = subject(rule)
    return next((one for level in Level for one in sources.rules_of(level) if subject(one) == about), None)
