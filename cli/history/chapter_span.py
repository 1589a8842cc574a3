"""A part of one chapter of a session's history, by segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from yolofs.journal.records import Record
from yolofs.paths import Generation
from yolofs.session.history.chapters import Chapter, DroppedJournal


def told_ns(time_ns: int, generation: int, commit_ns: int | None) -> int:
    """Return the time to show for what leads to a generation or starts it, after a commit that was
    done at ``commit_ns``.

    What a commit leaves staged, generation 1, was written down before it was done.
    """
    return max(time_ns, commit_ns or 0) if generation == 1 else time_ns


class ChapterSpan(NamedTuple):
    """What of a chapter is wanted."""

    chapter: Chapter
    start: Generation
    end: Generation | None
    dropped: Sequence[DroppedJournal] = ()
    """What was dropped before it, if that is wanted."""

    @property
    def last(self) -> int:
        """The last segment of it."""
        return self.end if self.end is not None else self.chapter.timeline.present + 1

    @property
    def live(self) -> set[int]:
        """The segments that led to the present, including those before it was written anew."""
        timeline = self.chapter.timeline
        return {int(node.number) for node in timeline.nodes() if node.is_live} | {timeline.present + 1}

    def first_number(self, segment: int) -> int:
        """Return how many records come before a segment, markers counted."""
        return sum(self.chapter.journal.segment_counts()[: segment - 1]) + segment - 1

    def records(self, segment: int) -> Iterator[tuple[int, Record]]:
        """Yield the records of a segment, each with how many come before it."""
        yield from enumerate(self.chapter.journal.read_segment(Generation(segment)), self.first_number(segment))
