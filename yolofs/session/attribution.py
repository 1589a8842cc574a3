"""Which runs made the differences between a state and a later one that was built on it.

The records in between are read in their order.  Each run's changes are kept at the present path of
the file or directory; if it is gone, at its path in the older state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import assert_never

from yolofs.audit.runs import run_of, runs_in
from yolofs.changes.changes import Change, ChangeKind
from yolofs.journal.journal import Journal
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.journal.timeline import Timeline
from yolofs.paths import RelPath, StoreIno, join, split

_RUN_FIELD = re.compile(rb" run=(\d+)")  # a path has no space in a record
NO_RUN = 0
"""Stands for whoever is in no run."""


class _Node:
    """A name of the newer state."""

    __slots__ = ("children", "is_placed", "moved", "old", "touched")

    def __init__(self, old: RelPath | None = None, *, is_placed: bool = False) -> None:
        self.children: dict[bytes, _Node] = {}
        self.touched: set[int] = set()
        """Who made, wrote or changed it."""
        self.moved: set[int] = set()
        """Who brought it here, with all that is below."""
        self.old = old
        """With ``is_placed``: the path that it had in the older state, None if it was not there."""
        self.is_placed = is_placed
        """Whether it did not just come along with its directory."""


class Attribution:
    """Who changed what, by the records since an older state."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Take in records, oldest first."""
        self._root = _Node()
        self._touched: dict[RelPath, set[int]] = {}
        """Who wrote or changed what the older state had at a path."""
        self._gone: dict[RelPath, set[int]] = {}
        """Who took it away."""
        self._files: dict[StoreIno, _Node] = {}
        """The name by which a staged file was written last; it may have others (hard links)."""
        for record in records:
            self._take(record)

    def runs_of(self, change: Change) -> frozenset[int]:
        """Return the runs that a change is due to, :data:`NO_RUN` among them; none if no record
        tells.  What has several names is recorded by one of them.
        """
        old = change.old_path if change.old_path is not None else change.path
        found = self.runs_at(change.path, old, is_gone=change.kind is ChangeKind.DELETED)
        if found or change.new is None or change.new.meta_ino is None:
            return found
        by_other_name = self._files.get(change.new.meta_ino)
        return frozenset(by_other_name.touched) if by_other_name is not None else found

    def runs_at(self, path: RelPath, old: RelPath, *, is_gone: bool) -> frozenset[int]:
        """Return the runs that touched what is at ``path`` now and was at ``old`` in the older
        state; or what is gone from there.
        """
        if is_gone:
            return frozenset(_nearest(self._gone, old) or self._touched.get(old, set()))
        node, carried = self._root, set[int]()
        for name in path.split(b"/") if path else ():
            found = node.children.get(name)
            if found is None:
                return frozenset(carried)
            node = found
            carried = node.moved or carried
        return frozenset(node.touched | node.moved | self._gone.get(old, set())) or frozenset(carried)

    def _take(self, record: Record) -> None:
        run = run_of(record)
        match record:
            case Keep() if record.had is not None:
                pass
            case Stage() | Keep():
                node, old = self._at(record.path)
                if record.ino is not None:
                    self._files[record.ino] = node
                for author in runs_in(record):
                    node.touched.add(author)
                    self._note(self._touched, old, author)
            case Delete():
                _, old = self._at(record.path)
                self._put(record.path, _Node(is_placed=True))
                self._note(self._gone, old, run)
            case Rename(exchange=True):
                (one, old_one), (other, old_other) = self._at(record.src), self._at(record.dst)
                self._move(one, old_one, record.dst, run)
                self._move(other, old_other, record.src, run)
            case Rename():
                node, old = self._at(record.src)
                _, replaced = self._at(record.dst)
                self._put(record.src, _Node(is_placed=True))
                self._move(node, old, record.dst, run)
                self._note(self._gone, old, run)
                self._note(self._gone, replaced, run)
            case Snapshot() | Travel():
                pass
            case _:
                assert_never(record)

    def _at(self, path: RelPath) -> tuple[_Node, RelPath | None]:
        """Return the node of a path, made if need be, and what its path was in the older state."""
        node, old = self._root, RelPath(b"")
        found: RelPath | None = old
        for name in path.split(b"/") if path else ():
            below = node.children.get(name)
            if below is None:
                below = node.children[name] = _Node()
            found = below.old if below.is_placed else join(found, name) if found is not None else None
            node = below
        return node, found

    def _put(self, path: RelPath, node: _Node) -> None:
        directory, name = split(path)
        self._at(directory)[0].children[name] = node

    def _move(self, node: _Node, old: RelPath | None, path: RelPath, run: int) -> None:
        node.old, node.is_placed = old, True
        node.moved.add(run)
        self._put(path, node)

    @staticmethod
    def _note(where: dict[RelPath, set[int]], path: RelPath | None, run: int) -> None:
        if path is not None:
            where.setdefault(path, set()).add(run)


def _nearest(where: dict[RelPath, set[int]], path: RelPath) -> set[int]:
    """Return what is noted for a path, or else for the nearest directory above it."""
    while path:
        if path in where:
            return where[path]
        path = split(path)[0]
    return set()


def runs_of(changes: Iterable[Change], journal: Journal, records: Callable[[], Iterable[Record]]) -> set[int]:
    """Return the runs that differences from base are due to; ``records`` reads those since then.

    To follow each record takes a fifth of a large commit, so nothing is followed where one run, or
    none, has made all that the journal has.

    Raises:
        OSError: the journal cannot be read.
    """
    with open(journal.path, "rb") as file:
        text = file.read()
    noted = _RUN_FIELD.findall(text)
    if not noted:
        return set()
    if b" also=" not in text and len(set(noted)) == 1 and len(noted) == sum(journal.segment_counts()):
        return {int(noted[0])}
    attribution = Attribution(records())
    return {run for change in changes for run in attribution.runs_of(change)} - {NO_RUN}


def attribute(timeline: Timeline, journal: Journal, before: int, after: int | None) -> Attribution | None:
    """Return who made the differences between two generations (``after`` None: until now).

    None if the second was not built on the first, as after a travel to an earlier one: then no
    records tell.
    """
    old = timeline.segments_of(before)
    new = timeline.segments_of(after) if after is not None else timeline.live_segments
    if new[: len(old)] != old:
        return None
    return Attribution(record for segment in new[len(old) :] for record in journal.read_segment(segment))
