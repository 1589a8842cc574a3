"""Chooses the places at which a run kills or fails something: by night all, else some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pytest

from tests.support.model_steps import is_nightly
from tests.support.seed import dice, sample

T = TypeVar("T")


def points(found: Sequence[T], *what: object, some: int, share: int = 0, shares: int = 1) -> list[T]:
    """Return one share of all points, in order: by night all of it, else ``some``, drawn for
    ``what``.

    They are drawn all over its length, and others in each run (:mod:`tests.support.seed`).
    """
    ours = found[share::shares]
    return list(ours) if is_nightly() else sample(ours, some, *what, share)


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of tests marked ``some`` that this run does not try: by night none."""
    cases: dict[str, list[pytest.Item]] = {}
    marked = [] if is_nightly() else [item for item in items if item.get_closest_marker("some") is not None]
    for item in marked:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found: list[pytest.Item] = []
    for test, all_cases in cases.items():
        marker = all_cases[0].get_closest_marker("some")
        assert marker is not None
        drawn = set(sample(range(len(all_cases)), marker.args[0], test))
        found += [item for number, item in enumerate(all_cases) if number not in drawn]
    return found


DRAWN = "drawn"


def ways(*found: str) -> list[str]:
    """Return the parameters of a fixture with several ways to prepare a test: by night all, else a
    stand-in for the way that :func:`way_of` draws.
    """
    return list(found) if is_nightly() else [DRAWN]


def way_of(request: pytest.FixtureRequest, *found: str) -> str:
    """Return in which of several ways a fixture with the parameters :func:`ways` prepares a test:
    one that is drawn for each.
    """
    way: str = request.param
    return dice(request.node.nodeid).choice(found) if way == DRAWN else way


def and_more(drawn: Iterable[T], rest: Iterable[T], is_enough: Callable[[], bool]) -> Iterator[T]:
    """Yield what was drawn, and of the rest as many as it takes until all was met that is to be
    met.
    """
    yield from drawn
    for one in rest:
        if is_enough():
            return
        yield one
