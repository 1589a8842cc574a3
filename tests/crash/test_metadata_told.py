"""A command names times, modes, owners and extended attributes that it could not set, also after a
kill, and after taking a commit back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.staged_metadata import CALLS, fails_at_the_end, staged_metadata
from tests.support.commit_model import scan
from tests.support.injected_faults import Faults
from tests.support.planting import interrupt
from yolofs.commit.apply import execution
from yolofs.errors import CommitError
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """A project with something of every kind staged, metadata among it."""
    with staged_metadata(monkeypatch) as path:
        yield path


def stopped_at_its_end(session: Session, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit, where one kind of call is forbidden, and the end cannot be noted."""
    with monkeypatch.context() as patch, Faults(errno.EPERM, range(1 << 30), only=call).at_work():
        patch.setattr(execution, "write_new", fails_at_the_end)
        with pytest.raises(CommitError):
            commit(session)


@pytest.mark.parametrize("call", CALLS)
def test_whoever_finishes_a_commit_is_told_what_could_not_be_set_before(
    project: bytes, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        stopped_at_its_end(session, call, monkeypatch)
    with Session.open(project, SessionAccess.WRITE) as session:
        result = finish_interrupted(session)
    assert result is not None
    assert any(CALLS[call] in left_out for left_out in result.left_out.values()), result.left_out


def test_a_torn_end_of_what_was_noted_is_passed_over(project: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        stopped_at_its_end(session, "utime", monkeypatch)
        note = Path(os.fsdecode(session.directory), "commits/1/unset")
        note.write_bytes(note.read_bytes()[:-3])
        result = finish_interrupted(session)
    assert result is not None
    assert result.left_out


@pytest.mark.parametrize("is_killed_again", [False, True], ids=["at once", "broken off"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.some(4)
def test_whoever_takes_a_commit_back_is_told_what_could_not_be_set(
    project: bytes, call: str, is_killed_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scan(project)
    with Session.open(project, SessionAccess.READ) as session:
        steps = len(_plan(session))
    interrupt(Path(os.fsdecode(project)), steps - 1, "commit", "--yes")
    with Session.open(project, SessionAccess.WRITE) as session:
        with Faults(errno.EPERM, range(1 << 30), only=call).at_work(), monkeypatch.context() as patch:
            if is_killed_again:
                patch.setattr("yolofs.commit.apply.recovery.rollback.RollbackSteps.sync", _fails)
                with pytest.raises(CommitError):
                    roll_back_interrupted(session)
            result = roll_back_interrupted(session) if not is_killed_again else None
        if is_killed_again:
            result = roll_back_interrupted(session)
    assert result is not None
    now = scan(project)
    assert now.keys() == before.keys()
    differing = [path for path in now if now[path] != before[path]]
    told = result.meanwhile.left_out
    numbers = {os.lstat(os.path.join(project, path)).st_ino for path in told}
    assert [path for path in differing if os.lstat(os.path.join(project, path)).st_ino not in numbers] == []
    if differing:
        assert "could not be given back" in result.text
        assert os.fsdecode(sorted(told)[0]) in result.text
    else:
        assert "base is as it was, and all stays staged" in result.text or told


def _plan(session: Session) -> tuple[object, ...]:
    from yolofs.commit.plan.planner import plan_commit

    return plan_commit(session.state(), session.base, session.store).steps


def _fails(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))
