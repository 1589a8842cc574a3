"""An undo that may not set a time, mode, owner or extended attribute of what it brings back.

It says so of each path, and what comes of it is nobody's change.
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
from yolofs.commit.apply import commit_directory, execution
from yolofs.errors import CommitError
from yolofs.session.commit import commit, look_at_base, split_staged
from yolofs.session.ending_interrupted import finish_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """A project of which something of every kind has been committed."""
    with staged_metadata(monkeypatch) as path:
        with Session.open(path, SessionAccess.WRITE) as session:
            commit(session)
        yield path


def check_no_drift(session: Session) -> None:
    assert look_at_base(session, split_staged(session, None)).conflicts == []


@pytest.mark.parametrize("ends", ["at once", "when it goes on"])
@pytest.mark.parametrize("then", ["commit", "undo of the undo"])
@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP], ids=lambda number: errno.errorcode[number])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.some(9)
def test_metadata_that_an_undo_could_not_set_is_told_and_is_no_drift(
    project: bytes, call: str, number: int, then: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = scan(project)
    with Session.open(project, SessionAccess.WRITE) as session:
        faults = Faults(number, range(1 << 30), only=call)
        if ends == "at once":
            with faults.at_work():
                told = undo(session, choose_commit(session, 1)).left_out
            assert any(CALLS[call] in left_out for left_out in told.values()), told
        else:
            monkeypatch.setattr(execution, "write_new", fails_at_the_end)
            with faults.at_work(), pytest.raises(CommitError):
                undo(session, choose_commit(session, 1))
            monkeypatch.setattr(execution, "write_new", commit_directory.write_new)
    with Session.open(project, SessionAccess.WRITE) as session:
        if ends == "when it goes on":
            assert finish_interrupted(session) is not None
        check_no_drift(session)
        if then == "commit":
            commit(session)
        else:
            assert not undo(session, choose_commit(session, 2)).stays
            check_no_drift(session)
    now = scan(project)
    assert now.keys() == after.keys()
    assert {path: node.content for path, node in now.items()} == {path: node.content for path, node in after.items()}


def test_a_change_by_the_host_after_an_undo_that_could_not_set_all_is_drift(project: bytes) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        with Faults(errno.EPERM, range(1 << 30), only="utime").at_work():
            undo(session, choose_commit(session, 1))
        check_no_drift(session)
        file = Path(os.fsdecode(project), "g/one1")
        size = file.stat().st_size
        file.write_bytes(b"h" * size)
        assert b"g/one1" in look_at_base(session, split_staged(session, None)).conflicts
