"""Chunks: what one question is about.  That is hunks of one file that lie close together, one hunk,
or some lines of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.changes.picks import LineNumbers, whole_if_all
from yolofs.text.line_diff import Block, head_line

CONTEXT = 3
"""How many lines are shown around a change."""


class Chunk:
    """A question: whether some hunks of a file are taken."""

    def __init__(self, file: FileHunks, parts: Sequence[tuple[Hunk, LineNumbers | None]]) -> None:
        self.file = file
        self.parts = tuple(parts)
        """Hunks, each whole (None) or some lines of it; more than one only of text."""
        self.is_taken: bool | None = None
        """The answer; None while there is none."""

    @property
    def hunk(self) -> Hunk:
        """The first of its hunks."""
        return self.parts[0][0]

    @property
    def is_whole(self) -> bool:
        """Whether it is one hunk, and all of it."""
        return len(self.parts) == 1 and self.parts[0][1] is None

    @property
    def can_split(self) -> bool:
        """Whether it has parts that can be taken by themselves."""
        if len(self.parts) > 1:
            return True
        return any(hunk.is_splittable and len(_by_line(hunk, lines)) > 1 for hunk, lines in self.parts)

    def split(self) -> list[Chunk]:
        """Return its parts as questions of their own: its hunks, or the lines of its only hunk."""
        if len(self.parts) > 1:
            return [Chunk(self.file, [part]) for part in self.parts]
        return [Chunk(self.file, [(hunk, some)]) for hunk, lines in self.parts for some in _by_line(hunk, lines)]


def _by_line(hunk: Hunk, lines: LineNumbers | None) -> list[LineNumbers]:
    """Return the lines of a hunk one by one; one that replaces another together with that."""
    count = len(hunk.old_lines)
    if _is_line_by_line(hunk):
        found = [frozenset({number, number + count}) for number in range(1, count + 1)]
    else:
        found = [frozenset({number}) for number in range(1, hunk.line_count + 1)]
    return [some for some in found if lines is None or some <= lines]


def _is_line_by_line(hunk: Hunk) -> bool:
    """Tell whether each new line takes the place of the old one beside it."""
    return len(hunk.old_lines) == len(hunk.new_lines)


def chunks_of(file: FileHunks, *, context: int = CONTEXT) -> list[Chunk]:
    """Return the questions about a file; its text hunks are one where the lines shown around them
    would meet.
    """
    found: list[list[Hunk]] = []
    for hunk in file.hunks:
        last = found[-1][-1] if found else None
        is_near = (
            hunk.kind is HunkKind.TEXT
            and last is not None
            and last.kind is HunkKind.TEXT
            and hunk.old_start - last.old_start - len(last.old_lines) <= 2 * context
        )
        if is_near:
            found[-1].append(hunk)
        else:
            found.append([hunk])
    return [Chunk(file, [(hunk, None) for hunk in hunks]) for hunks in found]


def picks_of_answers(chunks: Iterable[Chunk]) -> dict[str, LineNumbers | None]:
    """Return what was taken."""
    taken: dict[str, tuple[Hunk, set[int]]] = {}
    for chunk in chunks:
        for hunk, lines in chunk.parts if chunk.is_taken else ():
            everything = range(1, hunk.line_count + 1)
            taken.setdefault(hunk.id, (hunk, set()))[1].update(everything if lines is None else lines)
    return {name: whole_if_all(hunk, frozenset(lines)) for name, (hunk, lines) in taken.items()}


def with_answers_carried(old: Sequence[Chunk], new: Sequence[Chunk]) -> list[Chunk]:
    """Return the ``new`` questions about a file that has changed, with the answers to the ``old``
    ones about the same lines; what was split and has not changed is split again.
    """
    known = {_said(hunk, lines): chunk.is_taken for chunk in old for hunk, lines in chunk.parts}
    in_lines = {_said(hunk, None) for chunk in old for hunk, lines in chunk.parts if lines is not None}
    found: list[Chunk] = []
    todo = list(reversed(new))
    while todo:
        chunk = todo.pop()
        answers = {known.get(_said(hunk, lines)) for hunk, lines in chunk.parts}
        was_in_lines = any(_said(hunk, lines) in in_lines for hunk, lines in chunk.parts)
        if was_in_lines or (len(answers) > 1 and len(chunk.parts) > 1):
            todo += reversed(chunk.split())
            continue
        chunk.is_taken = answers.pop()
        found.append(chunk)
    return found


def _said(hunk: Hunk, lines: LineNumbers | None) -> tuple[object, ...]:
    return hunk.kind, hunk.path, hunk.old_start, hunk.old_lines, hunk.new_lines, hunk.old, hunk.new, lines


def patch_lines(chunk: Chunk, texts: tuple[list[bytes], list[bytes]] | None, *, context: int) -> Iterator[bytes]:
    """Yield a question as lines of a patch, each with its mark and its end; ``texts`` are both
    versions in lines.

    Of a hunk of which some lines are asked about, the others do not come, and do not go.
    """
    first = chunk.parts[0][0]
    if not any(hunk.line_count for hunk, _ in chunk.parts):
        return
    old = texts[0] if texts is not None and first.kind is HunkKind.TEXT else []
    ranges = [_old_range(hunk, lines) for hunk, lines in chunk.parts]
    (start, _), (_, end) = ranges[0], ranges[-1]
    head = min(context, start) if old else 0
    tail = min(context, max(0, len(old) - end)) if old else 0
    body = [b" " + line for line in old[start - head : start]]
    at = start
    for (hunk, lines), (part_start, part_end) in zip(chunk.parts, ranges, strict=True):
        body += [b" " + line for line in old[at:part_start]]
        body += _marked(hunk, lines, part_start, part_end)
        at = part_end
    body += [b" " + line for line in old[end : end + tail]]
    starts = start - head, start - head + _moved(chunk, start - head)
    counts = (sum(line[:1] != mark for line in body) for mark in (b"+", b"-"))
    old_range, new_range = zip(starts, map(sum, zip(starts, counts, strict=True)), strict=True)
    yield head_line(Block(*old_range, *new_range))
    yield from body


def _moved(chunk: Chunk, at: int) -> int:
    """Return by how many lines a line of the old text has moved in the new one, by the hunks before
    it.
    """
    first = chunk.parts[0][0]
    here = (hunk for hunk in chunk.file.hunks if hunk is first or hunk.old_start + len(hunk.old_lines) > at)
    last = next(hunk for hunk in here if hunk.kind is first.kind)
    return last.new_start - last.old_start


def _old_range(hunk: Hunk, lines: LineNumbers | None) -> tuple[int, int]:
    """Return from which to before which line of the old text a hunk goes, or some lines of it."""
    count = len(hunk.old_lines)
    if lines is None:
        return hunk.old_start, hunk.old_start + count
    if _is_line_by_line(hunk):
        places = [(number - 1) % count for number in lines]
        return hunk.old_start + min(places), hunk.old_start + max(places) + 1
    return hunk.old_start + min(min(lines) - 1, count), hunk.old_start + min(max(lines), count)


def _marked(hunk: Hunk, lines: LineNumbers | None, start: int, end: int) -> Iterator[bytes]:
    """Yield the changed lines of a hunk between two lines of the old text; of those that are not
    asked about the old ones as they stay.
    """
    count = len(hunk.old_lines)
    if lines is None:
        yield from (b"-" + line for line in hunk.old_lines)
        yield from (b"+" + line for line in hunk.new_lines)
        return
    for number in range(start - hunk.old_start + 1, end - hunk.old_start + 1):
        yield (b"-" if number in lines else b" ") + hunk.old_lines[number - 1]
        if _is_line_by_line(hunk) and number + count in lines:
            yield b"+" + hunk.new_lines[number - 1]
    for number in () if _is_line_by_line(hunk) else sorted(lines):
        if number > count:
            yield b"+" + hunk.new_lines[number - count - 1]
