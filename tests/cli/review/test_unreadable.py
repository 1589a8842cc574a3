"""A change whose lines cannot be read: the review says so, and its keys go on to work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.review.reviewing import at
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

FAILING = """
from yolofs.cli.main import program
from yolofs.cli.review.worker import Worker

really = Worker.load

def failing(worker, change):
    if change.path.endswith(b"new.txt"):
        raise PermissionError(13, "Permission denied", change.path)
    return really(worker, change)

Worker.load = failing
program()
"""


def test_keys_work_beside_lines_that_cannot_be_read(yolofs: Program, view: Path) -> None:
    command = (sys.executable, "-P", "-W", "error", "-c", FAILING)
    with Terminal(yolofs.project, ["review"], size=(100, 24), command=command) as terminal:
        terminal.wait_for_screen("3 changes", "-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("Permission denied", "cannot be read", gone="…")
        for key in ("l", "\t"):
            terminal.type(key)
            terminal.wait_for_screen("its lines cannot be read")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.type("q")
        assert terminal.wait() == 0
