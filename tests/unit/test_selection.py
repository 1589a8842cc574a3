"""What a selection holds."""

from __future__ import annotations

import pytest

from yolofs.paths import ROOT, RelPath
from yolofs.regions import Region, Regions
from yolofs.selection import Selection

REGIONS = Regions(RelPath(b"p"), (RelPath(b"p/build"), RelPath(b"tmp")))
ALL = frozenset(Region)
PROJECT = frozenset((Region.PROJECT,))


def test_without_more_it_is_the_project() -> None:
    selection = Selection(REGIONS)
    assert [selection.has(path) for path in (b"p/a", b"p/build/a", b"tmp/a", b"a")] == [True, False, False, False]


def test_paths_alone_count_wherever_they_lie() -> None:
    selection = Selection(REGIONS, paths=(RelPath(b"tmp/a"),))
    assert [selection.has(path) for path in (b"tmp/a", b"tmp/a/b", b"tmp/ab", b"p/a")] == [True, True, False, False]


def test_it_ends_where_another_region_begins() -> None:
    assert Selection(REGIONS).left_out_below(b"p") == b"p/build"
    assert Selection(REGIONS).left_out_below(b"p/src") is None
    assert Selection(REGIONS, frozenset((Region.OUTSIDE,))).left_out_below(b"") == b"p"
    assert Selection(REGIONS, ALL).left_out_below(b"p") is None


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(REGIONS), False),
        (Selection(REGIONS, ALL), True),
        (Selection(Regions(ROOT)), True),
        (Selection(Regions(ROOT, (RelPath(b"tmp"),))), False),
        (Selection(Regions(RelPath(b"p")), PROJECT | {Region.OUTSIDE}), True),
        (Selection(REGIONS, paths=(ROOT,)), True),
        (Selection(REGIONS, ALL, paths=(RelPath(b"p"),)), False),
    ],
)
def test_it_is_everything_where_nothing_can_be_left_out(selection: Selection, expected: bool) -> None:
    assert selection.is_everything is expected
