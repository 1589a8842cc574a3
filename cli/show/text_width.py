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


def fitting(text: str, width: int) -> str:
    """Return as much of the beginning of a text as takes at most ``width`` cells."""
    cells = 0
    for at, char in enumerate(text):
        cells += width_of(char)
        if cells > width:
            return text[:at]
    return text


def cut_end(text: str, width: int) -> str:
    """Return a text of at most ``width`` cells: its end is left out if it is too wide."""
    return text if width_of(text) <= width else fitting(text, width - 1) + "…"


def cut_start(text: str, width: int) -> str:
    """Return the end of a text, as far as there is room: of directories it tells the most."""
    if width_of(text) <= width:
        return text
    cells, at = 1, len(text)
    while at and cells + width_of(text[at - 1]) <= width:
        at -= 1
        cells += width_of(text[at])
    return "…" + text[at:]
