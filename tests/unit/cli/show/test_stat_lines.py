"""Tests for :mod:`yolofs.cli.show.stat_lines`."""

from __future__ import annotations

import pytest

from yolofs.changes.patch_stat import FileStat
from yolofs.cli.show.stat_lines import stat_lines
from yolofs.cli.show.text_width import fitting, width_of

STATS = [
    FileStat("日本語.txt".encode(), None, 3, 1, None),
    FileStat(b"a.txt", None, 30, 100, None),
    FileStat(("way/" * 20 + "日本" * 10).encode(), None, 3, 1, None),
    FileStat(b"picture", b"before", 0, 0, (1 << 20, 2 << 20)),
]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_columns_stand_one_below_the_other_and_have_room_whatever_the_names(width: int) -> None:
    *lines, total = stat_lines(STATS, width)
    bars = {width_of(line.partition(" | ")[0]) for line in lines}
    assert len(bars) == 1, lines
    assert max(map(width_of, lines)) <= width
    assert all("…" in line for line in lines if "way/" in line)
    assert fitting(total, 16) == " 4 files changed"
