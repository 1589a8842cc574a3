"""The seed of all that a run of the tests draws: fresh each time, printed, and drawn from again if
it is given.

``YOLOFS_TEST_SEED=123 make test`` repeats what a run with that seed has drawn; so does
``make test SEED=123``.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from typing import TypeVar

VARIABLE = "YOLOFS_TEST_SEED"
T = TypeVar("T")


def seed() -> int:
    """Return the seed; the first to ask draws it, and the processes that it starts have the
    same.
    """
    return int(os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(1 << 32))))


def dice(*what: object) -> random.Random:
    """Return what draws for one purpose, the same whenever the seed is."""
    return random.Random(f"{seed()} {what}")


def sample(found: Sequence[T], count: int, *what: object) -> list[T]:
    """Return so many of what was found, in order, one from each of as many equal stretches; all if
    they are no more.
    """
    if count >= len(found):
        return list(found)
    drawing = dice(*what)
    bounds = [place * len(found) // count for place in range(count + 1)]
    return [found[drawing.randrange(first, end)] for first, end in itertools.pairwise(bounds)]
