"""Shows the words that differ, as ``[-old-]{+new+}``, in lines without a mark of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yolofs.text.line_diff import Block, Texts, compare_pieces, groups, head_line, joined, with_context
from yolofs.text.line_diff import blocks as blocks_of

_WORDS = rb"\n|[^\S\n]+|[\w\x80-\xff]+|[^\w\s]"
"""A word, a run of spaces, a sign; no character of several bytes is taken apart."""
_MOST_WORDS = 20_000
"""A block with more of them is shown as lines that go and lines that come."""


def hunks(texts: Texts, context: int) -> Iterator[bytes]:
    """Yield the hunks of two texts with so many lines of context, each with its ``@@`` line."""
    for group in groups(texts, context):
        hunk = with_context(texts, group, context)
        written = [head_line(hunk)]
        at = hunk.old_start
        for block in group:
            written.append(joined(texts.old[at : block.old_start]))
            written += _changed(texts, block)
            at = block.old_end
        written.append(joined(texts.old[at : hunk.old_end]))
        text = b"".join(written)
        yield text if text.endswith(b"\n") else text + b"\n"


def _changed(texts: Texts, block: Block) -> Iterator[bytes]:
    """Yield what a block is, word by word."""
    sides = joined(texts.old[block.old_start : block.old_end]), joined(texts.new[block.new_start : block.new_end])
    old, new = (re.findall(_WORDS, side) for side in sides)
    if len(old) + len(new) > _MOST_WORDS:
        old, new = ([side] for side in sides)
    words = compare_pieces(old, new)
    at = 0
    for piece in blocks_of(words):
        yield from words.old[at : piece.old_start]
        yield _marked(b"[-", b"".join(words.old[piece.old_start : piece.old_end]), b"-]")
        yield _marked(b"{+", b"".join(words.new[piece.new_start : piece.new_end]), b"+}")
        at = piece.old_end
    yield from words.old[at:]


def _marked(begin: bytes, text: bytes, end: bytes) -> bytes:
    """Return a text with marks around what it has on each line."""
    lines = text.split(b"\n")
    return joined(begin + line + end + b"\n" if line else b"\n" for line in lines)[:-1]
