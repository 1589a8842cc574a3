"""How many changes of which kind there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from yolofs.changes.changes import Change, ChangeKind


def counts(changes: Iterable[Change]) -> dict[str, int]:
    """Return how many changes of each kind there are, by letter, zeros included."""
    found = Counter(change.kind.value for change in changes)
    return {kind.value: found[kind.value] for kind in ChangeKind}
