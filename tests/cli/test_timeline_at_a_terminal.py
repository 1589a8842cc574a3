"""``yolofs timeline`` at a terminal: one line a generation."""

from __future__ import annotations

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal


@pytest.mark.parametrize("columns", [60, 80])
def test_a_long_name_is_cut_so_that_a_generation_is_one_line(yolofs: Program, columns: int) -> None:
    yolofs("snapshot", "n" * 120)
    yolofs("travel", "0")
    yolofs("snapshot", "short")
    with Terminal(yolofs.project, ["timeline"], size=(columns, 24), COLUMNS=str(columns)) as terminal:
        assert terminal.wait() == 0
        lines = terminal.text.splitlines()
        assert len(lines) == len(terminal.screen.splitlines())
        (dead,) = (line for line in lines if "nnn" in line)
        assert len(dead) == columns
        assert dead.endswith("n…, 0 records  [dead]")
        assert lines[-1].endswith("  short, 0 records  [present]")
    assert "n" * 120 in yolofs("timeline").out
