"""How much changed in which file: what ``git diff --stat`` tells."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from yolofs.changes.changes import Change
from yolofs.changes.patch_files import ComparedPair, Reading, pairs_of
from yolofs.changes.patch_notes import Notes
from yolofs.paths import ROOT, RelPath


class FileStat(msgspec.Struct, frozen=True):
    """How much changed in one file; paths are relative to the prefix."""

    path: bytes
    old_path: bytes | None
    """Where it was before, if that is another path."""
    added: int
    """In lines; of a binary file 0."""
    removed: int
    sizes: tuple[int, int] | None
    """Of a binary file how many bytes it had and has."""


def stat_changes(
    changes: Iterable[Change], reading: Reading, *, prefix: RelPath = ROOT
) -> tuple[list[FileStat], list[str]]:
    """Return how much changed in each file of a patch of the changes, sorted by path, and what no
    patch can express.

    The changes are as for :func:`yolofs.changes.patch.write_patch`.

    Blocks while files are read.

    Raises:
        ValueError: a change stands for all that is below a renamed directory.
    """
    notes = Notes(prefix)
    found = [_stat(compared) for pair in pairs_of(changes, prefix, notes) if (compared := reading.compare(pair, notes))]
    return sorted((one for one in found if one is not None), key=lambda one: one.path), notes.all()


def _stat(compared: ComparedPair) -> FileStat | None:
    """Return how much changed; None where there is nothing that a patch would tell."""
    pair, texts = compared.pair, compared.texts
    last = pair.new or pair.old
    assert last is not None
    both = (pair.old, pair.new) if pair.old is not None and pair.new is not None else None
    has_head = both is None or both[0].path != both[1].path or both[0].mode != both[1].mode
    if not (has_head or compared.differs):
        return None
    old_path = pair.old.path if pair.old is not None and pair.old.path != last.path else None
    if texts is not None or not compared.differs:
        added, removed = (sum(texts.added), sum(texts.removed)) if texts is not None else (0, 0)
        return FileStat(last.path, old_path, added, removed, None)
    return FileStat(last.path, old_path, 0, 0, (compared.old.size, compared.new.size))
