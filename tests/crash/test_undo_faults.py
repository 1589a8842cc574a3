"""Each call that an undo makes fails once with each error (by night; else some do): base is as it
was or as it is to be, and the view what it was.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.test_commit_faults import check_said, end_it, without_times
from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate, work
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.memory_disk import memory_directory
from yolofs.errors import YolofsError
from yolofs.session.commit import CommitResult, commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import UndoResult, choose_commit, undo

pytestmark = pytest.mark.timeout(300)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EPERM, errno.EOPNOTSUPP)
POINTS = 12
"""So many of all calls fail with one of all errors; by night each call with each error."""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for project and sessions, in memory if there is one."""
    with memory_directory() as directory:
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        yield directory


def attempt(project: bytes, faults: Faults) -> UndoResult | YolofsError:
    """Undo with faults, and return what comes of it; anything but our own errors is a defect."""
    with Session.open(project, SessionAccess.WRITE) as session:
        last = choose_commit(session, None)
        with faults.at_work():
            try:
                return undo(session, last)
            except YolofsError as error:
                return error


def view_of(project: bytes) -> dict[bytes, Node]:
    """Return what the view shows, found by committing it, which is undone again."""
    with Session.open(project, SessionAccess.WRITE) as session:
        commit(session)
        shown = scan(project)
        result = undo(session, choose_commit(session, None))
        assert not result.stays
        return shown


@pytest.mark.parametrize("number", ERRORS, ids=lambda number: errno.errorcode[number])
@pytest.mark.some(3)
def test_an_undo_of_which_one_call_fails_ends_before_or_after(place: Path, number: int) -> None:
    project = os.fsencode(place / "project")
    os.mkdir(project)
    populate(project)
    view = CoreDriver(project)  # which leaves a link in the project
    for path in scan(project):
        os.utime(os.path.join(project, path), ns=(0, 1_400_000_000_000_000_000), follow_symlinks=False)
    before = scan(project)
    work(view)
    view.close()
    with Session.open(project, SessionAccess.WRITE) as session:
        commit(session)
    after = scan(project)
    faults = Faults(0, range(0))
    assert isinstance(attempt(project, faults), UndoResult)
    total = faults.count
    assert total > 100
    assert scan(project) == before
    assert view_of(project) == after
    with Session.open(project, SessionAccess.WRITE) as session:
        commit(session)
    seen: Counter[str] = Counter()
    for call in points(range(total), "undo", number, some=POINTS):
        where = f"call {call} of {total}"
        result = attempt(project, Faults(number, range(call, call + 1)))
        said = "done" if isinstance(result, UndoResult) else check_said(result)
        seen[said] += 1
        if said == "interrupted":
            seen[end_it(project, goes_back=bool(call % 2))] += 1
        now = scan(project)
        if said == "as before":
            assert without_times(now) == without_times(after), where
            continue
        if without_times(now) == without_times(after):
            continue
        left_out = result.left_out if isinstance(result, UndoResult) else {}
        for path, node in before.items():
            is_told = path in left_out or not node.links.isdisjoint(left_out)
            assert is_told or now[path]._replace(mtime_ns=0) == node._replace(mtime_ns=0), (where, path)
        assert now.keys() == before.keys(), where
        before = now  # with what was told that it could not be carried over
        with Session.open(
            project, SessionAccess.WRITE
        ) as session:  # the same again; a time that stayed out is no drift
            assert isinstance(commit(session), CommitResult)
        again = scan(project)
        for path, node in without_times(again).items():
            is_told = path in left_out or not node.links.isdisjoint(left_out)
            assert is_told or node == without_times(after)[path], (where, path)
        assert again.keys() == after.keys(), where
        after = again
    assert seen["as before"] > POINTS // 6, seen
    assert seen["done"], seen
