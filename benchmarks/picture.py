"""The results as a picture: one line for each row, one dot for each column, by multiples of the
plain directory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from benchmarks.measured import REFERENCE, Results, Row
from benchmarks.result_tables import duration, multiple

COLOURS = {
    "plain": "#666666",
    "overlayfs": "#2b8a3e",
    "fuse-overlayfs": "#d9480f",
    "yolofs": "#1864ab",
    "floor": "#b08900",
    "pyfloor": "#862e9c",
}
LEFT, RIGHT, TOP = 480, 30, 78
ROW_PX, WIDTH = 17, 1000
SMALLEST, LARGEST = 0.25, 128.0


def draw(results: Results, mode: str) -> str:
    """Return the rows of one mode that have a figure for the plain directory as an SVG document."""
    return "\n".join(_lines(results, mode)) + "\n"


def _lines(results: Results, mode: str) -> Iterator[str]:
    rows = [row for row in results.rows if row.mode == mode and row.median(REFERENCE)]
    columns = [column for column in results.columns if column != REFERENCE]
    height = TOP + ROW_PX * len(rows) + 22
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11">'
    )
    yield f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    yield _text(10, 20, f"Time as a multiple of the plain directory; {mode}, median of {results.rounds}", size=14)
    at = 10.0
    for column in columns:
        yield _dot(at + 4, 38, column, column)
        yield _text(at + 13, 42, column)
        at += 28 + 6.5 * len(column)
    yield from _axis(height)
    for number, row in enumerate(rows):
        yield from _row(row, columns, TOP + ROW_PX * number + ROW_PX / 2)
    yield "</svg>"


def _axis(height: int) -> Iterator[str]:
    value = SMALLEST
    while value <= LARGEST:
        x = _x(value)
        colour = "#888888" if value == 1 else "#e4e4e4"
        yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 16}" stroke="{colour}"/>'
        edge = "≤" if value == SMALLEST else "≥" if value == LARGEST else ""
        yield _text(x, TOP - 11, f"{edge}x{value:g}", anchor="middle")
        value *= 2


def _row(row: Row, columns: list[str], y: float) -> Iterator[str]:
    plain = row.median(REFERENCE)
    assert plain is not None
    yield _text(LEFT - 78, y + 4, row.title, anchor="end")
    yield _text(LEFT - 18, y + 4, duration(plain), anchor="end")
    yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#f2f2f2"/>'
    for column in columns:
        ratio = row.ratio(column, REFERENCE)
        if ratio is not None:
            yield _dot(_x(ratio), y, column, f"{column}: x{multiple(ratio)}")


def _x(ratio: float) -> float:
    inside = min(max(ratio, SMALLEST), LARGEST)
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(inside / SMALLEST) / math.log(LARGEST / SMALLEST)


def _dot(x: float, y: float, column: str, title: str) -> str:
    colour = COLOURS.get(column, "#000000")
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(title)}</title></circle>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
