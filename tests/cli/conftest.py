"""What the tests of the program share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Return the program in a project with a session and a few files."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "dir").mkdir()
    (project / "dir/b.txt").write_text("b\n")
    program = Program(project)
    program("init")
    return program
