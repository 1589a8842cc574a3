"""What a selection holds."""

from __future__ import annotations

import pytest

from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import takes_all
from yolofs.journal.records import Change, Delete, Fingerprint, Rename, Stage
from yolofs.paths import ROOT, RelPath, StoreIno
from yolofs.state.regions import Region, Regions
from yolofs.state.tree import Tree

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


HOME = RelPath(b"home/project")
NEW = Stage(1, RelPath(b"home/project/new"), StoreIno(1))


@pytest.mark.parametrize(
    ("records", "is_all"),
    [
        ([], True),
        ([NEW], True),
        ([NEW, Rename(2, RelPath(b"home/project/old"), RelPath(b"home/project/moved"))], True),
        ([NEW, Stage(2, RelPath(b"home/other"), StoreIno(2))], False),
        ([NEW, Stage(2, RelPath(b"home/project/.cache/x"), StoreIno(2))], False),
        ([NEW, Delete(2, RelPath(b"home/gone"))], False),
        ([NEW, Delete(2, RelPath(b"home/project"))], False),  # what is scratch in there would go with it
        ([Rename(1, RelPath(b"home/project"), RelPath(b"home/moved"))], False),
        ([Rename(1, RelPath(b"home/from"), RelPath(b"home/project/to"))], False),
        ([Stage(1, RelPath(b"home"), StoreIno(1), origin=RelPath(b"home"))], False),
        ([Stage(1, ROOT, StoreIno(1), origin=ROOT)], False),
        ([Stage(1, NEW.path, StoreIno(1), base=Fingerprint(1, 1, 1), links=2)], False),
        ([Delete(1, NEW.path, unlinks=7)], False),
    ],
)
def test_whether_all_of_a_state_is_taken_can_mostly_be_told_at_once(records: list[Change], is_all: bool) -> None:
    selection = Selection(Regions(HOME, (RelPath(b"home/project/.cache"),)))
    assert takes_all(Tree(records), selection) is is_all
