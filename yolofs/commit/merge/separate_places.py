"""Merging two texts that changed in separate places, where every line diff gives the same result.

Everything that a text changed lies between its unchanged first lines and its unchanged last lines:
its *place*.  A diff could move a change: a line inserted after an equal line may as well stand
before it.  So this decides nothing where the line before or after the place also occurs in it.
Elsewhere every diff leaves the lines outside of the place alone.  If unchanged lines lie between
the places of the two texts, a merge takes each place as its text has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from yolofs.text.line_diff import split_lines


class _ReplacedLines(NamedTuple):
    """Lines of the original text, and the lines that replace them."""

    start: int
    end: int
    lines: list[bytes]


def merge_apart(ours: bytes, was: bytes, theirs: bytes) -> bytes | None:
    """Return the merged text; None if it is not sure that what the texts changed is apart."""
    lines = split_lines(was)
    first, second = sorted((_place(lines, split_lines(ours)), _place(lines, split_lines(theirs))))
    if first.end >= second.start or _may_move(lines, first) or _may_move(lines, second):
        return None
    parts = lines[: first.start], first.lines, lines[first.end : second.start], second.lines, lines[second.end :]
    return b"".join(line for part in parts for line in part)


def _place(was: Sequence[bytes], lines: list[bytes]) -> _ReplacedLines:
    shorter = min(len(was), len(lines))
    start = next((at for at in range(shorter) if was[at] != lines[at]), shorter)
    rest = shorter - start
    tail = next((at for at in range(rest) if was[-1 - at] != lines[-1 - at]), rest)
    return _ReplacedLines(start, len(was) - tail, lines[start : len(lines) - tail])


def _may_move(was: list[bytes], place: _ReplacedLines) -> bool:
    around = was[max(0, place.start - 1) : place.start] + was[place.end : place.end + 1]
    return not {*was[place.start : place.end], *place.lines}.isdisjoint(around)
