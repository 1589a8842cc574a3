"""At which of the places where something can be killed or fail a run does that: by night at all,
else at some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tests.support.model_steps import is_nightly
from tests.support.seed import sample

T = TypeVar("T")


def points(found: Sequence[T], *what: object, some: int, share: int = 0, shares: int = 1) -> list[T]:
    """Return what falls to one share of what was found, in order: by night all, else ``some``,
    drawn for ``what``.

    They are drawn all over its length, and others in each run (:mod:`tests.support.seed`).
    """
    ours = found[share::shares]
    return list(ours) if is_nightly() else sample(ours, some, *what, share)


def and_more(drawn: Iterable[T], rest: Iterable[T], is_enough: Callable[[], bool]) -> Iterator[T]:
    """Yield what was drawn, and of the rest as many as it takes until all was met that is to be
    met.
    """
    yield from drawn
    for one in rest:
        if is_enough():
            return
        yield one
