"""How rules and explanations are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yolofs.access.explain import AccessOutcome, Explanation
from yolofs.access.questions import Operation
from yolofs.cli.output import emit, paint, say
from yolofs.cli.show.json_forms import text_fields
from yolofs.paths import display, in_shell
from yolofs.rules import Level, Rule, RuleState, RuleSubject, Sources, spell_rule, subject

_COLOURS = {
    RuleState.ALLOW: "green",
    RuleState.READ_ONLY: "cyan",
    RuleState.WRITE_ASK: "yellow",
    RuleState.ASK: "yellow",
    RuleState.DENY: "red",
    RuleState.HIDDEN: "magenta",
}
_WORDS = {
    AccessOutcome.ALLOWED: "allowed",
    AccessOutcome.ASKS: "asks",
    AccessOutcome.REFUSED: "refused (EACCES)",
    AccessOutcome.ABSENT: "not there (ENOENT)",
}


def emit_rules(sources: Sources, project: bytes, *, with_preset: bool) -> None:
    """Write one line for each rule."""
    shown = [
        (rule, is_overridden)
        for level, rule, is_overridden in _in_order(sources)
        if with_preset or level is not Level.PRESET
    ]
    keys = [key_text(rule, project) for rule, _ in shown]
    width = min(max(map(len, keys), default=0), 60)
    for key, (rule, is_overridden) in zip(keys, shown, strict=True):
        state = paint(f"{rule.state.value:<9}", _COLOURS[rule.state])
        line = f"{state}  {key:<{width}}  {rule.source}"
        emit(paint(f"{line}  (overridden)", "dim") if is_overridden else line)
    preset = len(sources.rules_of(Level.PRESET))
    if not with_preset:
        built_in = (
            f"{preset} built-in rules: yolofs rule list --all" if preset else "the built-in rules are switched off"
        )
        say(f"{'and' if shown else 'no rules of your own;'} {built_in}")


def rules_document(sources: Sources) -> dict[str, Any]:
    """Return the rules for ``--json``."""
    rules = [
        {**_rule_fields(rule), "level": level.value, "overridden": is_overridden}
        for level, rule, is_overridden in _in_order(sources)
    ]
    return {"rules": rules, "warnings": list(sources.notes)}


def emit_explanation(found: Explanation, project: bytes, only: Operation | None) -> None:
    """Write what the rules say of a path."""
    state = paint(found.state.value, _COLOURS[found.state])
    emit(f"{display(found.path)}: {state}")
    if found.rule is None:
        emit("no rule is about it, or about anything above it")
    else:
        emit(f"by the rule {_rule_text(found.rule, project)}")
        if found.place != found.path:
            emit(f"which holds for {display(found.place)} and below")
    for rule in found.overridden:
        emit(f"in place of {rule.state.value}, {rule.source}")
    if found.is_way:
        emit("programs may enter and list it, as something below it is open; it shows only the way there")
    if found.closed is not None:
        emit(f"but nothing leads there: a directory above is hidden by the rule {_rule_text(found.closed, project)}")
    elif found.kept_by is not None:
        kept_by = _rule_text(found.kept_by, project)
        emit(f"it cannot go away, as a rule's path leads through it: {kept_by}")
    for other in found.others:
        why = f"by the rule {_rule_text(other.rule, project)}" if other.rule is not None else "as no rule is about it"
        reach = "changes reach that, too"
        if not other.state.may_read and other.is_staged:
            reach = "reads and changes of the file are judged by it, too"
        elif not other.state.may_read:
            reach += ", and once it was looked at, reads of the file are judged by it"
        emit(f"its other name {display(other.path)} is {other.state.value}, {why}; {reach}")
    if found.has_more:
        emit("it has more names (hard links), which were not found; changes reach these, too")
    if found.link is not None:
        command = f"yolofs rule explain {in_shell(found.link)}"
        emit(f"it is a symbolic link: an access through it is judged at {display(found.link)} ({command})")
    emit()
    for outcome, operations in _by_outcome(found, [only] if only is not None else found.operations):
        emit(f"{', '.join(operation.value for operation in operations)}: {_WORDS[outcome]}")


def explanation_document(found: Explanation, only: Operation | None) -> dict[str, Any]:
    """Return what the rules say of a path for ``--json``."""
    operations = [only] if only is not None else found.operations
    return {
        **text_fields("path", found.path),
        "state": found.state.value,
        "rule": _rule_or_none(found.rule),
        **text_fields("place", found.place),
        "way": found.is_way,
        "overridden": [_rule_fields(rule) for rule in found.overridden],
        "closed": _rule_or_none(found.closed),
        "held": _rule_or_none(found.kept_by),
        "other_names": [
            {
                **text_fields("path", other.path),
                "state": other.state.value,
                "rule": _rule_or_none(other.rule),
                "staged": other.is_staged,
            }
            for other in found.others
        ],
        "more_names": found.has_more,
        **(text_fields("link", found.link) if found.link is not None else {"link": None}),
        "operations": {operation.value: found.outcome(operation).value for operation in operations},
    }


def _rule_text(rule: Rule, project: bytes) -> str:
    return f"{key_text(rule, project)} = {rule.state.value}, {rule.source}"


def _rule_or_none(rule: Rule | None) -> dict[str, Any] | None:
    return _rule_fields(rule) if rule is not None else None


def _by_outcome(found: Explanation, operations: Iterable[Operation]) -> list[tuple[AccessOutcome, list[Operation]]]:
    outcomes: dict[AccessOutcome, list[Operation]] = {}
    for operation in operations:
        outcomes.setdefault(found.outcome(operation), []).append(operation)
    return list(outcomes.items())


def _in_order(sources: Sources) -> list[tuple[Level, Rule, bool]]:
    """Return all rules with their source, nearest first, and whether a nearer one is about the
    same.
    """
    seen: set[RuleSubject] = set()
    rules = []
    for level in Level:
        for rule in sources.rules_of(level):
            rules.append((level, rule, subject(rule) in seen))
            seen.add(subject(rule))
    return rules


def key_text(rule: Rule, project: bytes) -> str:
    """Return a rule's key for a terminal."""
    return display(spell_rule(rule, project).encode())


def _rule_fields(rule: Rule) -> dict[str, Any]:
    return {"key": spell_rule(rule), "state": rule.state.value, "source": rule.source}
