"""Ctrl-C, SIGTERM and SIGHUP at any time of a commit or undo: base is as it was or as it is to be,
and that is said.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Program, run_code
from tests.crash.test_commit_every_line import exactly, prepare
from tests.crash.test_commit_preparation import tree_of
from tests.security.planting import interrupt_commit

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
_SIGNALLED = """
import importlib, os, sys
from yolofs.cli import main
module, _, name = sys.argv[1].rpartition(":")
owner = importlib.import_module(module)
*way, name = name.split(".")
for one in way:
    owner = getattr(owner, one)
really, left = getattr(owner, name), int(sys.argv[2])
def signalled(*arguments, **options):
    global left
    try:
        return really(*arguments, **options)
    finally:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), int(sys.argv[3]))
setattr(owner, name, signalled)
sys.exit(main.main(sys.argv[4:]))
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DONE = "yolofs.commit.apply.execution:_complete"
LATE = {
    "all steps done": DONE,
    "closing": "yolofs.commit.apply.steps:Steps.__exit__",
    "journal put away": "yolofs.session.session:Session.put_away",
    "session left": "yolofs.session.session:Session.close",
}
"""Functions at whose end base is what it is to be."""


def signalled(
    project: Path, where: str, number: signal.Signals, *words: str, at: int = 1
) -> subprocess.CompletedProcess[str]:
    """Run a command that sends itself a signal at the end of the ``at``-th call of a function."""
    return run_code(_SIGNALLED, [where, str(at), str(int(number)), *words], project)


@pytest.mark.parametrize("is_mounted", [False, True], ids=["unmounted", "mounted"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda one: one.name)
def test_it_is_taken_back_in_the_switch(tmp_path: Path, number: signal.Signals, is_mounted: bool) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    program = Program(project)
    if is_mounted:
        program("mount")
    try:
        done = signalled(project, "yolofs.commit.apply.steps:Steps.do", number, "commit", "--yes", at=12)
        assert done.returncode == 128 + number, done.stderr
        assert "the commit was taken back: it was interrupted; base is as it was, and all stays staged" in done.stderr
        assert exactly(project) == before
        assert "interrupted" not in program("status").err
        program("commit", "--yes")
        assert tree_of(project) == expected
    finally:
        if is_mounted:
            program("unmount")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda one: one.name)
def test_before_it_is_as_if_it_had_never_been(tmp_path: Path, number: signal.Signals) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    for where in ("preparing:Preparing._make", "steps:Steps.look"):
        done = signalled(project, f"yolofs.commit.apply.{where}", number, "commit", "--yes")
        assert done.returncode == 128 + number, done.stderr
        assert "the commit was not begun, as it was interrupted" in done.stderr
        assert exactly(project) == before
    assert "interrupted" not in Program(project)("status").err


@pytest.mark.parametrize("is_mounted", [False, True], ids=["unmounted", "mounted"])
@pytest.mark.parametrize("where", LATE)
def test_what_is_done_is_said(tmp_path: Path, where: str, is_mounted: bool) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    names = tree_of(project).keys()
    program = Program(project)
    if is_mounted:
        program("mount")
    try:
        number = signal.SIGTERM if where == "closing" else signal.SIGINT
        done = signalled(project, LATE[where], number, "commit", "--yes", at=1 + (where == "session left"))
        assert done.returncode == 0, done.stderr
        assert "commit 1 done" in done.stderr
        assert tree_of(project) == expected
        done = signalled(project, LATE[where], number, "undo", "--yes", at=1 + (where == "session left"))
        assert done.returncode == 0, done.stderr
        assert "commit 1 is undone by commit 2" in done.stderr
        assert tree_of(project).keys() == names
        assert "interrupted" not in program("status").err
    finally:
        if is_mounted:
            program("unmount")


@pytest.mark.parametrize("where", [DONE, LATE["closing"]])
def test_what_is_finished_or_taken_back_is_said(tmp_path: Path, where: str) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    interrupt_commit(project, 12)
    back = where if where != DONE else "yolofs.commit.apply.rollback:BackSteps.finish"
    done = signalled(project, back, signal.SIGINT, "commit", "--roll-back")
    assert done.returncode == 0, done.stderr
    assert "is taken back; base is as it was" in done.stderr
    assert exactly(project) == before
    interrupt_commit(project, 12)
    done = signalled(project, where, signal.SIGINT, "commit", "--continue")
    assert done.returncode == 0, done.stderr
    assert "is finished" in done.stderr
    assert tree_of(project) == expected
