"""Unified hunks between two texts, in bytes, in time that stays near-linear whatever the texts are.

Lines that are unique on both sides and stand in the same order anchor the comparison (patience
diff, Bram Cohen); between anchors it is done again, and where no unique lines are left, by Myers'
greedy algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), a limited number of
edits at a time.  Both have a budget of steps; when it is spent, what is still between two anchors
is replaced as a whole: a longer diff, and still a right one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import chain

import msgspec

_MYERS_STEPS = 3_000_000  # about a second
_MYERS_EDITS = 256  # at a time: time and memory go with the square of it
_LINES_COPIED_A_STEP = 64  # in the time of one step
_SCANS = 12  # how often on average a line is looked at in search of anchors; three or four is usual


class Texts(msgspec.Struct, frozen=True):
    """Two texts in lines (with their line ends), and for each line whether it is in its text
    only.
    """

    old: list[bytes]
    new: list[bytes]
    removed: bytearray
    added: bytearray


def compare_texts(old: bytes, new: bytes, *, ignores_space: bool = False) -> Texts:
    """Return which lines were removed and which added; the other ones are equal, one by one.

    With ``ignores_space`` lines are equal that differ in white space alone.
    """
    return compare_pieces(split_lines(old), split_lines(new), _without_space if ignores_space else None)


def compare_pieces(old: list[bytes], new: list[bytes], key: Callable[[bytes], bytes] | None = None) -> Texts:
    """Compare texts that are in pieces already, as :func:`compare_texts` does; pieces with the same
    ``key`` are equal.
    """
    texts = Texts(old, new, bytearray(b"\1" * len(old)), bytearray(b"\1" * len(new)))
    _Comparison(texts, key).run()
    return texts


def _without_space(line: bytes) -> bytes:
    return b"".join(line.split())


def split_lines(data: bytes) -> list[bytes]:
    """Split at newlines only, keeping them; the last line may have none."""
    lines = data.split(b"\n")
    last = lines.pop()
    result = [line + b"\n" for line in lines]
    if last:
        result.append(last)
    return result


def joined(lines: Iterable[bytes]) -> bytes:
    """Return lines as one text; ``join`` would take another 80 bytes for each while it works."""
    together = BytesIO()
    together.writelines(lines)
    return together.getvalue()


def similarity(texts: Texts) -> int:
    """Return how many of 100 bytes of the longer text are in lines that both have; below 100 if any
    differs.
    """
    kept = sum(len(line) for line, removed in zip(texts.old, texts.removed, strict=True) if not removed)
    longer = max(sum(map(len, texts.old)), sum(map(len, texts.new)))
    if not any(texts.removed) and not any(texts.added):
        return 100
    return min(99, kept * 100 // longer) if longer else 100


class _Comparison:
    """Clears the marks of all lines that are found to be equal."""

    def __init__(self, texts: Texts, key: Callable[[bytes], bytes] | None) -> None:
        old, new = (texts.old, texts.new) if key is None else ([*map(key, texts.old)], [*map(key, texts.new)])
        numbers = {line: number for number, line in enumerate(dict.fromkeys(chain(old, new)))}
        self._old = [*map(numbers.__getitem__, old)]
        self._new = [*map(numbers.__getitem__, new)]
        self._removed = texts.removed
        self._added = texts.added
        self._steps = _MYERS_STEPS
        self._scans = _SCANS * (len(self._old) + len(self._new))
        self._stretches = [(0, len(self._old), 0, len(self._new))]

    def run(self) -> None:
        while self._stretches:
            old_start, old_end, new_start, new_end = self._trim(*self._stretches.pop())
            if old_start == old_end or new_start == new_end:
                continue
            anchors = self._anchors(old_start, old_end, new_start, new_end)
            if not anchors:
                self._myers(old_start, old_end, new_start, new_end)
                continue
            for old, new in [*anchors, (old_end, new_end)]:
                self._stretches.append((old_start, old, new_start, new))
                old_start, new_start = old, new  # the anchor itself is the next stretch's head, and trimmed there

    def _keep(self, old: int, new: int, count: int = 1) -> None:
        self._removed[old : old + count] = self._added[new : new + count] = bytes(count)

    def _trim(self, old_start: int, old_end: int, new_start: int, new_end: int) -> tuple[int, int, int, int]:
        """Keep what is equal at head and tail, and return the stretch between."""
        count = _equal_from(self._old, old_start, self._new, new_start, min(old_end - old_start, new_end - new_start))
        self._keep(old_start, new_start, count)
        old_start, new_start = old_start + count, new_start + count
        count = _equal_up_to(self._old, old_end, self._new, new_end, min(old_end - old_start, new_end - new_start))
        self._keep(old_end - count, new_end - count, count)
        return old_start, old_end - count, new_start, new_end - count

    def _anchors(self, old_start: int, old_end: int, new_start: int, new_end: int) -> list[tuple[int, int]]:
        """Return the longest rising run of lines that are unique in both stretches."""
        self._scans -= old_end - old_start + new_end - new_start
        if self._scans < 0:
            return []
        in_old = _unique(self._old, old_start, old_end)
        in_new = _unique(self._new, new_start, new_end) if in_old else {}
        common = [(old, in_new[line]) for line, old in in_old.items() if line in in_new]
        return _longest_rising(common)

    def _myers(self, old_start: int, old_end: int, new_start: int, new_end: int) -> None:
        """Compare as far as a limited number of edits leads, and put the rest back."""
        if self._steps <= 0:
            return
        found = _myers(self._old[old_start:old_end], self._new[new_start:new_end])
        self._steps -= found.steps + (old_end - old_start + new_end - new_start) // _LINES_COPIED_A_STEP
        for x, y in found.pairs:
            self._keep(old_start + x, new_start + y)
        self._stretches.append((old_start + found.old_end, old_end, new_start + found.new_end, new_end))


def _equal_from(old: list[int], old_start: int, new: list[int], new_start: int, most: int) -> int:
    """Return how many lines are equal from two places on, ``most`` at most."""
    count = 0
    for size in _run_sizes(most):
        while count + size <= most:
            old_at, new_at = old_start + count, new_start + count
            if old[old_at : old_at + size] != new[new_at : new_at + size]:
                break
            count += size
    return count


def _equal_up_to(old: list[int], old_end: int, new: list[int], new_end: int, most: int) -> int:
    """Return how many lines are equal right before two places, ``most`` at most."""
    count = 0
    for size in _run_sizes(most):
        while count + size <= most:
            old_at, new_at = old_end - count, new_end - count
            if old[old_at - size : old_at] != new[new_at - size : new_at]:
                break
            count += size
    return count


def _run_sizes(most: int) -> tuple[int, ...]:
    """Return how many lines are compared at a time: many as long as all are equal, then fewer."""
    return tuple(size for size in (4096, 256, 16, 1) if size <= most)


def _unique(lines: list[int], start: int, end: int) -> dict[int, int]:
    """Return where each line is that occurs once, in their order."""
    stretch = lines[start:end]
    once = [line for line, count in Counter(stretch).items() if count == 1]
    if not once:
        return {}
    places = dict(zip(stretch, range(start, end), strict=True))
    return {line: places[line] for line in once}


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest part of ``pairs`` (rising in the first number) that rises in the second,
    too.
    """
    ends: list[int] = []  # the smallest last number of a run of each length
    last: list[int] = []  # and which pair that is
    before = [-1] * len(pairs)
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        if length:
            before[index] = last[length - 1]
        if length == len(ends):
            ends.append(number)
            last.append(index)
        else:
            ends[length] = number
            last[length] = index
    run = []
    index = last[-1] if last else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    run.reverse()
    return run


class _Path(msgspec.Struct, frozen=True):
    """The beginning of a way from one text to the other, up to where it came."""

    pairs: list[tuple[int, int]]
    """The lines that are equal."""
    old_end: int
    new_end: int
    steps: int


def _myers(old: list[int], new: list[int]) -> _Path:
    """Return the path that comes farthest with a limited number of edits: to the end of both, if it
    can.
    """
    reach = {1: 0}  # diagonal (x - y) -> the farthest x
    trace: list[dict[int, int]] = []
    steps = 0
    farthest = (0, 0)  # x + y, diagonal
    for edits in range(_MYERS_EDITS + 1):
        trace.append(reach.copy())
        farthest = (0, 0)
        for diagonal in range(-edits, edits + 1, 2):
            x = start = _step(reach, edits, diagonal)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reach[diagonal] = x
            steps += 1 + x - start
            if x <= len(old) and x - diagonal <= len(new):
                farthest = max(farthest, (2 * x - diagonal, diagonal))
        if farthest[0] == len(old) + len(new):
            break
    x = reach[farthest[1]]
    return _Path(_walk_back(trace, x, x - farthest[1]), x, x - farthest[1], steps)


def _step(reach: dict[int, int], edits: int, diagonal: int) -> int:
    """Return the x at which one more edit arrives on a diagonal."""
    if diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1]):
        return reach[diagonal + 1]
    return reach[diagonal - 1] + 1


def _walk_back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Return the equal pairs on the path to a point; ``trace`` has the reach before each number of
    edits.
    """
    pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        diagonal = x - y
        arrival = _step(trace[edits], edits, diagonal)
        while x > arrival:
            x -= 1
            pairs.append((x, x - diagonal))
        came_down = diagonal == -edits or arrival == trace[edits].get(diagonal + 1)
        x, y = (x, x - diagonal - 1) if came_down else (x - 1, x - diagonal)
    return pairs


# ---- hunks


class Block(msgspec.Struct, frozen=True, order=True):
    """Lines that are replaced by others; either range may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def hunks(texts: Texts, context: int) -> Iterator[bytes]:
    """Yield the hunks of a unified diff with so many lines of context, each with its ``@@``
    line.
    """
    for group in groups(texts, context):
        yield _hunk(texts, group, context)


def groups(texts: Texts, context: int) -> Iterator[list[Block]]:
    """Yield the blocks that are in one hunk, as so many lines of context leave nothing between
    them.
    """
    group: list[Block] = []
    for block in blocks(texts):
        if group and block.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def blocks(texts: Texts) -> Iterator[Block]:
    """Yield what was replaced, removed or added, from the first line on."""
    old = new = 0
    while True:
        old_next, new_next = texts.removed.find(1, old), texts.added.find(1, new)
        if old_next < 0 and new_next < 0:
            return
        equal = min(found - start for found, start in ((old_next, old), (new_next, new)) if found >= 0)
        old_start, new_start = old + equal, new + equal
        old, new = _end_of_run(texts.removed, old_start), _end_of_run(texts.added, new_start)
        yield Block(old_start, old, new_start, new)


def _end_of_run(marks: bytearray, start: int) -> int:
    if start >= len(marks) or not marks[start]:
        return start
    end = marks.find(0, start)
    return len(marks) if end < 0 else end


def with_context(texts: Texts, group: list[Block], context: int) -> Block:
    """Return the lines that a hunk is about, those of context among them."""
    head = min(context, group[0].old_start)
    tail = min(context, len(texts.old) - group[-1].old_end)
    return Block(
        group[0].old_start - head, group[-1].old_end + tail, group[0].new_start - head, group[-1].new_end + tail
    )


def head_line(hunk: Block) -> bytes:
    """Return the ``@@`` line of a hunk."""
    old, new = _range(hunk.old_start, hunk.old_end), _range(hunk.new_start, hunk.new_end)
    return b"@@ -%b +%b @@\n" % (old, new)


def _hunk(texts: Texts, group: list[Block], context: int) -> bytes:
    hunk = with_context(texts, group, context)
    written = [head_line(hunk)]
    at, old_end = hunk.old_start, hunk.old_end
    for block in group:
        written.append(_marked(b" ", texts.old[at : block.old_start]))
        written.append(_marked(b"-", texts.old[block.old_start : block.old_end]))
        written.append(_marked(b"+", texts.new[block.new_start : block.new_end]))
        at = block.old_end
    written.append(_marked(b" ", texts.old[at:old_end]))
    return b"".join(written)


def _range(start: int, end: int) -> bytes:
    count = end - start
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if count else start, count)


def _marked(mark: bytes, lines: list[bytes]) -> bytes:
    """Return lines with a mark before each."""
    if not lines:
        return b""
    text = joined(lines)
    end = b"\n" if text.endswith(b"\n") else b"\n\\ No newline at end of file\n"
    return mark + text.removesuffix(b"\n").replace(b"\n", b"\n" + mark) + end
