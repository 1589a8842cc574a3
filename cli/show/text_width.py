"""How wide text is on a terminal."""

from __future__ import annotations

from wcwidth import wcwidth


class _Widths(dict[str, int]):
    def __missing__(self, char: str) -> int:
        width = self[char] = max(wcwidth(char), 0)
        return width


_widths = _Widths()


def width_of(text: str) -> int:
    """Return how many cells of a terminal a text without control characters takes."""
    return len(text) if text.isascii() else sum(map(_widths.__getitem__, text))
