"""A commit opens directories up that forbid it to work in them; that is never taken for the mode
they are to have.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project)
    program.start_session()
    return program


@pytest.mark.parametrize(("before", "after"), [(0o555, 0o755), (0o600, 0o700), (0o000, 0o700), (0o500, 0o700)])
def test_a_directory_that_was_closed_gets_the_mode_that_opens_it(yolofs: Program, before: int, after: int) -> None:
    closed = yolofs.project / "closed"
    closed.mkdir()
    closed.chmod(before)
    view = CoreDriver(os.fsencode(yolofs.project))
    view.chmod(b"closed", after)
    view.close()
    yolofs("commit", "--yes")
    assert closed.stat().st_mode & 0o7777 == after
    yolofs("undo", "--yes")
    assert closed.stat().st_mode & 0o7777 == before
