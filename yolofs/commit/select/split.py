"""Splitting a state in two: what a commit of a selection applies to base, and what then is left
staged.

The first is a tree over base as it is, the second one over base as it will be; the second shows the
very same view.  Both are written as :class:`~yolofs.journal.records.Keep` records, parents before
children.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from yolofs.commit.select.choice import Choice, HeldBack, Layout
from yolofs.commit.select.entry_authors import Authors
from yolofs.commit.select.left_times import LeftTimes
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.units import NOTHING_TOGETHER, Unit, Units, directory_of
from yolofs.commit.select.what_base_had import records_of_what_base_had
from yolofs.journal.records import Keep
from yolofs.paths import ROOT, RelPath, StoreIno, join
from yolofs.state.tree import Entry, Staged, Tree, natural_path
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles


class Split(msgspec.Struct, frozen=True):
    """A state in two parts."""

    taken: Tree
    """What is to be committed, over base as it is."""
    rest: tuple[Keep, ...]
    """What stays staged, over base as it will be; nothing if all of it is taken."""
    held_back: tuple[HeldBack, ...]
    """What was asked for and stays all the same."""
    stands_for: Mapping[StoreIno, RelPath | StoreIno] = {}
    """Of store inodes that were made for the rest: what each shows, as
    :attr:`yolofs.commit.select.staged_anew.ComposedRest.stands_for`.
    """


class Choosing(Protocol):
    """Which units are taken, and where directories lie then."""

    taken: set[Unit]
    layout: Layout


def takes_all(tree: Tree, selection: Selection) -> bool:
    """Tell cheaply that a selection takes a whole state, as it mostly does; false says nothing."""
    if selection.excluded is not None:  # what lies in a removed directory has to be looked at
        return False
    if tree.linked or tree.unlinked:  # base may have names of these files that nobody has looked at
        return False
    if not _is_taken(ROOT, tree.root, selection):
        return False
    todo: list[tuple[RelPath, Entry]] = [(ROOT, tree.root)]
    while todo:
        directory, above = todo.pop()
        is_whole = selection.has(directory) and selection.left_out_below(directory) is None
        for name, entry in (above.children or {}).items():
            staged = entry.staged
            is_from_base = entry.base is not None if staged is None else staged.home is not None
            if not entry.children and is_whole and not is_from_base:  # as nearly all of a large state
                continue
            path = join(directory, name)
            if not _is_taken(path, entry, selection):
                return False
            if entry.children:
                todo.append((path, entry))
    return True


def _is_taken(path: RelPath, entry: Entry, selection: Selection) -> bool:
    parent = entry.parent
    above = parent.source if parent is not None else None
    natural = join(above, entry.name) if above is not None else ROOT if parent is None else None
    shown = entry.staged.home if entry.staged is not None else entry.base
    if shown is not None and shown == natural:  # it is in its place, and perhaps only passed on the way to others
        return (entry.staged is None and not entry.touched_ns) or selection.has(path)
    paths = (path,) if shown is None else (path, shown)
    return all(selection.has(one) and selection.left_out_below(one) is None for one in paths)


def split_state(
    tree: Tree,
    base: Base,
    store: StoreFiles,
    selection: Selection,
    authors: Authors,
    *,
    may_leave_times: bool = False,
    whole: Collection[StoreIno] = (),
    together: Mapping[RelPath, RelPath] = NOTHING_TOGETHER,
) -> Split:
    """Split the state ``tree``.  Looks at base and the store and changes neither.

    With ``may_leave_times`` a file of which nothing but the time differs from base is no reason to
    hold names of it back: base's file keeps its time then, and the other one stays staged.
    ``whole``: the new directories that are taken with all that is in them or not at all;
    ``together``: names of the view that are taken with what base has at another path.

    Raises:
        OSError: base or the store cannot be read.
    """
    units = Units(tree, base, store, whole, together)
    choice = Choice(units, selection, base, may_leave_times=may_leave_times)
    splitter = Splitter(units, choice, base, selection.has_all, authors, left_times=choice.left_times)
    rest = splitter.rest()
    taken = tree
    if rest:
        taken = Tree(splitter.taken())
        taken.was = tree.was  # it is over the same base
        taken.left_times = frozenset(staged.ino for staged in choice.left_times)
    return Split(taken, tuple(rest), tuple(choice.held_back))


class Splitter:
    """Writes the records of the two parts of a state, as a choice of units divides it."""

    def __init__(
        self,
        units: Units,
        choice: Choosing,
        base: Base,
        has_all: Callable[[Iterable[bytes]], bool],
        authors: Authors,
        *,
        left_times: Mapping[Staged, RelPath] = {},
    ) -> None:
        """``left_times``: the files that are taken without their time, as :class:`Choice` has
        them.
        """
        self._units = units
        self._tree = units.tree
        self._taken = choice.taken
        self._layout = choice.layout
        self._base = base
        self._authors = authors
        self._left_times = LeftTimes(units, choice.layout, choice.taken, left_times)
        self._taken_in: set[Entry] = set()
        """The directories of which the commit changes names."""
        self._left_in: set[Entry] = set()
        """Those in which names stay changed."""
        for entry in units.slots:
            assert entry.parent is not None
            if self._left_times.leaves_alone(entry):
                continue
            (self._taken_in if units.of[entry] in self._taken else self._left_in).add(entry.parent)
        # Where names came and went without a trace but the time:
        self._taken_in.update(
            entry
            for entry in units.slots
            if entry.touched_ns and entry not in self._left_in and units.of[entry] in self._taken
        )
        for entry, path in units.inner.items():
            if entry.touched_ns and entry not in self._taken_in and entry not in self._left_in:
                is_wanted = has_all((path, self._source(entry)))
                (self._taken_in if is_wanted else self._left_in).add(entry)

    # ---- the two parts

    def _taken_records(self) -> list[Keep]:
        records = []
        for entry in self._units.slots:
            if self._units.of[entry] in self._taken and not self._left_times.leaves_alone(entry):
                path = _placed(self._layout.of_slot(entry))
                records.append(self._record(path, entry, entry.staged, entry.base, touched=entry in self._taken_in))
        for entry in self._units.inner:
            staged = entry.staged if self._is_itself_taken(entry) else None
            if staged is not None or entry in self._taken_in:
                path = _placed(self._layout.path(directory_of(entry)))
                source = self._source(entry) if staged is None else None
                records.append(self._record(path, entry, staged, source, touched=entry in self._taken_in))
        records += [
            self._nameless(staged, is_moved=False)
            for staged in self._files_without_names(is_taken=True)
            if staged not in self._left_times.files
        ]
        for path, staged in self._left_times.new_links_of():
            record = msgspec.structs.replace(self._file(path, staged, is_moved=False), replaces=True)
            records.append(self._authors.sign(record, staged))
        return records

    def taken(self) -> list[Keep]:
        """Return the entries over base as it is, with the paths that base will have."""
        counts = [self._count(*item) for item in self._tree.unlinked.items() if self._is_linked(item[0], is_taken=True)]
        return [*counts, *parents_first(self._taken_records())]

    def taken_as_state(self) -> list[Keep]:
        """Return the records of the taken part as a state that is still shown, with its hard links
        and what base had.
        """
        facts = [*self._unlinked_by(is_taken=True), *self._base_had(is_taken=True)]
        return [*facts, *parents_first(self._taken_records())]

    def rest(self) -> list[Keep]:
        """Return the entries over base as it will be, with the paths of the view."""
        records = []
        for entry, path in self._units.slots.items():
            if self._units.of[entry] not in self._taken:
                base = _placed(self._layout.path(entry.base)) if entry.base is not None else None
                records.append(self._record(path, entry, entry.staged, base, is_moved=True))
            elif entry in self._left_in and entry.touched_ns:
                records.append(self._passing(path, entry))
        for entry, path in self._units.inner.items():
            if entry.staged is not None and not self._is_itself_taken(entry):
                records.append(self._record(path, entry, entry.staged, None, is_moved=True))
            elif entry in self._left_in and entry.touched_ns:
                records.append(self._passing(path, entry))
        records += [self._nameless(staged, is_moved=True) for staged in self._files_without_names(is_taken=False)]
        counts = self._unlinked()
        for staged in self._left_times.files:
            files = self._left_times.records(staged)
            records += [self._authors.sign(record, staged) for record in files]
            if files[0].links and not files[0].is_nameless:
                counts.append(self._count(-files[0].key, len(files)))
        return [*counts, *self._base_had(is_taken=False), *parents_first(records)] if records else []

    def _is_itself_taken(self, entry: Entry) -> bool:
        """Tell whether what a directory in its place is itself is to be committed."""
        return entry.staged is not None and self._units.of[directory_of(entry)] in self._taken

    @staticmethod
    def _source(entry: Entry) -> RelPath:
        """Return the base path of an entry that is in its place."""
        source = entry.source
        assert source is not None
        return source

    # ---- records

    def _passing(self, path: RelPath, entry: Entry) -> Keep:
        """Return the record of a directory that base will have, but with another time."""
        return self._record(path, entry, None, _placed(self._layout.path(directory_of(entry))))

    def _record(
        self,
        path: RelPath,
        entry: Entry,
        staged: Staged | None,
        source: RelPath | None,
        *,
        touched: bool = True,
        is_moved: bool = False,
    ) -> Keep:
        record = self._file(path, staged, is_moved=is_moved) if staged is not None else Keep(0, path, source=source)
        touched_ns = entry.touched_ns if touched else 0
        replaces = entry.had_base and (staged is not None or source is not None) and entry in self._units.slots
        return self._authors.sign(msgspec.structs.replace(record, touched_ns=touched_ns, replaces=replaces), staged)

    def _nameless(self, staged: Staged, *, is_moved: bool) -> Keep:
        assert staged.home is not None
        record = self._file(self._path(staged.home, is_moved=is_moved), staged, is_moved=is_moved)
        return self._authors.sign(msgspec.structs.replace(record, is_nameless=True), staged)

    def _file(self, path: RelPath, staged: Staged, *, is_moved: bool) -> Keep:
        """Return the record of a path that shows a store inode; ``is_moved``: over base as it will
        be.
        """
        origin, home = staged.origin, staged.home
        key = staged.key if isinstance(staged.key, int) and staged.key != staged.ino else 0
        is_linked = staged.base is not None and self._tree.linked.get(staged.base.ino) is staged
        return Keep(
            0,
            path,
            staged.ino,
            origin=self._path(origin, is_moved=is_moved) if origin is not None else None,
            home=self._path(home, is_moved=is_moved) if home is not None else None,
            base=staged.base,
            key=key,
            links=staged.links if is_linked else 0,
        )

    def _base_had(self, *, is_taken: bool) -> list[Keep]:
        """Return records of what base had under the taken part, or under the rest; the rest lies
        over the new base.
        """
        slots = (entry for entry in self._units.slots if (self._units.of[entry] in self._taken) is is_taken)
        hidden = {natural for entry in slots if (natural := natural_path(entry)) is not None}
        records = records_of_what_base_had(
            self._tree, hidden, lambda path, _: path if is_taken else self._layout.path(path), self._base
        )
        return [self._authors.sign(record, None) for record in records]

    def _path(self, rel: RelPath, *, is_moved: bool) -> RelPath:
        return _placed(self._layout.path(rel)) if is_moved else rel

    # ---- files with several names in base

    def _files_without_names(self, *, is_taken: bool) -> Iterator[Staged]:
        for unit in self._units.all:
            if (unit in self._taken) is is_taken:
                yield from unit.nameless

    def _is_linked(self, number: int, *, is_taken: bool) -> bool:
        """Tell whether a base file is staged with all its names, and that is taken (or not)."""
        staged = self._tree.linked.get(number)
        return staged is not None and (self._unit_of(staged) in self._taken) is is_taken

    def _unit_of(self, staged: Staged) -> Unit:
        return self._units.of[staged.names[0] if staged.names else staged]

    def _unlinked(self) -> list[Keep]:
        """Return how many names of base files the view will still lack."""
        return self._unlinked_by(is_taken=False)

    def _unlinked_by(self, *, is_taken: bool) -> list[Keep]:
        hidden = self._count_hidden(is_taken=is_taken) if self._tree.unlinked else {}
        counts = []
        for number, before in self._tree.unlinked.items():
            count = before if self._is_linked(number, is_taken=is_taken) else hidden.get(number, 0)
            if count:
                counts.append(self._count(number, count))
        return counts

    def _count(self, number: int, count: int) -> Keep:
        return self._authors.sign(Keep(0, ROOT, source=ROOT, unlinked=(number, count)), None)

    def _count_hidden(self, *, is_taken: bool) -> dict[int, int]:
        """Return how many names base will have, of files with several, that other things hide, by
        number.
        """
        counts: dict[int, int] = {}
        for entry, number in self._units.numbers.items():
            has_moved = natural_path(entry) in self._units.moved  # and shows elsewhere
            if (self._units.of[entry] in self._taken) is is_taken and not has_moved:
                counts[number] = counts.get(number, 0) + 1
        for source, entry in self._units.removed.items():
            if (self._units.of[entry] in self._taken) is is_taken:
                for number in self._units.links_below(source):
                    counts[number] = counts.get(number, 0) + 1
        return counts


def _placed(path: RelPath | None) -> RelPath:
    assert path is not None, "what is chosen has a place"
    return path


def parents_first(records: list[Keep]) -> list[Keep]:
    """Return records in an order in which each directory has its own before what is in it."""
    return sorted(records, key=lambda record: record.path.count(b"/") + 1 if record.path else 0)
