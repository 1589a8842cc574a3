"""What the screen of a review has done in other threads; each method blocks.

What changes sessions is imported when it is first wanted, so that the first screen need not wait
for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from yolofs.changes.changes import Change
from yolofs.cli.review.accepted import AcceptedPart
from yolofs.cli.review.change_tree import Key, NodeTree
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.effects import Carried, Commit, Compare, DoneInView, Drop, Edit, Page, Prepare, Settle, Stop
from yolofs.cli.review.reader import Reader
from yolofs.cli.review.review_state import arrange_changes
from yolofs.errors import UsageError

_MANY = 1000
"""Of so many changes it takes a while to find what the host would run: they are shown before."""


class NewComparison(NamedTuple):
    """Another comparison, and what of the accepted is something else in it."""

    comparison: Comparison
    changed: list[Key]
    tree: NodeTree


class Worker:
    """Does what a model wants."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def begin(self) -> Comparison | None:
        """Read what the first screen shows, None if nothing is there so soon."""
        begun = self._reader.begin()
        if begun is None or begun.is_partial or len(begun.changes) >= _MANY:
            return begun
        return self._reader.with_marks(begun)

    def compare(self, effect: Compare, parts: Mapping[Key, AcceptedPart], *, with_marks: bool) -> NewComparison:
        """Compare the states; ``parts`` is what is accepted."""
        comparison = self._reader.compare(effect.at, is_last=effect.is_last)
        if with_marks or len(comparison.changes) < _MANY:
            comparison = self._reader.with_marks(comparison)
        changed: list[Key] = []
        if parts and comparison.is_last:
            from yolofs.cli.review.session_changes import what_changed

            changed = what_changed(self._reader, parts, comparison)
        return NewComparison(comparison, changed, arrange_changes(comparison))

    def mark(self, known: Comparison) -> NewComparison:
        """Find what the host would run or trust."""
        marked = self._reader.with_marks(known)
        return NewComparison(marked, [], arrange_changes(marked))

    def load(self, change: Change) -> DiffView:
        """Read the lines of a change."""
        file = self._reader.hunks(change)
        return DiffView(file, self._reader.texts(file) if change.old is not None and change.content else None)

    def has_grown(self, changes: list[Change]) -> bool:
        """Tell whether somebody has changed something since the last comparison."""
        return self._reader.has_grown(changes)

    def drop(self, effect: Drop, stop: Stop) -> tuple[str, DoneInView | None, list[Carried]]:
        """Drop what was picked.

        Raises:
            LookStoppedError: it is not wanted any more; nothing is done.
        """
        from yolofs.cli.review.session_changes import drop_picked_hunks

        return drop_picked_hunks(self._reader, effect, stop)

    def take_back(self, done: DoneInView) -> str:
        """Take a drop or an edit back."""
        from yolofs.cli.review.session_changes import take_last_back

        return take_last_back(self._reader, done)

    def prepare(self, effect: Prepare, stop: Stop) -> Page:
        """Make the page before a commit.

        Raises:
            LookStoppedError: it is not wanted any more.
        """
        from yolofs.cli.review.committing import prepare_commit

        return prepare_commit(self._reader, effect, stop)

    def settle(self, effect: Settle) -> tuple[str, DoneInView | None]:
        """Settle conflicts in the view."""
        from yolofs.cli.review.conflicts import settle_in_view

        return settle_in_view(self._reader, effect)

    def commit(self, effect: Commit) -> str:
        """Commit what a page has shown."""
        from yolofs.cli.review.committing import PreparedCommit, commit_prepared

        assert isinstance(effect.prepared, PreparedCommit)
        return commit_prepared(self._reader, effect.prepared)

    def texts(self, effect: Edit) -> tuple[bytes, bytes]:
        """Return both versions of what is to be edited.

        Raises:
            UsageError: it is no text any more.
        """
        texts = self._reader.texts(effect.file)
        if texts is None:
            raise UsageError("it is no text any more")
        return texts

    def edit(self, effect: Edit, texts: tuple[bytes, bytes]) -> bytes | None:
        """Have the user edit a hunk; return the new text, None if nothing is to change."""
        from yolofs.cli.commit.hunk_editing import edit_in_editor

        text = edit_in_editor(effect.hunk, texts, self._reader.directory)
        return None if text == texts[1] else text

    def stage(self, effect: Edit, was: bytes, text: bytes) -> tuple[str, DoneInView, list[Carried]]:
        """Stage a text in which a hunk was edited; ``was`` is what it was before."""
        from yolofs.cli.review.session_changes import stage_edit

        return stage_edit(self._reader, effect.file, effect.hunk, was, text)
