"""The override trees of a journal's generations and of the present, and the changes between them.

A state is replayed from the journal's records.  A checkpoint (:mod:`yolofs.state.checkpoint`)
stands for the records at its beginning, so that a long session need not replay all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from yolofs.changes.changes import Change, compare
from yolofs.journal.journal import Journal
from yolofs.journal.records import ChangeRecord, Stage
from yolofs.journal.timeline import Timeline
from yolofs.paths import Generation, RelPath, StoreIno
from yolofs.progress import Progress
from yolofs.session.archive import store_numbers
from yolofs.state import checkpoint
from yolofs.state.checkpoint import Checkpoint
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.gc_pause import no_garbage_collection

CHECKPOINT_RECORDS = 20_000
"""Replaying this many records takes a tenth of a second or more."""


class PresentState(msgspec.Struct, frozen=True):
    """The present, ready for an overlay."""

    tree: Tree
    fresh_from: StoreIno
    """Store inodes from this number on were created after the last marker."""


class States:
    """The states of one session, ``directory`` its own."""

    def __init__(self, directory: bytes, base: Base, store: Store, journal: Journal) -> None:
        self.directory = directory
        self.base = base
        self.store = store
        self._read(journal)

    def _read(self, journal: Journal) -> None:
        """Go on with a journal that was opened just now."""
        self.journal = journal
        self.timeline = Timeline(at.marker for at in journal.markers)
        self._checkpoint: Checkpoint | None = None
        """The state that the journal's beginning leads to, if it is known."""

    def state(self, generation: Generation | None = None) -> Tree:
        """Return the override tree of a generation, or of the present with what is not snapshotted
        yet.

        Raises:
            JournalError: the journal contradicts itself.
        """
        timeline = self.timeline
        segments = timeline.live_segments if generation is None else timeline.segments_of(generation)
        with no_garbage_collection():
            tree, ranges = self._begun(segments)
            for start, end in ranges:
                for record in self._changes(start, end):
                    tree.apply(record)
        return tree

    def states(self, old: Generation, new: Generation | None) -> tuple[Tree, Tree]:
        """Return the override trees of two generations, as :meth:`state`; what they have in common
        is replayed once.
        """
        tree = self.state(old)
        return tree, self.state_after(tree, old, new)

    def state_after(self, tree: Tree, old: Generation, new: Generation | None) -> Tree:
        """Return the override tree of generation ``new`` (None: the present), where ``tree`` is
        that of ``old``.

        Raises:
            JournalError: the journal contradicts itself.
        """
        timeline = self.timeline
        before = timeline.segments_of(old)
        after = timeline.live_segments if new is None else timeline.segments_of(new)
        known = self._checkpoint.live if self._checkpoint is not None else ()
        holds_more = len(known) > len(before) and after[: len(known)] == known
        if holds_more or after[: len(before)] != before:
            return self.state(new)
        with no_garbage_collection():
            later = tree.copy()
            for segment in after[len(before) :]:
                for record in self._changes(*self.journal.segment_range(segment)):
                    later.apply(record)
        return later

    def apply_later(self, tree: Tree, start: int) -> None:
        """Bring a tree of the present up to date: ``start`` is how many bytes the journal had, and
        there was no marker since.
        """
        for record in self._changes(start, self.journal.size):
            tree.apply(record)

    def present(self) -> PresentState:
        """Return the present as an overlay needs it."""
        segments = self.timeline.live_segments
        known = self._checkpoint
        with no_garbage_collection():
            tree, ranges = self._begun(segments)
            fresh_from = self.store.next_ino
            if known is not None and known.live == segments:  # no marker since: what was fresh then still is
                fresh_from = min(fresh_from, known.fresh_from)
            for start, end in ranges[:-1]:
                for record in self._changes(start, end):
                    tree.apply(record)
            for record in self._changes(*ranges[-1]):
                if isinstance(record, Stage) and record.ino not in tree.staged:
                    fresh_from = min(fresh_from, record.ino)
                tree.apply(record)
        return PresentState(tree, StoreIno(fresh_from))

    def fresh_from(self) -> int:
        """Return a number below which no store inode is written to any more; that of
        :meth:`present`, or a lower one. Replays nothing.
        """
        start, end = self.journal.segment_range(len(self.journal.markers) + 1)
        named = (record.ino for record in self._changes(start, end) if isinstance(record, Stage))
        return min(named, default=self.store.next_ino)

    def _begun(self, segments: tuple[int, ...]) -> tuple[Tree, list[tuple[int, int]]]:
        """Return a tree to start from, and the byte ranges of the journal that lead from it to the
        state.
        """
        ranges = [self.journal.segment_range(segment) for segment in segments]
        known = self._checkpoint
        if known is None or segments[: len(known.live)] != known.live:
            return Tree(), ranges
        start, end = ranges[len(known.live) - 1]
        return known.tree(), [(max(start, known.size), end), *ranges[len(known.live) :]]

    @property
    def known_checkpoint(self) -> Checkpoint | None:
        """The state that the journal's beginning leads to, if it is known."""
        return self._checkpoint

    @property
    def checkpointed_records(self) -> int:
        """How many records the checkpoint spared that the session was opened with, or has written
        since.
        """
        return self._checkpoint.record_count if self._checkpoint is not None else 0

    def write_checkpoint(self, *, least_records: int = CHECKPOINT_RECORDS) -> bool:
        """Write a checkpoint of the present state, so that the next open need not replay the
        journal; return whether one was written.

        Not for fewer records since the last one, whoever wrote it, than ``least_records``.  What is
        written comes from a replay, whatever an overlay has in memory: the journal is the truth.  A
        session that was opened to be read may do it, too, while another process appends.

        Raises:
            OSError: it cannot be written.
        """
        if self.journal.record_count - self.checkpointed_records < least_records:
            return False
        self._take_checkpoint()
        if self.journal.record_count - self.checkpointed_records < least_records:
            return False
        state = self.present()
        made = checkpoint.make(
            self.journal.known(),
            state.tree,
            live=self.timeline.live_segments,
            fresh_from=state.fresh_from,
            numbers=self.journal_numbers(),
        )
        if not self.journal.goes_on:  # danger: the numbers may be those of another one, which ends in a loss
            return False
        checkpoint.write(self.directory, made)
        self._checkpoint = made
        return True

    def _take_checkpoint(self) -> None:
        """Take over a later checkpoint that another process has written."""
        known = checkpoint.read(self.directory)
        if known is None or known.record_count <= self.checkpointed_records:
            return
        if self.journal.begins_as(known.known):
            self._checkpoint = known

    def has_unsnapshotted(self) -> bool:
        """Tell whether anything changed since the last marker."""
        start, end = self.journal.segment_range(self.timeline.present + 1)
        return start != end

    def compare(
        self,
        old: Generation,
        new: Generation | None = None,
        *,
        paths: Sequence[RelPath] = (),
        progress: Progress | None = None,
        expand_renames: bool = False,
    ) -> list[Change]:
        """Return the net changes from generation ``old`` to ``new`` (None: now), sorted by path.

        ``expand_renames`` gives each file below a renamed directory a line of its own, as a patch
        needs it.
        """
        return compare(
            *self.states(old, new),
            self.base,
            self.store,
            paths=paths,
            progress=progress,
            expand_renames=expand_renames,
        )

    def live_changes(self) -> Iterator[ChangeRecord]:
        """Yield the records that lead to the present, oldest first."""
        for segment in self.timeline.live_segments:
            yield from self._changes(*self.journal.segment_range(segment))

    def _changes(self, start: int, end: int) -> Iterator[ChangeRecord]:
        """Return the records between two byte offsets of one segment, which holds no markers."""
        return cast("Iterator[ChangeRecord]", self.journal.read(start, end)) if start < end else iter(())

    def journal_numbers(self) -> set[int]:
        """Return the numbers of all store inodes that the journal names."""
        known = self._checkpoint
        if known is None:
            return store_numbers(self.journal.path)
        numbers = store_numbers(self.journal.path, known.size)
        for first, last in known.numbers:
            numbers.update(range(first, last + 1))
        return numbers
