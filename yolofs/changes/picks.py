"""Picks: which hunks or lines of a change are chosen, and the text with just those.

A pick is written ``ID``, or ``ID:1-3,5`` for some of its changed lines.  Those that go are counted
first, from 1, then those that come.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from yolofs.changes.hunks import ID_CHARS, FileHunks, Hunk, HunkKind
from yolofs.errors import StaleHunkError, UsageError
from yolofs.paths import in_shell
from yolofs.text import line_diff

LineNumbers: TypeAlias = frozenset[int]
"""Changed lines of a hunk, counted from 1."""
Picks: TypeAlias = Mapping[str, LineNumbers | None]
"""Hunks by their ids: all of a hunk (None), or some of its lines."""

_pick = re.compile(rf"([0-9a-f]{{{ID_CHARS}}})(?::([0-9,-]+))?").fullmatch
_range = re.compile(r"([1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?").fullmatch
_MOST_LINES = 16 << 20
_NAMED = 5


def parse_picks(words: Iterable[str]) -> dict[str, LineNumbers | None]:
    """Return what some words pick; lines of one hunk that are picked twice add up.

    Raises:
        UsageError: a word is no pick.
    """
    picks: dict[str, LineNumbers | None] = {}
    for word in words:
        name, lines = _parse(word)
        known = picks.get(name, frozenset())
        picks[name] = None if lines is None or known is None else known | lines
    return picks


def spell_pick(name: str, lines: LineNumbers | None) -> str:
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


def _parse(word: str) -> tuple[str, LineNumbers | None]:
    found = _pick(word)
    if found is None:
        raise UsageError(
            f"{in_shell(os.fsencode(word))} is not a hunk: an id has {ID_CHARS} of 0-9 and a-f,"
            " and perhaps lines (:1-3,5)",
            hint="yolofs hunks",
        )
    return found[1], None if found[2] is None else frozenset(_lines(word, found[2]))


def _lines(word: str, text: str) -> Iterator[int]:
    for part in text.split(","):
        found = _range(part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not first <= last <= _MOST_LINES:
            raise UsageError(f"{word} names no lines: they are counted from 1, such as :1-3,5", hint="yolofs hunks")
        yield from range(first, last + 1)


def check_picks(picks: Picks, files: Iterable[FileHunks]) -> None:
    """Check that every pick is of a hunk that there is, and every line one of its lines.

    Raises:
        StaleHunkError: there is no such hunk (any more); the hint is the command that lists them.
        UsageError: lines are picked that it does not have, or of what goes only as a whole.
    """
    missing = dict.fromkeys(picks)
    for file in files:
        for hunk in file.hunks:
            if hunk.id in missing:
                del missing[hunk.id]
                _check_lines(hunk, picks[hunk.id])
    refuse_missing(missing)


def refuse_missing(ids: Iterable[str]) -> None:
    """Refuse hunks that are not there.

    Raises:
        StaleHunkError: there is at least one id.
    """
    missing = tuple(ids)
    if not missing:
        return
    what = f"there is no hunk {missing[0]}" if len(missing) == 1 else f"{len(missing)} of the hunks do not exist"
    named = "" if len(missing) == 1 else f" ({', '.join(missing[:_NAMED])}{' …' if len(missing) > _NAMED else ''})"
    raise StaleHunkError(
        f"{what}{named}: what it was about has changed since, or was committed or dropped",
        ids=missing,
        hint="yolofs hunks",
    )


def _check_lines(hunk: Hunk, lines: LineNumbers | None) -> None:
    if lines is None:
        return
    if hunk.kind not in (HunkKind.TEXT, HunkKind.ADDED) or not hunk.line_count:
        raise UsageError(f"hunk {hunk.id} is not text, so its lines cannot be picked", hint=f"name it whole: {hunk.id}")
    if max(lines) > hunk.line_count:
        raise UsageError(
            f"hunk {hunk.id} has {hunk.line_count} changed lines, and no line {max(lines)}", hint="yolofs hunks"
        )


def whole_if_all(hunk: Hunk, lines: LineNumbers | None) -> LineNumbers | None:
    """Return None where all lines of a hunk are picked, as then it is picked whole."""
    return None if lines is not None and len(lines) == hunk.line_count else lines


def all_but(files: Iterable[FileHunks], picks: Picks) -> dict[str, LineNumbers | None]:
    """Return the complement of ``picks``: hunks without a pick, and the other lines of those picked
    in part.
    """
    rest: dict[str, LineNumbers | None] = {}
    for file in files:
        for hunk in file.hunks:
            if hunk.id not in picks:
                rest[hunk.id] = None
            elif (lines := whole_if_all(hunk, picks[hunk.id])) is not None:
                rest[hunk.id] = frozenset(range(1, hunk.line_count + 1)) - lines
    return rest


def apply_picks(before: bytes, hunks: Iterable[Hunk], picks: Picks) -> bytes:
    """Return a text with just those of its hunks applied that are picked.

    ``before`` is the old text; ``hunks`` are all of one file, those that are about no lines are
    passed over.  With all picked it is the new text, with none the old one, byte for byte.

    Of a hunk that has as many new lines as old ones, each new line is taken to replace the old one
    beside it.  Of any other the new lines that are picked come behind the old ones that stay, as
    with git.
    """
    lines = line_diff.split_lines(before)
    result: list[bytes] = []
    at = 0
    for hunk in hunks:
        if hunk.id not in picks or hunk.kind not in (HunkKind.TEXT, HunkKind.ADDED):
            continue
        result += lines[at : hunk.old_start]
        result += _picked_lines(hunk, picks[hunk.id])
        at = hunk.old_start + len(hunk.old_lines)
    result += lines[at:]
    return _joined(result)


def _picked_lines(hunk: Hunk, lines: LineNumbers | None) -> list[bytes]:
    if lines is None:
        return list(hunk.new_lines)
    count = len(hunk.old_lines)
    stays = [[line] if number not in lines else [] for number, line in enumerate(hunk.old_lines, 1)]
    comes = [[line] if number in lines else [] for number, line in enumerate(hunk.new_lines, count + 1)]
    if len(stays) == len(comes):
        return [line for pair in zip(stays, comes, strict=True) for some in pair for line in some]
    return [line for some in (*stays, *comes) for line in some]


def _joined(lines: list[bytes]) -> bytes:
    """Return lines as one text; one without a line end gets one, unless it is the last."""
    return b"".join(
        line if line.endswith(b"\n") or number == len(lines) else line + b"\n" for number, line in enumerate(lines, 1)
    )
