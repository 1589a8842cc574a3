"""The terminal of a command is closed while base is being changed: the progress bar has nowhere to
go, and the command ends as by any other SIGHUP.
"""

from __future__ import annotations

import itertools
import signal
import sys
from pathlib import Path

import pytest

from tests.crash.at_a_call import program_that_waits
from tests.crash.commit_or_undo import ready_for
from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.looks import exactly, tree_of
from tests.support.planting import interrupt_commit
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
DOING = "yolofs.commit.apply.steps:Steps.do"
UNDOING = "yolofs.commit.apply.recovery.rollback:RollbackSteps.undo"


def close_at(project: Path, where: str, at: int, *words: str) -> int:
    """Close a command's terminal at the ``at``-th call of a function; return its exit code."""
    command = [sys.executable, "-c", program_that_waits("close it"), where, str(at)]
    with Terminal(project, words, command=command) as terminal:
        terminal.wait_for("close it")
        terminal.close()
        return terminal.process.wait(60)


@pytest.mark.parametrize(
    ("words", "is_mounted"),
    points(list(itertools.product([("commit", "--yes"), ("undo", "--yes")], [False, True])), "closed", some=2),
)
def test_a_closed_terminal_takes_a_commit_and_an_undo_back(
    tmp_path: Path, words: tuple[str, ...], is_mounted: bool
) -> None:
    project = tmp_path / "project"
    program, expected = ready_for(words[0], project)
    before = exactly(project)
    if is_mounted:
        program("mount")
    try:
        assert close_at(project, DOING, 9, *words) == 128 + signal.SIGHUP
        assert "interrupted" not in program("status").err
        assert exactly(project) == before
        program(*words)
        assert tree_of(project) == expected
    finally:
        if is_mounted:
            program("unmount")


def test_a_closed_terminal_stops_what_goes_on_or_back_between_two_steps(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    interrupt_commit(project, 12)
    assert close_at(project, UNDOING, 3, "commit", "--roll-back") == 128 + signal.SIGHUP
    Program(project)("commit", "--roll-back")
    assert exactly(project) == before
    interrupt_commit(project, 12)
    assert close_at(project, DOING, 3, "commit", "--continue") == 128 + signal.SIGHUP
    assert "interrupted" in Program(project)("status").err
    Program(project)("commit", "--continue")
    assert tree_of(project) == expected
