"""A hunk as somebody edits it: a patch with its lines, and what the new text is with the lines as
they came back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from yolofs.changes.hunks import Hunk
from yolofs.errors import UsageError
from yolofs.text import line_diff

_HELP = b"""\
# Edit the staged lines.  A line that starts with '+' is staged.
# To not stage it, delete the line.  To keep a '-' line, make it a ' ' line.
# Lines of ' ' and '-' have to stay what they are, as they are those of the old version.
# Lines that start with '#' are left out.  With no line left, nothing is changed.
"""
_NO_END = b"\\ No newline at end of file\n"


class _HunkSpan(NamedTuple):
    """Where a hunk and the lines around it are, in both texts."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def to_edit(hunk: Hunk, before: bytes, after: bytes, *, context: int = 3) -> bytes:
    """Return a hunk of a text as a patch to be edited, with lines that say how (they start with
    ``#``).

    ``before`` and ``after`` are all of the old and of the new text; ``context`` is a number of
    lines.
    """
    old, new = line_diff.split_lines(before), line_diff.split_lines(after)
    place = _place(hunk, old, new, context)
    above = old[place.old_start : hunk.old_start]
    below = old[hunk.old_start + len(hunk.old_lines) : place.old_end]
    counts = b"-%d,%d +%d,%d" % (
        place.old_start + 1,
        place.old_end - place.old_start,
        place.new_start + 1,
        place.new_end - place.new_start,
    )
    lines = [*_marked(b" ", above), *_marked(b"-", hunk.old_lines), *_marked(b"+", hunk.new_lines)]
    return b"@@ %b @@\n" % counts + b"".join([*lines, *_marked(b" ", below)]) + _HELP


def edited(hunk: Hunk, before: bytes, after: bytes, patch: bytes, *, context: int = 3) -> bytes | None:
    """Return all of the new text with a hunk as its patch came back; None if nothing but comments
    is left of it.

    Raises:
        UsageError: it does not fit the old text, so it would not apply: the message says which
            line, and why.
    """
    lines = _read(patch)
    if not lines:
        return None
    old, new = line_diff.split_lines(before), line_diff.split_lines(after)
    place = _place(hunk, old, new, context)
    _check_old([line for mark, line in lines if mark != b"+"], old[place.old_start : place.old_end])
    wanted = [line for mark, line in lines if mark != b"-"]
    result = [*new[: place.new_start], *wanted, *new[place.new_end :]]
    for line in result[:-1]:
        if not line.endswith(b"\n"):
            raise UsageError("a line without a newline is not the last of the file any more, so it does not apply")
    return b"".join(result)


def _place(hunk: Hunk, old: Sequence[bytes], new: Sequence[bytes], context: int) -> _HunkSpan:
    """Return the range to be shown: the hunk, and lines around it as far as both texts have the
    same there.
    """
    old_end, new_end = hunk.old_start + len(hunk.old_lines), hunk.new_start + len(hunk.new_lines)
    head = tail = 0
    while (
        head < context
        and min(hunk.old_start, hunk.new_start) > head
        and old[hunk.old_start - head - 1] == new[hunk.new_start - head - 1]
    ):
        head += 1
    while (
        tail < context
        and old_end + tail < len(old)
        and new_end + tail < len(new)
        and old[old_end + tail] == new[new_end + tail]
    ):
        tail += 1
    return _HunkSpan(hunk.old_start - head, old_end + tail, hunk.new_start - head, new_end + tail)


def _marked(mark: bytes, lines: Sequence[bytes]) -> list[bytes]:
    return [mark + line if line.endswith(b"\n") else mark + line + b"\n" + _NO_END for line in lines]


def _read(patch: bytes) -> list[tuple[bytes, bytes]]:
    """Return the lines of a patch, each with its mark.

    Raises:
        UsageError: a line has none.
    """
    found: list[tuple[bytes, bytes]] = []
    for number, line in enumerate(line_diff.split_lines(patch), 1):
        mark = line[:1]
        if mark == b"\\":
            if found:
                found[-1] = (found[-1][0], found[-1][1].removesuffix(b"\n"))
        elif line in (b"\n", b"\r\n"):  # editors strip the space of an empty line
            found.append((b" ", line))
        elif mark in (b" ", b"+", b"-"):
            found.append((mark, line[1:] if line.endswith(b"\n") else line[1:] + b"\n"))
        elif mark != b"#" and not line.startswith(b"@@"):
            raise UsageError(f"line {number} starts with none of ' ', '+', '-' and '#', so it does not apply")
    return found


def _check_old(lines: Sequence[bytes], old: Sequence[bytes]) -> None:
    """Check that the lines of the old version are still what they were.

    Raises:
        UsageError: one is not.
    """
    for number, (line, known) in enumerate(zip(lines, old, strict=False), 1):
        if line != known:
            raise UsageError(f"line {number} of the old version ('-' or ' ') has been changed, so it does not apply")
    if len(lines) != len(old):
        count = abs(len(lines) - len(old))
        what = "missing" if len(lines) < len(old) else "too many"
        are = "line of the old version ('-' or ' ') is" if count == 1 else "lines of the old version ('-' or ' ') are"
        raise UsageError(f"{count} {are} {what}, so it does not apply")
