"""A project in which a commit has work to do, or an undo of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.every_kind_of_step import prepare
from tests.support.looks import tree_of
from tests.support.program import Program


def ready_for(command: str, project: Path) -> tuple[Program, dict[bytes, tuple[Any, ...]]]:
    """Make a project in which ``commit`` or ``undo`` is to be called next; return the program in
    it, and what base is to be then.
    """
    expected = prepare(project)
    program = Program(project)
    if command == "undo":
        expected = tree_of(project)
        program("commit", "--yes")
    return program, expected
