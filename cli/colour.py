"""A patch for a terminal: coloured, and unable to play tricks on it."""

from __future__ import annotations

import re
from collections.abc import Callable

_PLAIN = b"\x1b[0m"
_STYLES = {
    b"+": b"\x1b[32m",
    b"-": b"\x1b[31m",
    b"@": b"\x1b[36m",
}
_HEADER = b"\x1b[1m"
_is_hunk = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@").match
_control = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class PatchPainter:
    """Takes a patch piece by piece and passes it on line by line, coloured.

    Control characters are shown as ``^X`` or ``<9b>``: what a program wrote into a file must not reach the terminal
    as a command.
    """

    def __init__(self, out: Callable[[bytes], object]) -> None:
        self._out = out
        self._pending = b""
        self._old_lines = 0
        self._new_lines = 0

    def __call__(self, piece: bytes) -> None:
        """Take the next piece; it may end in the middle of a line."""
        *lines, self._pending = (self._pending + piece).split(b"\n")
        if lines:
            self._out(b"".join(self._painted(line) + b"\n" for line in lines))

    def _painted(self, line: bytes) -> bytes:
        style = self._style(line)
        shown = _control.sub(_visible, line)
        return style + shown + _PLAIN if style and shown else shown

    def _style(self, line: bytes) -> bytes:
        """Return how a line looks; counts the lines of a hunk, as ``---`` may be text or a header."""
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


def _visible(found: re.Match[bytes]) -> bytes:
    control = found[0]
    return b"<%02x>" % control[1] if len(control) > 1 else b"^%c" % (control[0] ^ 0x40)
