"""What the tests of the review share: a project, and changes in its view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.review.reviewing import LINES
from tests.support.program import Program


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    project = tmp_path_factory.mktemp("r") / "p"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text(LINES)
    (project / "src/b.py").write_text("b = 1\n")
    (project / "gone.txt").write_text("precious\n")
    program = Program(project)
    program.start_session()
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        text = LINES.replace("line 2\n", "line two\n").replace("line 20\n", "line twenty\nand more\n")
        (mountpoint / "src/a.py").write_text(text)
        (mountpoint / "src/new.txt").write_text("first\nsecond\nthird\n")
        (mountpoint / "gone.txt").unlink()
        yield mountpoint
