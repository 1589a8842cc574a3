"""The timeline as lines on a terminal: time runs down, what the present is built from keeps to the
left.

Every generation has one origin: a snapshot the generation before it, a travel the one that it goes
to.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from yolofs.journal.timeline import GenerationInfo, GenerationKind

MAX_LANES = 12
"""A timeline with more branches side by side is drawn without lines."""


class Signs(NamedTuple):
    """The characters to draw with."""

    live: str
    dead: str
    travel: str
    present: str
    line: str
    fork: str
    across: str
    crossing: str
    corner: str
    last_corner: str


UNICODE = Signs("●", "○", "◆", "◉", "│", "├", "─", "┼", "┬", "╮")
ASCII = Signs("*", "o", ">", "@", "|", "+", "-", "+", "-", ".")


class GraphRow(NamedTuple):
    """One generation: the line of drawing beside it, and the one below it (empty if there is
    nothing to draw).
    """

    beside: str
    below: str


def draw_graph(nodes: Sequence[GenerationInfo], signs: Signs) -> list[GraphRow]:
    """Return the drawing for each generation, all of one width."""
    children: list[list[int]] = [[] for _ in nodes]
    for node in nodes[1:]:
        children[built_on(node)].append(node.number)
    lanes: list[int | None] = [0]  # for each lane the generation that it leads to
    rows = []
    width = 1
    for node in nodes:
        lane = lanes.index(node.number)
        beside = [_sign(node, signs) if at == lane else _line(wanted, signs) for at, wanted in enumerate(lanes)]
        heir, others = _heirs(children[node.number], nodes)
        lanes[lane] = heir
        opened = [_open_lane(lanes, other) for other in others]
        width = max(width, len(lanes))
        rows.append(GraphRow(" ".join(beside), _fork(lanes, lane, opened, signs) if opened else ""))
        while lanes and lanes[-1] is None:
            lanes.pop()
    if width > MAX_LANES:
        return [GraphRow(_sign(node, signs), "") for node in nodes]
    return [GraphRow(row.beside.ljust(2 * width - 1), row.below) for row in rows]


def built_on(node: GenerationInfo) -> int:
    """Return the generation that a node, not base, starts out from."""
    came_from = node.target if node.kind is GenerationKind.TRAVEL and not node.is_anew else node.parent
    assert came_from is not None
    return came_from


def _heirs(children: list[int], nodes: Sequence[GenerationInfo]) -> tuple[int | None, list[int]]:
    """Return the child that goes on in its parent's lane, the live one if there is one, and the
    others.
    """
    if not children:
        return None, []
    heir = next((number for number in children if nodes[number].is_live), children[0])
    return heir, [number for number in children if number != heir]


def _open_lane(lanes: list[int | None], number: int) -> int:
    """Reserve the leftmost free lane for a generation and return which."""
    lane = lanes.index(None) if None in lanes else len(lanes)
    lanes[lane : lane + 1] = [number]
    return lane


def _fork(lanes: list[int | None], lane: int, opened: list[int], signs: Signs) -> str:
    """Return the line that leads from ``lane`` to those that were opened."""
    first, last = min(lane, *opened), max(lane, *opened)
    cells = []
    for at, wanted in enumerate(lanes):
        if at == lane:
            cell = signs.fork
        elif at in opened:
            cell = signs.last_corner if at == last else signs.corner
        elif wanted is not None:
            cell = signs.crossing if first < at < last else signs.line
        else:
            cell = signs.across if first < at < last else " "
        cells.append(cell + (signs.across if first <= at < last else " "))
    return "".join(cells).rstrip()


def _sign(node: GenerationInfo, signs: Signs) -> str:
    if node.is_present:
        return signs.present
    if node.kind is GenerationKind.TRAVEL and not node.is_anew:
        return signs.travel
    return signs.live if node.is_live else signs.dead


def _line(wanted: int | None, signs: Signs) -> str:
    return signs.line if wanted is not None else " "
