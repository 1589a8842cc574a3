"""How an ask ended, in words that can be read aloud."""

from __future__ import annotations

import pytest

from yolofs.access.asks import how_it_ended
from yolofs.audit.audit import UNATTENDED


@pytest.mark.parametrize(
    ("outcome", "by", "said"),
    [
        ("allowed", "yolofs watch, process 7", "allowed by yolofs watch, process 7"),
        ("denied", "yolofs answer, process 7", "denied by yolofs answer, process 7"),
        ("rule", "the rule ~/a = allow (learned)", "settled by the rule ~/a = allow (learned)"),
        ("timeout", "nobody", "not answered in time"),
        ("timeout", UNATTENDED, "not answered, as nobody watches"),
        ("interrupted", "a signal", "given up by its program"),
        ("ended", "the end of the mount", "ended with the mount"),
        ("of a later version", "somebody", "of a later version by somebody"),
    ],
)
def test_an_end_reads_as_a_sentence(outcome: str, by: str, said: str) -> None:
    assert how_it_ended(outcome, by) == said
