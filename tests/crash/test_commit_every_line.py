"""A commit is killed at one line of its code after another, and finished: base is what the view
was, every time.

By night that is every line; else some, and others in each run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.at_a_line import dies_at, has_way_back, killed_at
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import and_more, points
from tests.support.looks import exactly
from tests.support.model_steps import how_many
from tests.support.plain_directory import by_first_name, walk_tree
from tests.support.seed import dice
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.timeout(300)
SHARES = how_many(ci=2, nightly=64)
"""The kill points are dealt out to so many tests, that each may be short."""
POINTS = 6
"""For each share; test_commit_every_step kills before and after steps besides."""


def lines(total: int, share: int, shares: int) -> list[int]:
    """Return at which of so many lines one of so many shares is killed."""
    return points(range(1, total + 1), "lines", some=POINTS, share=share, shares=shares)


def late_lines(total: int) -> range:
    """Return lines from the last on, at which a commit is half done sooner or later."""
    return range(total - 1, 0, -total // 40)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_commit_killed_at_a_line_is_finished_and_base_is_the_view(tmp_path: Path, share: int) -> None:
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project)
    assert total > 500
    interrupted = set[int]()
    for line in and_more(lines(total, share, SHARES), late_lines(total), lambda: bool(interrupted)):
        expected = prepare(directory)
        killed_at(line, project)
        with Session.open(project, SessionAccess.WRITE) as session:
            if session.interrupted_commit() is not None:
                interrupted.add(line)
            finish_interrupted(session)
            commit(session)
        assert by_first_name(dict(walk_tree(project))) == expected, f"killed at line {line} of {total}"
    assert interrupted  # the others died while planning or making, or when all was done


@pytest.mark.parametrize("share", range(SHARES))
def test_a_commit_killed_at_a_line_is_taken_back_even_if_that_is_killed_too(tmp_path: Path, share: int) -> None:
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project)
    taken_back = set[int]()
    drawing = dice("taking back is killed", share)
    for line in and_more(lines(total, share, SHARES), late_lines(total), lambda: bool(taken_back)):
        where = f"killed at line {line} of {total}"
        expected = prepare(directory)
        before, contents = exactly(directory), by_first_name(dict(walk_tree(project)))
        killed_at(line, project)
        if has_way_back(project):
            dies_at(drawing.randrange(20, 320), project, roll_back_interrupted)
            with Session.open(project, SessionAccess.WRITE) as session:
                roll_back_interrupted(session)
                assert session.interrupted_commit() is None, where
            assert exactly(directory) == before, where
            assert by_first_name(dict(walk_tree(project))) == contents, where
            taken_back.add(line)
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        assert by_first_name(dict(walk_tree(project))) == expected, where
    assert taken_back


@pytest.mark.parametrize("share", range(how_many(ci=1, nightly=16)))
def test_a_commit_that_was_killed_while_taken_back_can_be_finished_instead(tmp_path: Path, share: int) -> None:
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project)
    finished = 0
    drawing = dice("finished all the same", share)
    for _ in range(POINTS):
        expected = prepare(directory)
        line, back = drawing.randrange(total - total // 4, total - total // 6), drawing.randrange(100, 1100)
        where = f"killed at line {line} of {total}, and at line {back} of taking back"
        killed_at(line, project)
        dies_at(back, project, roll_back_interrupted)
        with Session.open(project, SessionAccess.WRITE) as session:
            finished += finish_interrupted(session) is not None
            commit(session)
        assert by_first_name(dict(walk_tree(project))) == expected, where
    assert finished


SOME = (b"a", b"b", b"c", b"new", b"d", b"g")
"""Of each kind of step one is taken and, where there are two, one stays; what moved out of ``f`` is
held back.
"""
SOME_SHARES = how_many(ci=1, nightly=64)


@pytest.mark.parametrize("share", range(SOME_SHARES))
def test_a_commit_of_some_paths_is_finished_and_the_rest_stays_staged(tmp_path: Path, share: int) -> None:
    """The view is the same all the time; base is what it was, or all that was selected is in it."""
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    before = by_first_name(dict(walk_tree(project)))
    total = killed_at(0, project, SOME)
    after = by_first_name(dict(walk_tree(project)))
    assert total > 500
    assert after != before
    seen = set[bool]()
    for line in and_more(lines(total, share, SOME_SHARES), late_lines(total), lambda: len(seen) == 2):
        where = f"killed at line {line} of {total}"
        expected = prepare(directory)
        killed_at(line, project, SOME)
        with Session.open(project, SessionAccess.WRITE) as session:
            seen.add(session.interrupted_commit() is not None)
            finish_interrupted(session)
        now = by_first_name(dict(walk_tree(project)))
        assert now in (before, after), where
        view = CoreDriver(project)
        assert view.tree() == expected, where
        view.commit_paths(list(SOME))
        assert by_first_name(dict(walk_tree(project))) == after, where
        assert view.tree() == expected, where
        view.commit()
        assert view.tree() == expected, where
        view.close()
        assert by_first_name(dict(walk_tree(project))) == expected, where
    assert seen == {True, False}


LAST_SHARES = how_many(ci=1, nightly=8)


@pytest.mark.parametrize("share", range(LAST_SHARES))
def test_nothing_is_lost_between_the_journal_that_ends_and_the_one_that_follows(tmp_path: Path, share: int) -> None:
    """At some of the last lines, by which base is as it will be."""
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project, SOME)
    after = by_first_name(dict(walk_tree(project)))
    for line in points(range(total - 319, total + 1), "last", some=POINTS, share=share, shares=LAST_SHARES):
        expected = prepare(directory)
        killed_at(line, project, SOME)
        view = CoreDriver(project)
        if view.session.interrupted_commit() is not None:
            view.close()
            with Session.open(project, SessionAccess.WRITE) as session:
                finish_interrupted(session)
            view = CoreDriver(project)
        assert view.tree() == expected, f"killed at line {line} of {total}"
        assert view.session.timeline.resolve("left by commit 1") == 1
        view.close()
        assert by_first_name(dict(walk_tree(project))) == after
