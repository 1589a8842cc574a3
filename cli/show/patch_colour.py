"""A patch for a terminal: coloured if it shows colours, and unable to play tricks on it."""

from __future__ import annotations

import re
from collections.abc import Callable

from yolofs.text.characters import harmless

_PLAIN = b"\x1b[0m"
_STYLES = {
    b"+": b"\x1b[32m",
    b"-": b"\x1b[31m",
    b"@": b"\x1b[36m",
}
_HEADER = b"\x1b[1m"
_is_hunk = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@").match
_words = re.compile(rb"\[-.*?-\]|\{\+.*?\+\}")
_doubtful = re.compile(rb"[^\n\t\x20-\x7e]+")


class PatchPainter:
    """Takes a patch piece by piece and passes it on line by line.

    Characters that could harm a terminal are shown as ``^X`` or ``<9b>``.  What a program wrote
    into a file must not reach the terminal as a command.  Nor may it look like something else, by
    reversing text or being invisible.
    """

    def __init__(self, out: Callable[[bytes], object], *, has_colour: bool = True, by_words: bool = False) -> None:
        """``by_words``: the patch marks words, not lines."""
        self._by_words = by_words
        self._out = out
        self._has_colour = has_colour
        self._pending = b""
        self._old_lines = 0
        self._new_lines = 0

    def __call__(self, piece: bytes) -> None:
        """Take the next piece; it may end in the middle of a line."""
        *lines, self._pending = (self._pending + piece).split(b"\n")
        if lines:
            self._out(b"".join(self._painted(line) + b"\n" for line in lines))

    def _painted(self, line: bytes) -> bytes:
        shown = visible(line)
        if self._by_words and not line.startswith((b"diff ", b"@@ ")):
            return _words.sub(_painted_words, shown) if self._has_colour else shown
        style = self._style(line)
        return style + shown + _PLAIN if style and shown and self._has_colour else shown

    def _style(self, line: bytes) -> bytes:
        """Return how a line looks; counts the lines of a hunk, as ``---`` may be text or a
        header.
        """
        if self._old_lines > 0 or self._new_lines > 0:
            first = line[:1]
            self._old_lines -= first in (b"-", b" ", b"")
            self._new_lines -= first in (b"+", b" ", b"")
            return _STYLES.get(first, b"")
        hunk = _is_hunk(line)
        if hunk:
            self._old_lines = int(hunk[1]) if hunk[1] is not None else 1
            self._new_lines = int(hunk[2]) if hunk[2] is not None else 1
            return _STYLES[b"@"]
        return _HEADER if line.startswith((b"diff ", b"--- ", b"+++ ", b"index ")) else b""


def _painted_words(found: re.Match[bytes]) -> bytes:
    return _STYLES[b"-" if found[0].startswith(b"[") else b"+"] + found[0] + _PLAIN


def visible(text: bytes) -> bytes:
    """Return whole lines of a text as a terminal may get them."""
    return _doubtful.sub(_visible, text)


def _visible(found: re.Match[bytes]) -> bytes:
    return harmless(found[0].decode(errors="surrogateescape")).encode()
