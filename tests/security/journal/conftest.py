"""A session whose journal is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.security.journal.damaged import NAMES
from tests.support.core_driver import CoreDriver
from tests.support.program import Program


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Return the program in a project with a session that has staged five files, and is not
    mounted.
    """
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("a\n")
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    for name in NAMES:
        view.create(name.encode(), f"{name}\n".encode(), 0o644)
    view.close()
    return program
