"""What of a change is selected, told by the text that somebody wants of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.changes.picks import LineNumbers, apply_picks, whole_if_all
from yolofs.text import line_diff

_OF_LINES = (HunkKind.TEXT, HunkKind.ADDED)


def picks_for(before: bytes, file: FileHunks, wanted: bytes) -> dict[str, LineNumbers | None] | None:
    """Return the picks of a text's hunks that make just the wanted text of it; None if no picks do.

    What is not about lines (a rename, a mode) is picked, too.  No picks make an empty file of an
    added one: without lines there is no file.
    """
    lines: defaultdict[str, set[int]] = defaultdict(set)
    by_id = {hunk.id: hunk for hunk in file.hunks}
    texts = line_diff.compare_texts(before, wanted)
    for block in line_diff.blocks(texts):
        hunk = _hunk_at(file.hunks, block)
        if hunk is None:
            return None
        count = len(hunk.old_lines)
        first = block.old_start - hunk.old_start
        lines[hunk.id].update(range(first + 1, first + 1 + block.old_end - block.old_start))
        at = max((number - count for number in lines[hunk.id] if number > count), default=0)
        for line in texts.new[block.new_start : block.new_end]:
            while at < len(hunk.new_lines) and hunk.new_lines[at] != line:
                at += 1
            if at == len(hunk.new_lines):
                return None
            at += 1
            lines[hunk.id].add(count + at)
    picks = {name: whole_if_all(by_id[name], frozenset(some)) for name, some in lines.items()}
    picks |= {hunk.id: None for hunk in file.hunks if hunk.kind not in _OF_LINES}
    if any(hunk.kind is HunkKind.ADDED and hunk.id not in picks for hunk in file.hunks):
        return None
    return picks if apply_picks(before, file.hunks, picks) == wanted else None


def _hunk_at(hunks: Sequence[Hunk], block: line_diff.Block) -> Hunk | None:
    """Return the hunk that a difference lies in."""
    for hunk in hunks:
        end = hunk.old_start + len(hunk.old_lines)
        if hunk.kind in _OF_LINES and hunk.old_start <= block.old_start and block.old_end <= end:
            return hunk
    return None
