"""Each call that a commit makes fails once with each error, and all of them from some call on (by
night; else some do).

Base is as it was and all is staged, or it is what the view was; what is said is one sentence with
the way on; and the next command ends well.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate, work
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.memory_disk import memory_directory
from yolofs.errors import CommitError, NotPreparedError, RolledBackError, YolofsError
from yolofs.session.commit import CommitResult, commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.timeout(300)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT)
CODES = {NotPreparedError: 17, RolledBackError: 18, CommitError: 12}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for project and sessions, in memory if there is one."""
    with memory_directory() as directory:
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        yield directory


class Staged(NamedTuple):
    """A project with something of every kind staged."""

    project: bytes
    before: dict[bytes, Node]
    after: dict[bytes, Node]


def staged(place: Path, number: int) -> Staged:
    """Make a project; what base is to become is found out by one that is committed."""
    found = []
    for name in ("done", "to do"):
        project = os.fsencode(place / f"{name} {number}")
        os.mkdir(project)
        populate(project)
        for path in scan(project):
            os.utime(os.path.join(project, path), ns=(0, 1_400_000_000_000_000_000), follow_symlinks=False)
        view = CoreDriver(project)
        work(view)
        view.close()
        before = scan(project)
        if name == "done":
            with Session.open(project, SessionAccess.WRITE) as session:
                commit(session)
        found.append((project, before, without_times(scan(project))))
    return Staged(found[1][0], found[1][1], found[0][2])


def without_times(nodes: dict[bytes, Node]) -> dict[bytes, Node]:
    return {path: node._replace(mtime_ns=0) for path, node in nodes.items() if path != b".yolofs"}


def attempt(project: bytes, faults: Faults) -> CommitResult | YolofsError:
    """Commit with faults, and return what comes of it; anything but our own errors is a defect."""
    with Session.open(project, SessionAccess.WRITE) as session, faults.at_work():
        try:
            return commit(session)
        except YolofsError as error:
            return error


def check_said(result: CommitResult | YolofsError) -> str:
    """Check what is said; return what it comes to."""
    if isinstance(result, CommitResult):
        return "done"
    assert result.exit_code == CODES[type(result)]
    assert result.hint
    assert "\n" not in result.message
    assert not result.message.endswith(".")
    if not isinstance(result, CommitError):
        assert "base is as it was, and all stays staged" in result.message
        return "as before"
    return "interrupted"


def end_it(project: bytes, *, goes_back: bool) -> str:
    """Do what the next command does."""
    with Session.open(project, SessionAccess.WRITE) as session:
        found = session.interrupted()
        if found is None:
            return "nothing"
        if goes_back and found.way_back is not None:
            roll_back_interrupted(session)
            return "taken back"
        finish_interrupted(session)
        return "finished"


def counted(project: bytes) -> int:
    """Commit, and return how many calls that takes."""
    faults = Faults(0, range(0))
    assert isinstance(attempt(project, faults), CommitResult)
    return faults.count


@pytest.mark.parametrize("number", ERRORS, ids=lambda number: errno.errorcode[number])
@pytest.mark.some(2)
def test_a_commit_of_which_one_call_fails_ends_before_or_after(place: Path, number: int) -> None:
    made = 1
    one = staged(place, 0)
    total = counted(staged(place, 1).project)
    assert total > 100
    seen: Counter[str] = Counter()
    calls = points(range(total), number, some=18)
    for call in calls:
        where = f"call {call} of {total}"
        result = attempt(one.project, Faults(number, range(call, call + 1)))
        said = check_said(result)
        seen[said] += 1
        if said == "interrupted":
            seen[end_it(one.project, goes_back=bool(call % 2))] += 1
        now = scan(one.project)
        if said == "as before":
            assert now == one.before, where
            continue
        left_out = result.left_out if isinstance(result, CommitResult) else {}  # told, and no harm
        is_after = {path: node for path, node in without_times(now).items() if path not in left_out} == {
            path: node for path, node in one.after.items() if path not in left_out
        }
        assert now == one.before or is_after, where
        made += 1
        one = staged(place, made)
    assert seen["as before"] > len(calls) // 6, seen


@pytest.mark.parametrize("number", [errno.EROFS, errno.EIO], ids=lambda number: errno.errorcode[number])
@pytest.mark.parametrize("goes_back", [False, True], ids=["continue", "roll back"])
@pytest.mark.some(2)
def test_a_commit_whose_disk_fails_from_one_call_on_ends_before_or_after(
    place: Path, number: int, goes_back: bool
) -> None:
    total = counted(staged(place, 0).project)
    seen: Counter[str] = Counter()
    for call in points(range(3, total), number, goes_back, some=10):
        where = f"call {call} of {total}"
        one = staged(place, call)
        said = check_said(attempt(one.project, Faults(number, range(call, 1 << 30))))
        seen[said] += 1
        end = end_it(one.project, goes_back=goes_back)
        seen[end] += 1
        now = scan(one.project)
        if said == "as before" or end == "taken back":
            assert now == one.before, where
        else:  # where nothing is left to be done, what failed was to wait for the disk
            assert without_times(now) == one.after, where
    assert seen["interrupted"], seen


@pytest.mark.parametrize("goes_back", [False, True], ids=["continue", "roll back"])
@pytest.mark.some(1)
def test_a_prepared_commit_that_cannot_be_removed_counts_as_interrupted(place: Path, goes_back: bool) -> None:
    """It is durable by then, so the next command finds it; what was said before has to fit that."""
    seen: Counter[str] = Counter()
    for call in range(20, 50):  # around the one that ends the preparing
        one = staged(place, call)
        result = attempt(one.project, Faults(errno.EROFS, range(call, 1 << 30)))
        said = check_said(result)
        with Session.open(one.project, SessionAccess.WRITE) as session:
            is_there = session.interrupted() is not None
        assert is_there == (said == "interrupted"), f"call {call}"
        if said == "interrupted" and "not begun" in str(result):
            assert "what was prepared cannot be removed" in str(result)
            assert scan(one.project) == one.before
            seen[end_it(one.project, goes_back=goes_back)] += 1
            assert (scan(one.project) == one.before) is goes_back
    assert seen["taken back" if goes_back else "finished"], seen
