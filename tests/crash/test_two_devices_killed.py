"""A commit whose files lie on two devices, killed at one line of its code after another: the same
as on one.

Whatever moves from one device to the other is copied, and deleted when that is durable.
"""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import pytest

from tests.crash.at_a_line import dies_at, has_way_back, killed_at
from tests.crash.two_devices import (
    BOTH,
    Prepare,
    base_of,
    killed_before_line,
    populate,
    prepare,
    project,
    times_of,
    times_shown,
)
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import and_more, points
from tests.support.model_steps import how_many
from tests.support.seed import dice
from yolofs.commit.apply import steps
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Place, Step
from yolofs.errors import ConflictError
from yolofs.paths import Generation
from yolofs.session.commit import commit, split_staged
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.up_to import commit_up_to
from yolofs.system.busy_trees import remove_tree

__all__ = ["prepare", "project"]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
SHARES = how_many(ci=1, nightly=24)
POINTS = 6
"""For each share; by night every line."""
SOME = (b"a", b"far/a", b"d", b"far/d", b"c", b"far/gone", b"far/there", b"new")
"""Moves of a file and of a directory are taken, there and back others stay."""


def lines(share: int, total: int) -> list[int]:
    return points(range(1, total + 1), "two devices", some=POINTS, share=share, shares=SHARES)


@pytest.mark.parametrize("share", range(SHARES))
@BOTH
def test_a_commit_killed_at_a_line_is_finished(project: Path, prepare: Prepare, share: int) -> None:
    root = os.fsencode(project)
    prepare()
    total = killed_at(0, root)
    for line in lines(share, total):
        expected = prepare()
        killed_at(line, root)
        with Session.open(root, SessionAccess.WRITE) as session:
            finish_interrupted(session)
            commit(session)
        assert base_of(project) == expected, f"killed at line {line} of {total}"
        assert not [name for name in os.listdir(project / "far") if name.startswith(".yolofs")]


@pytest.mark.parametrize("share", range(SHARES))
@BOTH
def test_a_commit_killed_at_a_line_is_taken_back(project: Path, prepare: Prepare, share: int) -> None:
    root = os.fsencode(project)
    prepare()
    total = killed_at(0, root)
    for line in lines(share, total):
        expected = prepare()
        before = base_of(project)
        killed_at(line, root)
        if has_way_back(root):
            dies_at(line % 400, root, roll_back_interrupted)
            with Session.open(root, SessionAccess.WRITE) as session:
                roll_back_interrupted(session)
            assert base_of(project) == before, f"killed at line {line} of {total}"
            assert not [name for name in os.listdir(project / "far") if name.startswith(".yolofs")]
        with Session.open(root, SessionAccess.WRITE) as session:
            commit(session)
        assert base_of(project) == expected, f"killed at line {line} of {total}"


@pytest.mark.parametrize("share", range(SHARES))
def test_a_commit_of_some_paths_is_finished_and_the_rest_stays_staged(
    project: Path, prepare: Prepare, share: int
) -> None:
    root = os.fsencode(project)
    prepare()
    before = base_of(project)
    total = killed_at(0, root, SOME)
    after = base_of(project)
    assert after != before
    assert (project / "far/a").read_text() == "project a"
    assert (project / "far/b").read_text() == "far b"
    assert (project / "far/back/file").exists()
    seen = set[bool]()
    for line in and_more(lines(share, total), range(total - 1, 0, -total // 40), lambda: len(seen) == 2):
        where = f"killed at line {line} of {total}"
        expected = prepare()
        killed_at(line, root, SOME)
        with Session.open(root, SessionAccess.WRITE) as session:
            seen.add(session.interrupted_commit() is not None)
            finish_interrupted(session)
        assert base_of(project) in (before, after), where
        view = CoreDriver(root)
        assert view.tree() == expected, where
        view.commit_paths(list(SOME))
        assert base_of(project) == after, where
        assert view.tree() == expected, where
        view.commit()
        assert view.tree() == expected, where
        view.close()
        assert base_of(project) == expected, where
    assert seen == {True, False}


@BOTH
def test_a_directory_has_its_time_back_though_the_deleting_of_what_was_copied_from_it_was_killed(
    project: Path, prepare: Prepare
) -> None:
    expected = prepare()
    root, times = os.fsencode(project), times_shown(project)
    child = os.fork()
    if not child:
        try:

            def remove_and_die(path: bytes) -> None:
                remove_tree(path)
                if b"/.yolofs-" in path:
                    os.kill(os.getpid(), signal.SIGKILL)

            with pytest.MonkeyPatch.context() as patch, Session.open(root, SessionAccess.WRITE) as session:
                patch.setattr(steps, "remove_tree", remove_and_die)
                commit(session)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with Session.open(root, SessionAccess.WRITE) as session:
        finish_interrupted(session)
    assert base_of(project) == expected
    assert times_of(project, times) == times


@BOTH
@pytest.mark.parametrize("loses_log", [False, True])
@pytest.mark.some(2)
def test_a_step_that_is_done_and_not_in_the_log_is_not_done_twice(
    project: Path, prepare: Prepare, loses_log: bool
) -> None:
    """Killed after each step in turn, before its line; or a power cut has taken the log, and
    nothing else.
    """
    root = os.fsencode(project)
    stride = how_many(ci=9, nightly=1)
    count = itertools.count(dice("steps on two devices", loses_log).randint(1, stride), stride)
    while True:
        expected = prepare()
        times, last = times_shown(project), next(count)
        if not killed_before_line(root, last):
            break
        with Session.open(root, SessionAccess.WRITE) as session:
            directory = session.interrupted_commit()
            assert directory is not None
            if loses_log:
                os.truncate(os.path.join(directory, b"progress"), 0)
            finish_interrupted(session)
        assert base_of(project) == expected, f"killed at step {last}"
        assert times_of(project, times) == times, f"killed at step {last}"
        assert list(project.rglob(".yolofs-*")) == [], f"killed at step {last}"
        assert os.listdir(os.path.join(directory, b"new")) == os.listdir(os.path.join(directory, b"parked")) == []
    assert last > 20


def test_a_name_that_another_user_has_seen_and_taken_blocks_no_commit(project: Path, prepare: Prepare) -> None:
    """The commit is taken back and done again: it has the same number, plan and place."""
    root = os.fsencode(project)
    expected = prepare()
    names: set[Path] = set()
    for last in range(1, 12, 2):
        assert killed_before_line(root, last)
        names.update(project.rglob(".yolofs-*"))
        with Session.open(root, SessionAccess.WRITE) as session:
            roll_back_interrupted(session)
    assert {path.name.rpartition("-")[2].isdigit() for path in names} == {False, True}
    for path in names:
        path.mkdir()
    with Session.open(root, SessionAccess.WRITE) as session:
        commit(session)
    for path in names:
        path.rmdir()
    assert base_of(project) == expected


@BOTH
@pytest.mark.parametrize("by_the_host", [False, True], ids=["untouched", "changed by the host"])
def test_a_file_copied_before_a_kill_is_no_conflict_with_its_later_staged_version(
    project: Path, *, by_the_host: bool
) -> None:
    populate(project)
    root = os.fsencode(project)
    view = CoreDriver(root)
    view.rename(b"d", b"far/moved")
    view.snapshot()
    view.overwrite(b"far/moved/x", b"later")
    view.close()
    child = os.fork()
    if not child:
        really = Steps.do

        def do(self: Steps, step: Step) -> None:
            really(self, step)
            if isinstance(step, Place):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with pytest.MonkeyPatch.context() as patch, Session.open(root, SessionAccess.WRITE) as session:
                patch.setattr(Steps, "do", do)
                commit_up_to(session, split=split_staged(session, None, tree=session.state(Generation(1))))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    if by_the_host:
        (project / "far/moved/x").write_text("the host's")
    with Session.open(root, SessionAccess.WRITE) as session:
        finish_interrupted(session)
    with Session.open(root, SessionAccess.WRITE) as session:
        if by_the_host:
            with pytest.raises(ConflictError):
                commit(session)
        else:
            commit(session)
    assert (project / "far/moved/x").read_text() == ("the host's" if by_the_host else "later")
    assert not (project / "d").exists()
