"""Asks and their answers in words."""

from __future__ import annotations

import pytest

from yolofs.cli.show.ask_lines import ids_text


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([7], "7"),
        ([7, 8], "7, 8"),
        ([7, 8, 9], "7 to 9"),
        ([1, 3, 4, 5, 6, 9, 10], "1, 3 to 6, 9, 10"),
    ],
)
def test_ids_without_a_gap_are_shown_by_the_first_and_the_last(ids: list[int], text: str) -> None:
    assert ids_text(ids) == text
