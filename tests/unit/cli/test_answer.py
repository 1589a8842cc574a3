"""What ``yolofs answer`` says."""

from __future__ import annotations

import pytest

from yolofs.cli.commands.answer import _numbers


@pytest.mark.parametrize(
    ("asks", "text"),
    [
        ([7], "7"),
        ([7, 8], "7, 8"),
        ([7, 8, 9], "7 to 9"),
        ([1, 3, 4, 5, 6, 9, 10], "1, 3 to 6, 9, 10"),
    ],
)
def test_many_numbers_take_few_words(asks: list[int], text: str) -> None:
    assert _numbers(asks) == text
