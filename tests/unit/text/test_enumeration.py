"""Names in the middle of a sentence."""

from __future__ import annotations

import pytest

from yolofs.text.enumeration import some_of


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (["a", "b", "c"], "a, b and 1 more"),
        (list("abcdefg"), "a, b and 5 more"),
    ],
)
def test_what_is_beyond_the_first_names_is_counted(names: list[str], text: str) -> None:
    assert some_of(names, 2) == text
