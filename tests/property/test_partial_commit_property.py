"""A commit of a selection, whatever was done to the view: base gets what was selected, and the view
is the same.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.property.test_commit_property import (
    DIRECTORIES,
    FILES,
    NAMES,
    Operation,
    after,
    hard_links,
    has_second_device,
    programs,
)
from tests.support.commit_model import CommitScribe, Node, besides, scan
from yolofs.commit import execute, plan_commit
from yolofs.commit.plan.last_check import check_rest
from yolofs.commit.select.entry_authors import Authors
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import Split, split_state, takes_all
from yolofs.journal.codec import decode, encode
from yolofs.journal.records import Keep
from yolofs.paths import RelPath, is_below, join
from yolofs.state.regions import Regions
from yolofs.state.tree import Tree

places = st.one_of(
    st.sampled_from(DIRECTORIES + FILES),
    st.sampled_from(NAMES),
    st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(NAMES)).map(lambda pair: join(*pair)),
)
selections = st.lists(places, min_size=1, max_size=4).map(
    lambda paths: Selection(Regions(RelPath(b"")), paths=tuple(map(RelPath, paths)))
)
by_regions = st.lists(st.sampled_from(DIRECTORIES), max_size=2).map(
    lambda scratch: Selection(Regions(RelPath(b"d"), tuple(map(RelPath, scratch))))
)


def split_scribed(scribe: CommitScribe, selection: Selection) -> Split:
    authors = Authors(scribe.records, 1)
    split = split_state(scribe.tree, scribe.base, scribe.store, selection, authors, may_leave_times=True)
    if takes_all(scribe.tree, selection):
        event("all is taken, as can be told at once")
        assert not split.rest
        assert not split.held_back
    for record in split.rest:
        assert decode(encode(record)) == record
    return split


def commit(scribe: CommitScribe, tree: Tree, parking: bytes, rest: Iterable[Keep] = ()) -> None:
    plan = plan_commit(tree, scribe.base, scribe.store)
    execute(plan, scribe.store, parking=parking, is_spare=besides(rest), durable=False)


def check(
    program: list[Operation], links: list[tuple[bytes, ...]], selection: Selection, session: str | None = None
) -> None:
    with after(program, links, session) as (scribe, parking):
        root = scribe.base.root
        view, before, numbers = scribe.expected(), scan(root), numbers_of(root)
        split = split_scribed(scribe, selection)
        note(f"stays: {split.rest}")
        note(f"held: {split.held_back}")
        if split.rest:
            plan = plan_commit(split.taken, scribe.base, scribe.store)
            check_rest(plan, scribe.tree, scribe.base, Tree(split.rest))
        commit(scribe, split.taken, parking, split.rest)
        now = scan(root)
        numbers_now = numbers_of(root)
        come_along = carried(numbers, numbers_now, selection)
        untimed = untimed_of(scribe, split, numbers) | untimed_of(scribe, split, numbers_now)
        event(f"a time alone stays: {bool(split.taken.left_times)}")
        check_base(before, now, view, selection, held_at(split, numbers, numbers_now), come_along, untimed)
        if not split.rest:
            assert now == view
            return
        event("something stays")
        event(f"something is taken: {now != before}")
        event(f"something is held: {bool(split.held_back)}")
        scribe.tree = Tree(split.rest)
        assert scribe.expected() == view
        commit(scribe, scribe.tree, parking + b"2")
        assert scan(root) == view


def check_base(
    before: dict[bytes, Node],
    now: dict[bytes, Node],
    view: dict[bytes, Node],
    selection: Selection,
    held: set[bytes],
    come_along: dict[bytes, bytes],
    untimed: Iterable[bytes],
) -> None:
    """What is selected is as in the view, but for what is ``held``; nothing else is other than
    before.

    ``come_along``: what was carried along by a directory that was selected, from where to where.
    ``untimed``: files with names that are not selected, and of which only the time differs there:
    that stays as it was.
    """
    view = {
        path: node._replace(mtime_ns=now[path].mtime_ns) if path in untimed and path in now else node
        for path, node in view.items()
    }
    for old, new in come_along.items():
        assert plain(now[new]) == plain(before[old]), new
    for path in before.keys() | now.keys() | view.keys():
        if path in come_along or path in come_along.values():
            continue
        if not selection.has(path):
            if path in before or not is_new_parent(path, now, selection):
                assert plain(now.get(path)) == plain(before.get(path)), path
        elif not any(is_below(path, other) or is_below(other, path) for other in held):
            assert plain(now.get(path)) == plain(view.get(path)), path


def untimed_of(scribe: CommitScribe, split: Split, there: dict[bytes, int]) -> set[bytes]:
    """Return the paths of files that are committed without their time, in the view, or in base as
    it was ``there``.
    """
    files = [scribe.tree.staged[ino] for ino in split.taken.left_times]
    numbers = {staged.base.ino for staged in files if staged.base is not None}
    names: set[bytes] = {entry.path() for staged in files for entry in staged.names}
    return names | {path for path, number in there.items() if number in numbers}


def held_at(split: Split, before: dict[bytes, int], now: dict[bytes, int]) -> set[bytes]:
    """Return the paths of what is held, and where it lies now if a directory above it has moved."""
    held: set[bytes] = {path for one in split.held_back for path in one.paths}
    numbers = {before[path] for path in held if path in before}
    return held | {path for path, number in now.items() if number in numbers}


def numbers_of(root: bytes) -> dict[bytes, int]:
    """Return the inode number of everything in a directory, by path."""
    found = {}
    for directory, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = os.path.join(directory, name)
            found[path[len(root) + 1 :]] = os.lstat(path).st_ino
    return found


def carried(before: dict[bytes, int], now: dict[bytes, int], selection: Selection) -> dict[bytes, bytes]:
    """Return what lies elsewhere as a directory above it was selected and moved: old and new paths,
    not selected both.

    A scratch directory goes where the directory goes in which it lies.
    """
    places = {number: path for path, number in now.items()}
    found = {}
    for old, number in before.items():
        new = places.get(number)
        if new is None or new == old or (selection.has(old) and selection.has(new)):
            continue
        top, there = old, new
        while os.path.basename(top) == os.path.basename(there) and not (selection.has(top) and selection.has(there)):
            top, there = os.path.dirname(top), os.path.dirname(there)
        if selection.has(top) and selection.has(there) and before.get(top) == now.get(there):
            found[old] = new
    return found


def is_new_parent(path: bytes, now: dict[bytes, Node], selection: Selection) -> bool:
    """Tell whether a path is a directory that holds something selected."""
    holds = any(selection.has(other) and is_below(other, path) for other in now)
    return path in now and stat.S_ISDIR(now[path].kind) and holds


def plain(node: Node | None) -> Any:
    """Return what is compared: links have other names before the rest is committed, directories
    other times.
    """
    if node is None:
        return None
    return node._replace(links=frozenset(), mtime_ns=0 if stat.S_ISDIR(node.kind) else node.mtime_ns)


def paths(*some: bytes) -> Selection:
    return Selection(Regions(RelPath(b"")), paths=tuple(map(RelPath, some)))


@given(programs, selections)
@example([("rename", b"b", b"d/new")], paths(b"d"))  # moved in from outside
@example([("rename", b"b", b"d/new")], paths(b"b", b"d"))
@example([("exchange", b"d/b", b"b")], paths(b"d"))
@example([("mkdir", b"x"), ("mkdir", b"x/y"), ("write", b"x/y/z", b"z"), ("write", b"x/w", b"w")], paths(b"x/y/z"))
@example([("rename", b"a", b"x"), ("write", b"x/new", b"n")], paths(b"x"))
@example([("rename", b"d/a", b"x"), ("remove", b"d")], paths(b"x", b"d/a"))
@example([("remove", b"d")], paths(b"d/a"))
@example([("remove", b"b"), ("mkdir", b"b"), ("write", b"b/c", b"c")], paths(b"b/c"))
@example([("rename", b"d/d", b"y"), ("rename", b"d", b"y/x")], paths(b"d", b"y/x"))  # one in the other, turned over
@example([("rename", b"d", b"x"), ("write", b"x/a/a", b"new")], paths(b"d/a/a", b"x/a/a"))
@example([("chmod", b"d", 0o500), ("write", b"d/new", b"n")], paths(b"d/new"))
@example([("write", b"d/new", b"n"), ("remove", b"d/new")], paths(b"a"))
@example([("mkdir", b"c/new"), ("mkdir", b"c/new/x"), ("rename", b"c/new/x", b"x")], paths(b"c"))
def test_a_commit_of_any_paths_leaves_the_view_as_it_was(program: list[Operation], selection: Selection) -> None:
    check(program, [], selection)


@given(programs, hard_links, selections)
@example([("write", b"b", b"new")], [(b"b", b"d", b"link")], paths(b"b"))
@example([("write", b"b", b"new")], [(b"b", b"a", b"link")], paths(b"a"))
@example([("write", b"b", b"new")], [(b"b", b"d", b"link")], paths(b"b", b"d"))
@example([("remove", b"b")], [(b"b", b"d", b"link")], paths(b"b"))
@example([("utime_any", b"b", 10**17), ("remove", b"b")], [(b"b", b"d", b"link")], paths(b"b"))
@example([("utime_any", b"d/link", 10**17), ("remove", b"d")], [(b"b", b"d", b"link")], paths(b"d"))
@example([("utime_any", b"b", 10**17), ("link", b"b", b"c/new")], [(b"b", b"d", b"link")], paths(b"c"))
@example([("link", b"b", b"c/new"), ("utime_any", b"b", 10**17)], [], paths(b"c"))
@example([("write", b"a/link", b"new")], [(b"b", b"a", b"link")], paths(b"b"))
@example([("write", b"a/link", b"new")], [(b"b", b"a", b"link")], paths(b"c"))
@example([("remove", b"d"), ("write", b"b", b"new")], [(b"b", b"d", b"link")], paths(b"d"))
@example([("recreate", b"d"), ("write", b"b", b"new")], [(b"b", b"d/a", b"link")], paths(b"b"))
@example([("recreate", b"d"), ("write", b"b", b"new")], [(b"b", b"d/a", b"link")], paths(b"d", b"b"))
@example([("remove", b"d"), ("chmod", b"c", 0o700)], [(b"b", b"d", b"link")], paths(b"c"))
@example([("rename", b"c/a", b"c/x"), ("rename", b"c/x/b", b"d/new")], [(b"c/a/b", b"d/a", b"link")], paths(b"c"))
def test_a_commit_where_base_has_hard_links_leaves_the_view_as_it_was(
    program: list[Operation], links: list[tuple[bytes, ...]], selection: Selection
) -> None:
    check(program, links, selection)


@given(programs, by_regions)
@example([("remove", b"d")], Selection(Regions(RelPath(b"d"), (RelPath(b"d/a"),))))
@example([("exchange", b"d/a", b"d/d")], Selection(Regions(RelPath(b"d"), (RelPath(b"d/d/d"),))))
@example([("rename", b"d/d", b"d/x"), ("rename", b"d/x/a", b"b")], Selection(Regions(RelPath(b"d"))))
@example([("rename", b"d/d", b"d/new")], Selection(Regions(RelPath(b"d"), (RelPath(b"d/d/d"),))))
@example(
    [("write", b"d/a/a", b"new"), ("write", b"d/b", b"new")], Selection(Regions(RelPath(b"d"), (RelPath(b"d/a"),)))
)
def test_a_commit_of_a_project_with_scratch_directories_leaves_the_view_as_it_was(
    program: list[Operation], selection: Selection
) -> None:
    check(program, [], selection)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@given(programs, hard_links, selections)
def test_a_commit_with_the_session_on_another_device_leaves_the_view_as_it_was(
    program: list[Operation], links: list[tuple[bytes, ...]], selection: Selection
) -> None:
    check(program, links, selection, session="/dev/shm")
