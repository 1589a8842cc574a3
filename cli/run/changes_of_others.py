"""The changes of a run, told apart from those made meanwhile by other runs, and by processes in
none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from yolofs.changes.changes import Change
from yolofs.changes.counting import counts
from yolofs.cli.show.listing import summary, without_scratch
from yolofs.session.attribution import NO_RUN, Attribution
from yolofs.state.regions import Regions


class ChangesByRun(NamedTuple):
    """The changes from before a run until its end, sorted by the run that made them."""

    own: list[Change]
    """The changes of the run, and those of which no record tells who made them."""
    also: dict[int, tuple[int, ...]]
    """Which others had a part in a change of the run, by ``id`` of the change."""
    others: dict[int, list[Change]]
    """Those that the run had no part in, by run; one that several made is there for each of
    them.
    """

    def without(self, runs: Iterable[int]) -> ChangesByRun:
        """Return the same without what some of the others did alone."""
        left_out = frozenset(runs)
        return self._replace(others={run: some for run, some in self.others.items() if run not in left_out})


def divide_by_run(changes: Sequence[Change], run: int, attribution: Attribution | None) -> ChangesByRun:
    """Return the changes, sorted by the run that made them.  Without an ``attribution``, all count
    as the run's.
    """
    work = ChangesByRun([], {}, {})
    for change in changes:
        runs = attribution.runs_of(change) if attribution is not None else frozenset[int]()
        others = tuple(sorted(runs - {run}))
        if others and run not in runs:
            for other in others:
                work.others.setdefault(other, []).append(change)
            continue
        work.own.append(change)
        if others:
            work.also[id(change)] = others
    return work


def other_runs_text(others: Collection[int]) -> str:
    """Return who else had a part in a change, for the end of its line; empty if nobody had."""
    return f"  (also: {', '.join(map(_name, others))})" if others else ""


def meanwhile(work: ChangesByRun, going_on: Sequence[int], regions: Regions, where: str) -> list[str]:
    """Return a line for each of the others: what they changed in ``where``, a range, and whether
    they go on.
    """
    lines = []
    for number in sorted({*work.others, *going_on}):
        changes = without_scratch(work.others.get(number, ()), regions)
        if not changes and number not in going_on:
            continue
        name = _name(number) + (", which goes on" if number in going_on else "")
        see = f": yolofs diff {where} --list" if number == NO_RUN else f": yolofs diff --run {number}"
        lines.append(f"  {name}: {summary(changes)}" + (see if changes else " so far"))
    return lines


def meanwhile_fields(work: ChangesByRun, going_on: Sequence[int]) -> list[dict[str, Any]]:
    """Return what other runs changed meanwhile, for a JSON document."""
    return [
        {"run": number or None, "goes_on": number in going_on, "counts": counts(work.others.get(number, ()))}
        for number in sorted({*work.others, *going_on})
    ]


def _name(number: int) -> str:
    return "in no run" if number == NO_RUN else f"run {number}"
