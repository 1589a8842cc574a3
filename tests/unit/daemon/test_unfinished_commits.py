"""A commit over which the command died, and that the disk lets nobody finish, is taken back by the
mount.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.every_kind_of_step import prepare
from tests.support.looks import exactly
from tests.support.planting import interrupt_commit
from yolofs.commit.apply.step_log import Log, LoggedStep
from yolofs.daemon.unfinished_commits import finish_for_borrower
from yolofs.session.session import Session, SessionAccess


def test_a_log_that_cannot_be_written_ends_in_taking_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    interrupt_commit(project, 12)

    def add(self: Log, line: LoggedStep) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Log, "add", add)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        assert "taken it back, as it cannot be finished: no space left" in finish_for_borrower(session).lower()
    assert exactly(project) == before
