"""What a commit that was stopped before it began has left in the session does not stay for ever."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.crash.test_commit_signals import signalled
from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from yolofs.system.disk_usage import size_of

pytestmark = pytest.mark.timeout(120)
_BIG = 3_000_000


def two_staged(project: Path) -> Program:
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    view.create(b"a", b"a" * _BIG, 0o644)
    view.create(b"b", b"b", 0o644)
    view.close()
    return Program(project)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda one: one.name)
def test_an_abort_frees_what_a_commit_that_did_not_begin_has_written(tmp_path: Path, number: signal.Signals) -> None:
    program = two_staged(tmp_path / "project")
    done = signalled(program.project, "yolofs.session.commit:_write_rest", number, "commit", "--yes", "b")
    if number == signal.SIGINT:
        assert done.returncode == 130
        assert "the commit was not begun, as it was interrupted" in done.stderr
        assert not list((program.session / "commits").iterdir())
    program("abort", "--yes")
    program("gc")
    assert size_of(os.fsencode(program.session / "files")) < _BIG
    assert not list((program.session / "commits").iterdir())


def test_an_abort_that_is_killed_and_repeated_leaves_nothing_of_the_commit(tmp_path: Path) -> None:
    program = two_staged(tmp_path / "project")
    signalled(program.project, "yolofs.session.commit:_write_rest", signal.SIGKILL, "commit", "--yes", "b")
    done = signalled(
        program.project, "yolofs.commit.apply.commit_directory:os.rename", signal.SIGKILL, "abort", "--yes"
    )
    assert done.returncode == -signal.SIGKILL
    program("abort", "--yes")
    program("gc")
    assert not list((program.session / "commits").iterdir())
    assert size_of(os.fsencode(program.session / "files")) < _BIG


def test_a_journal_that_was_to_follow_does_not_replace_one_that_is_gone(tmp_path: Path) -> None:
    program = two_staged(tmp_path / "project")
    signalled(program.project, "yolofs.session.commit:_write_rest", signal.SIGKILL, "commit", "--yes", "b")
    (program.session / "journal").unlink()
    said = program.refused("gc", code=6)
    assert "yolofs doctor --repair" in said
    assert (program.session / "commits/1/carried").exists()
