"""What somebody picks of the hunks of a change, and what a text is with just that.

A pick is written ``ID``, or ``ID:1-3,5`` for some of its changed lines.  Those that go are counted first, from 1, then
those that come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from yolofs.changes.hunks import ID_CHARS, FileHunks, Hunk, HunkKind
from yolofs.errors import StaleHunkError, UsageError
from yolofs.text import line_diff

Lines: TypeAlias = frozenset[int]
"""Changed lines of a hunk, counted from 1."""
Picks: TypeAlias = Mapping[str, Lines | None]
"""Hunks by their ids: all of a hunk (None), or some of its lines."""

_pick = re.compile(r"([0-9a-f]{%d})(?::([0-9,-]+))?" % ID_CHARS).fullmatch
_range = re.compile(r"([1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?").fullmatch
_MOST_LINES = 16 << 20


def parse_picks(words: Iterable[str]) -> dict[str, Lines | None]:
    """Return what some words pick; who picks lines of one hunk twice gets both.

    Raises:
        UsageError: a word is no pick.
    """
    picks: dict[str, Lines | None] = {}
    for word in words:
        name, lines = _parse(word)
        known = picks.get(name, frozenset())
        picks[name] = None if lines is None or known is None else known | lines
    return picks


def spell(name: str, lines: Lines | None) -> str:
    """Return a pick as :func:`parse_picks` reads it."""
    if lines is None:
        return name
    runs: list[list[int]] = []
    for line in sorted(lines):
        if runs and runs[-1][1] == line - 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return f"{name}:" + ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def check_picks(picks: Picks, files: Iterable[FileHunks]) -> None:
    """See that every pick is of a hunk that there is, and every line one of its lines.

    Raises:
        StaleHunkError: there is no such hunk (any more); the hint is the command that lists them.
        UsageError: lines are picked that it does not have, or of what goes only as a whole.
    """


def pick_all(files: Iterable[FileHunks]) -> dict[str, Lines | None]:
    """Return a pick of each hunk, whole."""
    return {hunk.id: None for file in files for hunk in file.hunks}


def all_but(files: Iterable[FileHunks], picks: Picks) -> dict[str, Lines | None]:
    """Return what ``picks`` leaves: the hunks that it does not have, and of those that it has a part of, the rest."""


def apply_picks(before: bytes, hunks: Iterable[Hunk], picks: Picks) -> bytes:
    """Return a text with just those of its hunks applied that are picked.

    ``before`` is the old text; ``hunks`` are all of one file, those that are about no lines are passed over.  With all
    picked it is the new text, with none the old one, byte for byte.
    """
