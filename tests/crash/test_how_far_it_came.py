"""The report on a commit killed between a step and its line in the log, and on one with all steps
done.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.every_kind_of_step import prepare
from tests.support.looks import tree_of
from tests.support.program import Program, run_code
from yolofs.commit.plan.plan import Plan

_KILLED = """
import os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply import execution
really_do = execution._do_one
def do(index, plan, *arguments):
    really_do(index, plan, *arguments)
    if type(plan.steps[index]).__name__ == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
execution._do_one = do
main.main(sys.argv[2:])
"""
_SETTLED = """
import os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply import execution
really_write = execution.write_new
def write(directory, name, *arguments, **options):
    really_write(directory, name, *arguments, **options)
    if name == b"settled":
        os.kill(os.getpid(), signal.SIGKILL)
execution.write_new = write
main.main(sys.argv[2:])
"""


def kill(project: Path, code: str, kind: str = "") -> None:
    done = run_code(code, [kind, "commit", "--yes"], project)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("kind", ["Park", "Remove", "Place", "MakeDirectory", "Create", "Link"])
@pytest.mark.some(3)
def test_a_step_counts_as_done_though_the_kill_came_before_its_line(tmp_path: Path, kind: str) -> None:
    project = tmp_path / "project"
    prepare(project)
    kill(project, _KILLED, kind)
    program = Program(project)
    steps = Plan.decode((program.session / "commits/1/plan.json").read_bytes()).steps
    done = 1 + next(index for index, step in enumerate(steps) if type(step).__name__ == kind)
    found = program("status", "--json").json["interrupted"]
    assert (found["done"], found["steps"]) == (done, len(steps))
    assert f" {done} of {len(steps)} steps done" in program("status").err


@pytest.mark.parametrize("kind", ["Rewrite", "SetMetadata", "FinishDirectory"])
def test_status_counts_at_least_so_many_steps_if_the_last_cannot_be_told(tmp_path: Path, kind: str) -> None:
    project = tmp_path / "project"
    prepare(project)
    kill(project, _KILLED, kind)
    program = Program(project)
    steps = Plan.decode((program.session / "commits/1/plan.json").read_bytes()).steps
    done = next(index for index, step in enumerate(steps) if type(step).__name__ == kind)
    assert f" at least {done} of {len(steps)} steps done" in program("status").err


def test_a_commit_whose_steps_are_durable_is_not_taken_back_and_what_does_it_is_said(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = tree_of(project)
    kill(project, _SETTLED)
    program = Program(project)
    refusal = program.refused("commit", "--roll-back", code=12)
    assert "all its steps are done and durable in base" in refusal
    assert str(project) in refusal
    assert "yolofs commit --continue does that, and then yolofs undo 1 takes it back" in refusal
    program("commit", "--continue")
    program("undo", "--yes", "1")
    assert tree_of(project) == before
