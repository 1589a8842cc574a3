"""How long work tells how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Is called now and then with how much is done, and of how much."""

Check: TypeAlias = Callable[[], object]
"""Called again and again in long work; what it raises ends the work."""


def go_on() -> None:
    """Let work go on to its end."""


def told_as_progress(check: Check) -> Progress:
    """Return what calls ``check`` wherever progress is told."""

    def progress(_done: int, _all: int) -> None:
        check()

    return progress
