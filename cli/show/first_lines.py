"""Lists that may be long: their first lines, and how many more there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

MOST_LINES: Final = 20
"""How many lines of such a list are shown, and how many paths a hint names at most."""


def first_lines(items: Sequence[T], text: Callable[[T], str], more: str, *, most: int = MOST_LINES) -> Iterator[str]:
    """Yield a line for each of the first items, and at the end how many others there are.

    ``more`` says of what: "paths that stay".
    """
    yield from map(text, items[:most])
    if len(items) > most:
        yield f"… and {len(items) - most} more {more}"
