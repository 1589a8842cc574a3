"""Writes a state anew, without some of its changes and with others merged: this settles conflicts
in the view.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from yolofs.audit.runs import ALSO
from yolofs.commit.select.choice import Layout
from yolofs.commit.select.entry_authors import Authors
from yolofs.commit.select.made_again import is_left_over
from yolofs.commit.select.split import Splitter, parents_first
from yolofs.commit.select.units import Unit, Units
from yolofs.journal.records import Fingerprint, Keep
from yolofs.paths import RelPath, StoreIno
from yolofs.state.kept_bases import Extra
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles


class Rebased(msgspec.Struct, frozen=True):
    """A staged file merged with what base has."""

    ino: StoreIno
    """What it is now."""
    home: RelPath
    """The base path that it was merged with."""
    base: Fingerprint
    """What base had there."""
    is_in_base: bool
    """Whether its data comes from there."""
    extra: Extra = ()


class Restated(msgspec.Struct, frozen=True):
    """A state as records over base as it is."""

    records: list[Keep]
    dropped: tuple[RelPath, ...]
    """All paths at which it shows base again, those that could not stay without them too."""


class _StayingUnits:
    """The units that stay: all except some, and those that depend on them."""

    def __init__(self, units: Units, dropped: Collection[RelPath]) -> None:
        self.taken: set[Unit] = {unit for unit in units.all if unit.paths.keys().isdisjoint(dropped)}
        self.layout = Layout(units, frozenset(self.taken))
        while homeless := [unit for unit in self.taken if self._is_homeless(unit)]:
            self.taken.difference_update(homeless)
            self.layout = Layout(units, frozenset(self.taken))

    def _is_homeless(self, unit: Unit) -> bool:
        return any(self.layout.of_slot(entry) is None for entry in unit.slots)


def restate(
    tree: Tree,
    base: Base,
    store: StoreFiles,
    authors: Authors,
    *,
    dropped: Collection[RelPath] = (),
    rebased: Mapping[StoreIno, Rebased] = {},
    made_again: Mapping[RelPath, StoreIno] = {},
) -> Restated:
    """Return a state without the units that change one of the ``dropped`` paths, and with files as
    they are merged.

    ``rebased`` tells that by the numbers of their store inodes.  ``made_again`` has the directories
    that base no longer has, and that the state gets as new ones.

    Raises:
        OSError: base or the store cannot be read.
    """
    units = Units(tree, base, store)
    kept = _StayingUnits(units, dropped)
    records = Splitter(units, kept, base, lambda _: True, authors).taken_as_state()
    gone = {path for unit in units.all if unit not in kept.taken for path in unit.paths}
    records = _with_directories([_merged(record, rebased, tree) for record in records], made_again, authors)
    return Restated(records, tuple(sorted(gone)))


def _with_directories(records: list[Keep], made_again: Mapping[RelPath, StoreIno], authors: Authors) -> list[Keep]:
    """Return records in which some directories are new ones, whatever they were; nothing in them
    leads to base.
    """
    if not made_again:
        return records
    tree = Tree(records)
    records = [record for record in records if not _is_left_over(record, tree, made_again)]
    touched = {record.path: record.touched_ns for record in records}
    new = [authors.sign(Keep(0, path, ino, touched_ns=touched.get(path, 0)), None) for path, ino in made_again.items()]
    return parents_first([*new, *(record for record in records if record.path not in made_again)])


def _is_left_over(record: Keep, tree: Tree, made_again: Collection[RelPath]) -> bool:
    entry = tree.find(record.path) if record.ino is None and record.path not in made_again else None
    return entry is not None and entry.parent is not None and is_left_over(entry, made_again)


def _merged(record: Keep, all_rebased: Mapping[StoreIno, Rebased], tree: Tree) -> Keep:
    """Return a record of a file as it is merged, if it is."""
    rebased = all_rebased.get(record.ino) if record.ino is not None else None
    if rebased is None or record.ino is None:
        return record
    key = tree.staged[record.ino].key
    run = tuple(field for field in record.extra if field[0] in ("run", ALSO))
    return msgspec.structs.replace(
        record,
        ino=rebased.ino,
        home=rebased.home,
        base=rebased.base,
        origin=rebased.home if rebased.is_in_base else None,
        key=key if isinstance(key, int) else 0,
        extra=(*run, *rebased.extra),
    )
