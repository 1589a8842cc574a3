"""What is read for the summary of a run while it goes on."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.program import DEADLINE_S, Program
from yolofs.changes.changes import compare
from yolofs.cli.run.early_summary import EarlySummary
from yolofs.paths import Generation
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.mount


def early_summary_of(yolofs: Program, generation: int = 0) -> EarlySummary:
    return EarlySummary(os.fsencode(yolofs.project), bytes(yolofs.session), Generation(generation))


def wait_until_read(early: EarlySummary) -> None:
    """Wait until all is read that is read ahead."""
    early._thread.join(DEADLINE_S)
    assert not early._thread.is_alive()


def test_the_summary_has_changes_from_before_and_after_it_was_read(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "old").touch()
        yolofs("snapshot")
        early = early_summary_of(yolofs, 1)
        with early.reading():
            (view / "one").touch()
            wait_until_read(early)
            (view / "two").touch()
            (view / "old").unlink()
            yolofs("snapshot")
            (view / "three").touch()
        opened, before = early.take()
        assert opened is not None
        assert before is not None
        with opened:
            found = compare(before, opened.state_after(before, early.generation, None), opened.base, opened.store)
        assert [os.path.basename(change.path) for change in found] == [b"old", b"one", b"three", b"two"]
        with Session.open(os.fsencode(yolofs.project), SessionAccess.READ) as session:
            assert found == session.compare(Generation(1))


def test_an_early_summary_is_not_read_as_long_as_nothing_changes(yolofs: Program) -> None:
    with yolofs.mounted():
        early = early_summary_of(yolofs)
        with early.reading():
            pass
        assert early.take() == (None, None)


@pytest.mark.parametrize("words", [("commit", "--yes"), ("abort", "--yes")])
def test_an_early_summary_is_dropped_after_a_commit_or_an_abort(yolofs: Program, words: tuple[str, ...]) -> None:
    with yolofs.mounted() as view:
        early = early_summary_of(yolofs)
        with early.reading():
            (view / "new").touch()
            wait_until_read(early)
            yolofs(*words)
            (view / "newer").touch()
        assert early.take() == (None, None)


def test_a_signal_is_left_to_the_thread_that_waits_for_the_command(yolofs: Program) -> None:
    with yolofs.mounted():
        early = early_summary_of(yolofs)
        with early.reading():
            tasks = {thread.native_id for thread in threading.enumerate() if thread.name == "early"}
            assert len(tasks) == 1
            status = Path(f"/proc/self/task/{tasks.pop()}/status").read_text()
            blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")), 16)
            assert all(blocked & 1 << number - 1 for number in (2, 15, 20, 28))
