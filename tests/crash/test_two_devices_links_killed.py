"""A commit that moves hard links and directories from one device to another, and its undo, killed
at one line of their code after another: then it is finished, or taken back, and undone down to the
beginning.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.at_a_line import dies_at, has_way_back
from tests.crash.test_two_devices_chain import committed, exactly, undone
from tests.crash.two_devices import BOTH, project
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.model_steps import how_many
from tests.support.seed import dice
from tests.support.session_cleaning import remove_sessions_below
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.system.busy_trees import remove_tree

__all__ = ["project"]

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
SHARES = how_many(ci=1, nightly=24)
POINTS = 3
"""For each share; by night every line."""
OLD = 1_400_000_000_000_000_007
Tree = dict[bytes, tuple[Any, ...]]


def populate(project: Path) -> None:
    remove_sessions_below(bytes(project))
    for top in (project, project / "far"):
        for entry in top.iterdir():
            if entry.name != "far":
                remove_tree(bytes(entry))
    for top in (project, project / "far"):
        (top / "d/sub").mkdir(parents=True)
        for name in ("one", "d/x", "d/in", "d/both", "d/sub/z", "gone", "both"):
            (top / name).write_text(f"{top.name} {name}")
        (top / "two").hardlink_to(top / "one")
        (top / "out").hardlink_to(top / "d/in")
        (top / "d/sub/both").hardlink_to(top / "d/both")
        (top / "third").hardlink_to(top / "gone")
        (top / "both2").hardlink_to(top / "both")
    for path in sorted(project.rglob("*"), reverse=True):
        os.utime(path, ns=(OLD, OLD))


def first(view: CoreDriver) -> None:
    """Change what the second commit moves and removes."""
    view.overwrite(b"far/d/x", b"edited")
    view.chmod(b"far/d/sub/z", 0o600)
    view.overwrite(b"far/both", b"written in place")
    view.overwrite(b"d/sub/z", b"edited here")


def second(view: CoreDriver) -> None:
    view.rename(b"far/one", b"from far")
    view.rename(b"one", b"far/from near")
    view.overwrite(b"from far", b"all names get it")
    view.rename(b"d", b"far/near d")
    view.rename(b"far/d", b"far d")
    view.unlink(b"far/gone")
    view.unlink(b"gone")
    view.unlink(b"far/third")
    view.rename(b"far/both", b"far both")
    view.rename(b"far/both2", b"far both2")
    view.mkdir(b"far/new", 0o750)
    view.create(b"far/new/file", b"new", 0o640)


def prepare(project: Path) -> tuple[Tree, Tree]:
    """Return what base was before the first commit and after it; the second is staged."""
    populate(project)
    oldest = exactly(project)
    committed(project, first)
    between = exactly(project)
    view = CoreDriver(bytes(project))
    second(view)
    view.close()
    return oldest, between


def without_times(tree: Tree) -> Tree:
    return {path: (*what[:2], *what[3:]) for path, what in tree.items()}


def commit_all(session: Session) -> None:
    commit(session)


def undo_last(session: Session) -> None:
    undo(session, choose_commit(session, None))


def done(project: Path, act: Callable[[Session], object]) -> None:
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        act(session)


def lines(share: int, total: int, *what: str) -> list[int]:
    return points(range(total // 8, total + 1), "links on two devices", *what, some=POINTS, share=share, shares=SHARES)


def check_nothing_is_left(project: Path, where: str) -> None:
    assert list(project.rglob(".yolofs-*")) == [], where


def check_undo_to_the_beginning(project: Path, oldest: Tree, between: Tree, where: str) -> None:
    undone(project, None)
    assert exactly(project) == between, where
    undone(project, 1)
    assert exactly(project) == oldest, where
    check_nothing_is_left(project, where)


def counted(project: Path) -> tuple[int, Tree]:
    """Return how many lines a commit runs, and what base is then, without times."""
    prepare(project)
    total = dies_at(0, bytes(project), commit_all)
    assert total > 500
    return total, without_times(exactly(project))


@pytest.mark.parametrize("share", range(SHARES))
@BOTH
def test_a_commit_that_was_killed_is_finished_and_undone(project: Path, share: int) -> None:
    total, after = counted(project)
    for line in lines(share, total, "finished"):
        where = f"killed at line {line} of {total}"
        oldest, between = prepare(project)
        dies_at(line, bytes(project), commit_all)
        done(project, finish_interrupted)
        done(project, commit_all)
        assert without_times(exactly(project)) == after, where
        check_nothing_is_left(project, where)
        check_undo_to_the_beginning(project, oldest, between, where)


@pytest.mark.parametrize("share", range(SHARES))
@BOTH
def test_a_commit_that_was_killed_is_taken_back_and_done_again(project: Path, share: int) -> None:
    total, after = counted(project)
    drawing = dice("taking back links on two devices is killed", share)
    for line in lines(share, total, "taken back"):
        where = f"killed at line {line} of {total}"
        oldest, between = prepare(project)
        dies_at(line, bytes(project), commit_all)
        if has_way_back(bytes(project)):
            dies_at(drawing.randrange(20, 900), bytes(project), roll_back_interrupted)
            done(project, roll_back_interrupted)
            assert exactly(project) == between, where
            check_nothing_is_left(project, where)
        done(project, commit_all)
        assert without_times(exactly(project)) == after, where
        check_undo_to_the_beginning(project, oldest, between, where)


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
@pytest.mark.parametrize("share", range(SHARES))
@BOTH
@pytest.mark.some(2)
def test_an_undo_that_was_killed_is_finished_or_taken_back(project: Path, share: int, *, goes_back: bool) -> None:
    prepare(project)
    done(project, commit_all)
    total = dies_at(0, bytes(project), undo_last)
    for line in lines(share, total, "undo", str(goes_back)):
        where = f"killed at line {line} of {total}"
        oldest, between = prepare(project)
        done(project, commit_all)
        after = exactly(project)
        dies_at(line, bytes(project), undo_last)
        if goes_back and has_way_back(bytes(project)):
            done(project, roll_back_interrupted)
            assert exactly(project) == after, where
        done(project, finish_interrupted)
        if exactly(project) == after:  # it had not begun
            undone(project, None)
        assert exactly(project) == between, where
        check_nothing_is_left(project, where)
        undone(project, 1)
        assert exactly(project) == oldest, where
