"""Merging three texts by lines, where there is no git to do it.

:mod:`yolofs.text.line_diff` finds what both sides changed against what the text was.  Changes that
overlap or touch (with no line between them that neither changed) are one group: both made the same
of it, or it is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from yolofs.text.line_diff import Block, Texts, blocks, compare_texts, split_lines


class _Group(NamedTuple):
    """Lines ``start`` to ``end`` of what the text was, and the blocks of either side in them."""

    start: int
    end: int
    ours: list[Block]
    theirs: list[Block]


class MergePiece(NamedTuple):
    """Lines of the result, or with ``theirs`` a conflict between two."""

    ours: list[bytes]
    theirs: list[bytes] | None = None


def merge(ours: bytes, was: bytes, theirs: bytes) -> list[MergePiece]:
    """Return the merged text piece by piece."""
    texts = split_lines(was), split_lines(ours), split_lines(theirs)
    pieces = []
    position = 0
    shifts = [0, 0]
    for group in _groups(_moved_down(compare_texts(was, ours)), _moved_down(compare_texts(was, theirs))):
        pieces.append(MergePiece(texts[0][position : group.start]))
        sides = []
        for number, changes in enumerate((group.ours, group.theirs)):
            begin = group.start + shifts[number]
            shifts[number] += sum((one.new_end - one.new_start) - (one.old_end - one.old_start) for one in changes)
            sides.append(texts[1 + number][begin : group.end + shifts[number]])
        pieces.extend(_settled(group, *sides))
        position = group.end
    pieces.append(MergePiece(texts[0][position:]))
    return pieces


def _moved_down(texts: Texts) -> list[Block]:
    """Return what a text changed, with what was only added or only removed as far down as equal
    lines let it go, as git does.

    A line that was added to equal ones may stand before or after any of them.  If both sides have
    added it, it has to be the same place for both.
    """
    found: list[Block] = []  # from the last one on
    for block in reversed([*blocks(texts)]):
        while True:
            next_start = found[-1].old_start if found else len(texts.old)
            if block.old_end < next_start and _may_move_down(texts, block):
                block = Block(block.old_start + 1, block.old_end + 1, block.new_start + 1, block.new_end + 1)
            elif found and block.old_end == next_start:
                below = found.pop()
                block = Block(block.old_start, below.old_end, block.new_start, below.new_end)
            else:
                break
        found.append(block)
    return found[::-1]


def _may_move_down(texts: Texts, block: Block) -> bool:
    """Tell whether lines that were only added, or only removed, may as well be those that begin one
    line below; an unchanged line follows.
    """
    if block.old_start == block.old_end:
        return texts.new[block.new_start] == texts.new[block.new_end]
    return block.new_start == block.new_end and texts.old[block.old_start] == texts.old[block.old_end]


def _groups(ours: Sequence[Block], theirs: Sequence[Block]) -> Iterator[_Group]:
    """Yield what touches, of both sides in the order of what the text was."""
    sides = sorted([(block.old_start, block.old_end, 0, block) for block in ours] + _tagged(theirs))
    group: _Group | None = None
    for start, end, side, block in sides:
        if group is None or start > group.end:
            if group is not None:
                yield group
            group = _Group(start, end, [], [])
        group = group._replace(end=max(group.end, end))
        (group.theirs if side else group.ours).append(block)
    if group is not None:
        yield group


def _tagged(blocks: Sequence[Block]) -> list[tuple[int, int, int, Block]]:
    return [(block.old_start, block.old_end, 1, block) for block in blocks]


def _settled(group: _Group, ours: list[bytes], theirs: list[bytes]) -> Iterator[MergePiece]:
    if not group.theirs or ours == theirs:
        yield MergePiece(ours)
        return
    if not group.ours:
        yield MergePiece(theirs)
        return
    head = 0
    while head < min(len(ours), len(theirs)) and ours[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < min(len(ours), len(theirs)) - head and ours[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    yield MergePiece(ours[:head])
    yield MergePiece(ours[head : len(ours) - tail], theirs[head : len(theirs) - tail])
    yield MergePiece(ours[len(ours) - tail :])
