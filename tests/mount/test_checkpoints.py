"""A long session gets a checkpoint while it is mounted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Program, wait_until
from yolofs.journal.records import Stage
from yolofs.paths import RelPath, StoreIno
from yolofs.session.generations import CHECKPOINT_RECORDS
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.mount


def known_records(project: Path) -> int:
    """Return how many records a session that is opened now need not look at."""
    with Session.open(os.fsencode(project), SessionAccess.READ) as session:
        return session.checkpointed_records


def test_commands_need_not_replay_what_a_checkpoint_holds(tmp_path: Path) -> None:
    yolofs = Program(tmp_path / "project")
    yolofs.project.mkdir()
    (yolofs.project / "f").write_text("base")
    yolofs.start_session()
    with yolofs.mounted() as view:
        (view / "f").write_text("staged")
    with Session.open(os.fsencode(yolofs.project), SessionAccess.WRITE) as session:
        staged = session.state().resolve(b"f")
        assert staged is not None
        assert staged.staged is not None
        ino, base = staged.staged.ino, staged.staged.base
        record = Stage(1, RelPath(b"f"), StoreIno(ino), base=base)
        session.journal.append(*[record] * CHECKPOINT_RECORDS)
    assert known_records(yolofs.project) == 0
    with yolofs.mounted() as view:
        wait_until(lambda: known_records(yolofs.project) > CHECKPOINT_RECORDS, "there is a checkpoint")
        (view / "g").write_text("later")
        assert "M  f" in yolofs("status").out
        assert "A  g" in yolofs("status").out
        wait_until(lambda: "wrote a checkpoint" in yolofs.log, "the daemon to hear of it")
        assert (view / "f").read_text() == "staged"
        yolofs("commit", "--yes")
        assert known_records(yolofs.project) == 0
    assert (yolofs.project / "f").read_text() == "staged"
