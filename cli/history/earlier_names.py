"""The names that paths had before they, or directories above them, were renamed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from yolofs.cli.history.chapter_span import ChapterSpan
from yolofs.cli.history.visible_records import may_show
from yolofs.journal.records import Rename
from yolofs.paths import RelPath, is_below


class EarlierNames:
    """The names of some paths at each moment of a history: those asked for, and what was called
    otherwise then.
    """

    def __init__(self, spans: Sequence[ChapterSpan], paths: Sequence[RelPath], root: bytes) -> None:
        """``spans`` are in their order; ``paths`` are of their end, below ``root``.  Without paths
        no record is read.
        """
        self._asked = tuple(paths)
        self._renames: dict[int | None, tuple[list[int], list[tuple[RelPath, ...]]]] = {}
        """By the number of the chapter's commit: the renames that gave one of the paths its name,
        by number, with all names until then; and as the last the names at the end.
        """
        names = self._asked
        for span in reversed(spans) if paths else ():
            numbers, until = [], [names]
            for number, rename in reversed(list(_renames(span, root))):
                before = tuple(dict.fromkeys((*self._asked, *(_before(rename, name) for name in names))))
                if before != names:
                    numbers.append(number)
                    until.append(before)
                    names = before
            self._renames[span.chapter.commit] = numbers[::-1], until[::-1]

    def at(self, span: ChapterSpan, number: int) -> tuple[RelPath, ...]:
        """Return the names after the record that has so many before it in its chapter."""
        numbers, until = self._renames.get(span.chapter.commit, ([], [self._asked]))
        return until[bisect_right(numbers, number)]

    def within(self, span: ChapterSpan) -> tuple[RelPath, ...]:
        """Return all names in a span."""
        _, until = self._renames.get(span.chapter.commit, ([], [self._asked]))
        return tuple(dict.fromkeys(name for names in until for name in names))


def _renames(span: ChapterSpan, root: bytes) -> Iterator[tuple[int, Rename]]:
    """Yield the renames that led to the present and may be shown, each with the number of records
    before it.
    """
    live = span.live
    for segment in range(span.start + 1, span.last + 1):
        if segment in live:
            for number, record in span.records(segment):
                if isinstance(record, Rename) and may_show(record, root):
                    yield number, record


def _before(rename: Rename, name: RelPath) -> RelPath:
    """Return what a path was called before a rename."""
    if is_below(name, rename.dst):
        return RelPath(rename.src + name[len(rename.dst) :])
    if rename.exchange and is_below(name, rename.src):
        return RelPath(rename.dst + name[len(rename.src) :])
    return name
