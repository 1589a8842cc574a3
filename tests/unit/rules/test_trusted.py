"""The cost of judging a tree's rules, in steps, and the rules in force if it would be too high."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import pytest

from tests.support.fault_points import points
from yolofs.config.settings import RuleLine
from yolofs.config.trust import WaitingLine
from yolofs.registry.trust import Agreed
from yolofs.rules import Level, PathRule, RuleIndex, RuleSet, RuleState, parse_rules
from yolofs.rules import budget as budgets
from yolofs.rules.preset import preset_rules
from yolofs.rules.trusted import TrustedRules

PROJECT, HOME = b"/home/u/src/p", b"/home/u"
State: TypeAlias = Literal["allow", "read-only", "write-ask", "ask", "deny", "hidden"]
STATES: tuple[State, ...] = ("deny", "allow", "hidden", "read-only")
PRESET = preset_rules(PROJECT, HOME, 0, (), b"/home/u/.config/yolofs")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What each step that was asked for cost."""
    taken: list[int] = []
    take = budgets.Budget.take

    def note(self: budgets.Budget, steps: int = 1) -> None:
        take(self, steps)
        taken.append(steps)

    monkeypatch.setattr(budgets.Budget, "take", note)
    return taken


def part(keys: Mapping[str, State], user: RuleSet = RuleSet()) -> tuple[RuleIndex, tuple[WaitingLine, ...]]:  # noqa: B008 - it is frozen
    lines = [RuleLine(key, state, at) for at, (key, state) in enumerate(keys.items(), 1)]
    rules = parse_rules(lines, PROJECT, HOME).rules
    others = {Level.USER: user, Level.PRESET: PRESET}
    parted = TrustedRules.find(lines, rules, others, Agreed(), PROJECT, HOME, lambda _: None)
    by_level = {**others, Level.PROJECT: parted.in_force}
    return RuleIndex(*(by_level.get(level, RuleSet()) for level in Level)), parted.waiting


SHAPES: dict[str, Callable[[int], str]] = {
    "plain": lambda n: f"**/*.x{n}",
    "nested": lambda n: f"d{n}/**/x{n}",
    "deep": lambda n: "d/" * (n % 40 + 1) + f"**/x{n}",
    "in each other": lambda n: "d/" * (n + 1) + "**/q",
    "paths": lambda n: f"d{n}",
    "outside": lambda n: f"~/d{n}",
    "dots": lambda n: "**/*" + ".a" * n + f".x{n}",
}


@pytest.mark.parametrize(
    ("count", "shape"), points(list(itertools.product([5, 50, 1000], SHAPES)), "what a tree writes", some=5)
)
def test_whatever_a_tree_writes_judging_it_ends_after_so_many_steps(taken: list[int], shape: str, count: int) -> None:
    part({SHAPES[shape](number): STATES[number % 4] for number in range(count)})
    assert sum(taken) <= budgets.MOST_STEPS + budgets.MOST_LOOKS


@pytest.mark.parametrize("shape", ["plain", "nested", "paths", "outside"])
@pytest.mark.parametrize("state", ["deny", "hidden"])
def test_rules_that_only_tighten_hold_however_many_they_are_without_a_comparison(
    taken: list[int], shape: str, state: State
) -> None:
    _, waiting = part({SHAPES[shape](number): state for number in range(1000)})
    assert waiting == ()
    assert sum(taken) < budgets.MOST_LOOKS // 2


def test_beside_what_cannot_be_judged_what_tightens_holds() -> None:
    keys: dict[str, State] = {f"{'d/' * (number + 1)}**/q{number}": "allow" for number in range(100)}
    index, waiting = part({**keys, "**/*.x": "deny", "vendor": "deny", "docs/**": "read-only", "ask": "ask"})
    states = {
        name: index.at(PROJECT + b"/" + os.fsencode(name)).state.value for name in ("a.x", "vendor/a", "docs/a", "ask")
    }
    assert states == {"a.x": "deny", "vendor/a": "deny", "docs/a": "read-only", "ask": "ask"}
    assert {one.key[1] for one in waiting} == {*keys, "docs/**"}
    assert index.at(b"/home/a.x").state is RuleState.HIDDEN  # /home is a way: denied, the name would be seen


def test_a_rule_that_hides_waits_where_patterns_would_count_again() -> None:
    """What is hidden there can be entered, as it leads to something open: names in it were kept out
    so far.
    """
    user = parse_rules([("/a/**", "hidden", 1), ("/a/b/c", "allow", 2), ("**/k", "allow", 3)], None, HOME)
    keys: dict[str, State] = {f"{'d/' * (number + 1)}**/q{number}": "allow" for number in range(100)}
    index, waiting = part({**keys, "/a/b": "hidden"}, user)
    assert index.at(b"/a/b/k").state is RuleState.HIDDEN
    assert "/a/b" in {one.key[1] for one in waiting}
    assert not any(isinstance(rule, PathRule) for source in index.sources[2:3] for rule in source.rules)
