"""What a selection holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import takes_all
from yolofs.journal.records import ChangeRecord, Delete, Fingerprint, Rename, Stage
from yolofs.paths import ROOT, RelPath, StoreIno, join
from yolofs.state.regions import Region, Regions
from yolofs.state.tree import Tree
from yolofs.text.path_patterns import Patterns

REGIONS = Regions(RelPath(b"p"), (RelPath(b"p/build"), RelPath(b"tmp")))
ALL = frozenset(Region)
PROJECT = frozenset((Region.PROJECT,))


def test_a_selection_without_options_holds_the_project_alone() -> None:
    selection = Selection(REGIONS)
    assert [selection.has(path) for path in (b"p/a", b"p/build/a", b"tmp/a", b"a")] == [True, False, False, False]


def test_a_selection_of_paths_takes_them_in_any_region() -> None:
    selection = Selection(REGIONS, paths=(RelPath(b"tmp/a"),))
    assert [selection.has(path) for path in (b"tmp/a", b"tmp/a/b", b"tmp/ab", b"p/a")] == [True, True, False, False]


def test_what_is_left_out_below_is_where_another_region_begins() -> None:
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
        (Selection(REGIONS, ALL, excluded=Patterns([((b"p", b"x"), "p/x")])), False),
        (Selection(REGIONS, paths=(ROOT,), excluded=Patterns([((b"p", b"x"), "p/x")])), False),
        (Selection(REGIONS, ALL, left_staged=frozenset((RelPath(b"p/x"),))), False),
    ],
)
def test_a_selection_is_everything_if_nothing_can_be_left_out(selection: Selection, expected: bool) -> None:
    assert selection.is_everything is expected


class Counted(frozenset[RelPath]):
    """Paths, and how often somebody has gone through all of them."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Iterator[RelPath]:
        type(self).times += 1
        return super().__iter__()


class CountedTuple(tuple[RelPath, ...]):
    """The same in an order."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Iterator[RelPath]:
        type(self).times += 1
        return super().__iter__()


def test_no_question_goes_through_all_of_many_paths() -> None:
    names = [RelPath(b"p/%d" % number) for number in range(50)]
    paths, left = CountedTuple(names), Counted(join(name, b"left") for name in names)
    selection = Selection(REGIONS, paths=paths, left_staged=left)
    CountedTuple.times = Counted.times = 0
    for name in names:
        assert selection.has(name)
        assert selection.has(name + b"/below")
        assert not selection.has(name + b"/left")
        assert not selection.has_some_in(name)
        assert selection.left_out_below(name) == name + b"/left"
        assert selection.left_out_below(name + b"/left") is None
    assert selection.has_some_in(b"p")
    assert selection.has_some_in(b"")
    assert not selection.has_some_in(b"q")
    assert not Selection(REGIONS, paths=(ROOT,)).has_some_in(b"")
    assert CountedTuple.times + Counted.times < 5


def test_a_selection_leaves_out_a_path_below_one_that_was_asked_for() -> None:
    selection = Selection(REGIONS, paths=(RelPath(b"p"),), left_staged=frozenset((RelPath(b"p/x"),)))
    assert [selection.has(path) for path in (b"p/x", b"p/y")] == [False, True]


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
def test_whether_all_of_a_state_is_taken_can_mostly_be_told_at_once(records: list[ChangeRecord], is_all: bool) -> None:
    selection = Selection(Regions(HOME, (RelPath(b"home/project/.cache"),)))
    assert takes_all(Tree(records), selection) is is_all


def test_what_may_not_be_removed_with_its_directory_is_looked_for() -> None:
    """The pattern fits what base has in there, of which the state says nothing."""
    tree = Tree([Delete(1, RelPath(b"home/project/d"))])
    selection = Selection(Regions(HOME), excluded=Patterns([((b"home", b"project", b"d", b"x"), "d/x")]))
    assert not takes_all(tree, selection)
    assert takes_all(tree, Selection(Regions(HOME)))
