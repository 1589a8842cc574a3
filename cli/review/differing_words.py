"""Which parts of two lines differ, word by word."""

from __future__ import annotations

import difflib
import re

_words = re.compile(r"\w+|\s+|[^\w\s]").findall
_MOST_WORDS = 200
_MOST_CHARS = 2000
_LEAST_ALIKE = 0.3
"""Lines that are less alike than this have no marks: all of them would be marked."""


def differing(text: str, other: str) -> list[tuple[int, int]]:
    """Return the ranges of characters of ``text`` that ``other`` does not have; none where they are
    hardly alike.
    """
    if len(text) > _MOST_CHARS or len(other) > _MOST_CHARS:
        return []
    words, others = _words(text), _words(other)
    if len(words) > _MOST_WORDS or len(others) > _MOST_WORDS:
        return []
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return []
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    changed = (found for found in matcher.get_opcodes() if found[0] in ("delete", "replace"))
    return [(starts[first], starts[last]) for _, first, last, _, _ in changed]
