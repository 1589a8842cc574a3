"""The right side of a review: the lines of one change, each made when it is looked at."""

from __future__ import annotations

import contextlib
import stat
from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from yolofs.changes.changes import Side
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.cli.show.json_forms import type_name
from yolofs.paths import display
from yolofs.text import line_diff

CONTEXT = 3
"""So many lines around a hunk."""


class LineKind(Enum):
    """What a line is."""

    TITLE = "title"
    """The first line of a hunk."""
    CONTEXT = "context"
    OLD = "old"
    NEW = "new"
    NOTE = "note"


class DiffLine(NamedTuple):
    """One line."""

    kind: LineKind
    text: bytes
    hunk: int = -1
    """The place of its hunk, -1 of context."""
    number: int = 0
    """Which changed line of its hunk it is, from 1; 0 of others."""


class _Run(NamedTuple):
    """Lines of one kind that follow each other in one of the texts."""

    kind: LineKind
    lines: Sequence[bytes]
    start: int
    end: int
    hunk: int
    first: int
    """The number of the first one in its hunk."""


class DiffView:
    """The lines of a change."""

    def __init__(self, file: FileHunks, texts: tuple[bytes, bytes] | None = None) -> None:
        """``texts`` are both versions, for the lines around hunks."""
        self.file = file
        self._runs: list[_Run] = []
        self._starts: list[int] = []
        self.count = 0
        """How many lines there are."""
        self._firsts: list[int] = []
        old = line_diff.split_lines(texts[0]) if texts is not None else []
        at = 0
        for number, hunk in enumerate(file.hunks):
            if hunk.kind is HunkKind.TEXT:
                after = file.hunks[number + 1] if number + 1 < len(file.hunks) else None
                at = self._add_text(number, hunk, old, at, after)
            else:
                self._add_fact(number, hunk)

    def line(self, row: int) -> DiffLine:
        """Return a line by its place."""
        at = bisect_right(self._starts, row) - 1
        run = self._runs[at]
        offset = row - self._starts[at]
        return DiffLine(run.kind, run.lines[run.start + offset], run.hunk, run.first + offset if run.first else 0)

    def hunk_of(self, row: int) -> Hunk | None:
        """Return the hunk of a line, None of context."""
        number = self.line(row).hunk if self.count else -1
        return self.file.hunks[number] if number >= 0 else None

    def first_of(self, number: int) -> int:
        """Return the first line of a hunk, by its place."""
        return self._firsts[number]

    def other_line(self, line: DiffLine) -> bytes | None:
        """Return the line that takes the place of an old one, or that a new one takes the place
        of.
        """
        hunk = self.file.hunks[line.hunk]
        if not line.number or len(hunk.old_lines) != len(hunk.new_lines):
            return None
        count = len(hunk.old_lines)
        if line.kind is LineKind.OLD:
            return hunk.new_lines[line.number - 1]
        return hunk.old_lines[line.number - 1 - count]

    def _add_text(self, number: int, hunk: Hunk, old: Sequence[bytes], at: int, after: Hunk | None) -> int:
        end = hunk.old_start + len(hunk.old_lines)
        self._add(
            LineKind.CONTEXT, old, max(at, min(hunk.old_start - CONTEXT, len(old))), min(hunk.old_start, len(old))
        )
        self._add_title(number, _ranges(hunk))
        self._add_changed(number, hunk)
        next_start = after.old_start if after is not None and after.kind is HunkKind.TEXT else len(old)
        upto = min(end + CONTEXT, next_start, len(old))
        self._add(LineKind.CONTEXT, old, end, upto)
        return max(upto, end)

    def _add_fact(self, number: int, hunk: Hunk) -> None:
        self._add_title(number, fact(self.file, hunk))
        self._add_changed(number, hunk)

    def _add_title(self, number: int, text: bytes) -> None:
        self._firsts.append(self.count)
        self._add(LineKind.TITLE, [text], 0, 1, number)

    def _add_changed(self, number: int, hunk: Hunk) -> None:
        count = len(hunk.old_lines)
        self._add(LineKind.OLD, hunk.old_lines, 0, count, number, 1)
        self._add(LineKind.NEW, hunk.new_lines, 0, len(hunk.new_lines), number, count + 1)

    def _add(
        self, kind: LineKind, lines: Sequence[bytes], start: int, end: int, hunk: int = -1, first: int = 0
    ) -> None:
        if end > start:
            self._starts.append(self.count)
            self._runs.append(_Run(kind, lines, start, end, hunk, first))
            self.count += end - start


def _ranges(hunk: Hunk) -> bytes:
    return b"@@ -%b +%b @@" % (
        _range(hunk.old_start, len(hunk.old_lines)),
        _range(hunk.new_start, len(hunk.new_lines)),
    )


def _range(start: int, count: int) -> bytes:
    return b"%d" % (start + 1) if count == 1 else b"%d,%d" % (start + 1 if count else start, count)


def fact(file: FileHunks, hunk: Hunk) -> bytes:
    """Return in words what a hunk says of a file as a whole."""
    change = file.change
    match hunk.kind:
        case HunkKind.ADDED | HunkKind.DELETED:
            side = change.new if hunk.kind is HunkKind.ADDED else change.old
            return f"{hunk.kind.value}: {_kind_and_size(side) if side is not None else ''}".encode()
        case HunkKind.RENAMED:
            return b"renamed from " + (change.old_path or b"")
        case HunkKind.TYPE if change.old is not None and change.new is not None:
            old, new = map(_kind_and_size, (change.old, change.new))
            return f"another type: {old} -> {new}".encode()
        case HunkKind.BINARY if change.old is not None and change.new is not None:
            return f"not text: {change.old.size} -> {change.new.size} bytes".encode()
        case HunkKind.TIME:
            return b"time"
        case HunkKind.XATTRS:
            return b"extended attributes"
    return f"{hunk.kind.value}: {hunk.old} -> {hunk.new}".encode()


def _kind_and_size(side: Side) -> str:
    name = type_name(side)
    if side.type == stat.S_IFLNK:
        with contextlib.suppress(OSError):
            return f"{name} -> {display(side.target())}"
    return f"{name} of {side.size} byte{'s' if side.size != 1 else ''}" if side.type == stat.S_IFREG else name
