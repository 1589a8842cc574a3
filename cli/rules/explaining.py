"""Explaining what the rules make of a path that a user typed."""

from __future__ import annotations

from yolofs.access.explain import THROUGH_LINKS, Explanation, explain
from yolofs.access.questions import Operation
from yolofs.cli.rules.in_force import sources_in_force
from yolofs.cli.rules.in_view import look_at_path
from yolofs.cli.rules.rule_keys import always_hidden, path_as_typed, typed_path
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState
from yolofs.rules.rule_files import with_waypoints


def explain_typed(project: bytes, path: bytes, only: Operation | None) -> Explanation:
    """Return what decides over a path as it was typed, with links followed as the view has them.

    A link at its end is followed if ``path`` ends with a slash, or if ``only`` is an operation that
    goes through links.
    """
    full = typed_path(project, path)
    follow_last = only in THROUGH_LINKS or path.endswith(b"/")
    there = look_at_path(project, full, path_as_typed(path) or full, follow_last=follow_last)
    full = there.path
    hidden = always_hidden(project, full)
    if hidden is not None:
        own = PathRule(hidden, RuleState.HIDDEN, "the session's own: no rule can show it")
        return explain(RuleBook(RuleSet((own,))), full)
    book = RuleBook(*with_waypoints(sources_in_force(project)).sets())
    return explain(
        book,
        full,
        there.kind,
        link=there.link,
        staged_names=there.staged_names,
        names=there.names,
        more_names_of=there.more_names_of,
    )
