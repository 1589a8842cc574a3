"""Which of ``/tmp`` and ``/var/tmp`` a run gets as a directory of its own, and what of the view it
sees in there all the same.

``docs/design/private-tmp.md`` says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yolofs.paths import is_below, is_in
from yolofs.rules import Level, PathRule, Rule, RuleIndex, RuleSet, RuleState, Sources

TMP_DIRECTORIES = (b"/tmp", b"/var/tmp")
_OWN = (Level.SESSION, Level.LEARNED, Level.USER)
"""What only the user writes.  A tree could open what lies in ``/tmp`` on the host by a rule there,
were its rules among them.
"""


class Ruled(NamedTuple):
    """A directory that is the view's, as the user has a rule for something in there."""

    directory: bytes
    path: bytes
    """What the rule is about."""
    source: str
    """Where it is written."""


class TmpChoice(NamedTuple):
    """What a run gets."""

    private: tuple[bytes, ...] = ()
    """The directories that are private."""
    shown: tuple[bytes, ...] = ()
    """The directories in them that the view shows there: none lies in another."""
    ruled: tuple[Ruled, ...] = ()


def choose(sources: Sources, lived_in: Iterable[bytes], installed: Iterable[bytes]) -> TmpChoice:
    """Return what a run gets whose ``/tmp`` is to be private.

    ``lived_in`` are the project, the repository that it is a work tree of, and the home directory:
    all of them is the view's.  ``installed`` are the directories that yolofs runs from.  Looks at
    base, a few system calls.
    """
    whole = [os.path.realpath(path) for path in lived_in]
    candidates = [
        path
        for path in TMP_DIRECTORIES
        if os.path.isdir(path) and os.path.realpath(path) == path and not any(is_in(path, place) for place in whole)
    ]
    places = [*whole, *(path for path in installed if path not in candidates)]
    shown = _highest([path for path in places if os.path.isdir(path) and any(is_in(path, top) for top in candidates)])
    own = [rule for level in _OWN for rule in sources.rules_of(level)]
    ruled = [found for top in candidates if (found := _rule_in(top, own, shown)) is not None]
    levels = (level for level in Level if level is not Level.PROJECT)
    index = RuleIndex(*(_rules_over(candidates, sources.by_level.get(level, RuleSet())) for level in levels))
    kept = {one.directory for one in ruled}
    private = [top for top in candidates if top not in kept and index.at(top).state is RuleState.ALLOW]
    return TmpChoice(
        tuple(private),
        tuple(path for path in shown if any(is_below(path, top) for top in private)),
        tuple(ruled),
    )


def _rules_over(directories: Sequence[bytes], rules: RuleSet) -> RuleSet:
    """Return the rules that may decide over some directories: most are for paths elsewhere."""
    found = (
        rule
        for rule in rules.rules
        if not isinstance(rule, PathRule) or any(is_in(top, rule.path) for top in directories)
    )
    return RuleSet(tuple(found), rules.exempt)


def _rule_in(top: bytes, rules: Sequence[Rule], shown: Sequence[bytes]) -> Ruled | None:
    """Return the first of the rules that is about something in a directory, but not in what the
    view shows there.
    """
    for rule in rules:
        path = rule.path if isinstance(rule, PathRule) else rule.scope
        if is_below(path, top) and not any(is_below(path, place) for place in shown):
            return Ruled(top, path, rule.source)
    return None


def _highest(paths: Iterable[bytes]) -> list[bytes]:
    """Return the paths that lie in no other."""
    found: list[bytes] = []
    for path in sorted(set(paths)):
        if not any(is_below(path, above) for above in found):
            found.append(path)
    return found
