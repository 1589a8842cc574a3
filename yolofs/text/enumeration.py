"""Names in the middle of a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first ``most`` names with commas between them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
