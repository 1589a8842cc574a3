"""At which of the places where something can be killed or fail a run does that: by night at all, else at some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tests.support.model_steps import is_nightly
from tests.support.seed import sample

T = TypeVar("T")


def points(found: Sequence[T], *what: object, some: int, share: int = 0, shares: int = 1) -> list[T]:
    """Return what falls to one share of what was found, in order: by night all, else ``some``, drawn for ``what``.

    They are drawn all over its length, and others in each run (:mod:`tests.support.seed`).
    """
    ours = found[share::shares]
    return list(ours) if is_nightly() else sample(ours, some, *what, share)
