"""The drawing of a timeline, written out."""

from __future__ import annotations

import pytest

from yolofs.cli.show.graph import ASCII, MAX_LANES, UNICODE, Signs, draw_graph
from yolofs.journal.records import Marker, Snapshot, Travel, marker_of_whole_state
from yolofs.journal.timeline import Timeline
from yolofs.paths import Generation


def drawn(moves: str, signs: Signs = UNICODE) -> list[str]:
    """Draw a timeline: ``P`` is a snapshot, a number a travel there.  Numbers stand behind the
    signs.
    """
    markers: list[Marker] = [Snapshot(1) if move == "P" else Travel(1, Generation(int(move))) for move in moves.split()]
    lines = []
    for number, row in enumerate(draw_graph(Timeline(markers).nodes(), signs)):
        lines.append(f"{row.beside} {number}")
        if row.below:
            lines.append(row.below)
    return lines


def test_a_graph_of_base_alone_is_one_line() -> None:
    assert drawn("") == ["◉ 0"]


def test_generations_one_after_the_other_are_a_straight_line() -> None:
    assert drawn("P P P") == ["● 0", "● 1", "● 2", "◉ 3"]


def test_a_branch_that_was_left_stands_to_the_right() -> None:
    assert drawn("P P 1 P") == [
        "●   0",
        "●   1",
        "├─╮",
        "│ ○ 2",
        "◆   3",
        "◉   4",
    ]


def test_a_travel_to_and_fro_leads_back_to_the_branch() -> None:
    assert drawn("P P 1 P 2") == [
        "●   0",
        "●   1",
        "├─╮",
        "● │ 2",
        "│ ◆ 3",
        "│ ○ 4",
        "◉   5",
    ]


def test_lines_cross_where_they_must_and_lanes_are_used_again() -> None:
    assert drawn("P P P 1 P 2 P 0 P") == [
        "●       0",
        "├─╮",
        "│ ○     1",
        "│ ├─╮",
        "│ ○ │   2",
        "│ ├─┼─╮",
        "│ ○ │ │ 3",
        "│   ◆ │ 4",
        "│   ○ │ 5",
        "│     ◆ 6",
        "│     ○ 7",
        "◆       8",
        "◉       9",
    ]
    assert drawn("P 0 P 0 P 1 P 3 P") == [
        "●     0",
        "├─┬─╮",
        "│ ○ │ 1",
        "◆ │ │ 2",
        "● │ │ 3",
        "│ │ ◆ 4",
        "│ │ ○ 5",
        "│ ◆   6",
        "│ ○   7",
        "◆     8",
        "◉     9",
    ]


def test_the_graph_in_ascii_has_the_same_rows() -> None:
    assert drawn("P P 1 P", ASCII) == ["*   0", "*   1", "+-.", "| o 2", ">   3", "@   4"]


def test_too_many_branches_are_drawn_without_lines() -> None:
    rows = drawn("P " + "0 P " * MAX_LANES)
    assert rows[:3] == ["● 0", "○ 1", "◆ 2"]
    assert len(rows) == 2 * MAX_LANES + 2


@pytest.mark.parametrize("count", [1, 50])
def test_every_generation_has_a_row(count: int) -> None:
    moves = " ".join(["P", "P", "1"] * count)
    assert len([line for line in drawn(moves) if line[-1].isdigit()]) == 3 * count + 1


def test_a_state_that_is_written_anew_goes_on_with_its_line_of_the_graph() -> None:
    nodes = Timeline([Snapshot(1), Snapshot(1), marker_of_whole_state(1), Snapshot(1)]).nodes()
    assert [row.beside + row.below for row in draw_graph(nodes, UNICODE)] == ["●", "●", "●", "●", "◉"]
