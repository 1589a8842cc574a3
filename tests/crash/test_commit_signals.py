"""Ctrl-C, SIGTERM and SIGHUP at any time of a commit or undo: base is as it was or as it is to be,
and that is said.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.at_a_call import program_that_waits
from tests.crash.commit_or_undo import ready_for
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.looks import exactly, tree_of
from tests.support.planting import interrupt_commit
from tests.support.program import Program, run_code
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
SIGNALLED = """
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
    return run_code(SIGNALLED, [where, str(at), str(int(number)), *words], project)


@pytest.mark.parametrize("is_mounted", [False, True], ids=["unmounted", "mounted"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda one: one.name)
@pytest.mark.some(3)
def test_a_signal_in_the_switch_takes_the_commit_back(tmp_path: Path, number: signal.Signals, is_mounted: bool) -> None:
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
def test_after_a_signal_before_the_switch_the_commit_might_never_have_begun(
    tmp_path: Path, number: signal.Signals
) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    for where in ("preparing:Preparing._make", "steps:Steps.look"):
        done = signalled(project, f"yolofs.commit.apply.{where}", number, "commit", "--yes")
        assert done.returncode == 128 + number, done.stderr
        assert "the commit was not begun, as it was interrupted" in done.stderr
        assert exactly(project) == before
    assert "interrupted" not in Program(project)("status").err


@pytest.mark.parametrize(("where", "is_mounted"), points(list(itertools.product(LATE, [False, True])), "late", some=4))
def test_after_a_late_signal_a_commit_and_an_undo_say_that_they_are_done(
    tmp_path: Path, where: str, is_mounted: bool
) -> None:
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
def test_a_signal_at_the_end_of_continue_or_roll_back_is_told_what_is_done(tmp_path: Path, where: str) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    interrupt_commit(project, 12)
    back = where if where != DONE else "yolofs.commit.apply.recovery.rollback:RollbackSteps.finish"
    done = signalled(project, back, signal.SIGINT, "commit", "--roll-back")
    assert done.returncode == 0, done.stderr
    assert "is taken back; base is as it was" in done.stderr
    assert exactly(project) == before
    interrupt_commit(project, 12)
    done = signalled(project, where, signal.SIGINT, "commit", "--continue")
    assert done.returncode == 0, done.stderr
    assert "is finished" in done.stderr
    assert tree_of(project) == expected


PHASES = {"make": ("preparing:Preparing._make", 3), "ready": ("steps:Steps.look", 1), "switch": ("steps:Steps.do", 9)}


BEGUN = [("commit", "--yes"), ("undo", "--yes")]


@pytest.mark.parametrize(("words", "phase"), points(list(itertools.product(BEGUN, PHASES)), "Ctrl-C", some=3))
def test_ctrl_c_at_a_terminal_leaves_base_as_it_was(tmp_path: Path, words: tuple[str, ...], phase: str) -> None:
    project = tmp_path / "project"
    program, expected = ready_for(words[0], project)
    before = exactly(project)
    where, at = PHASES[phase]
    command = [sys.executable, "-c", program_that_waits("press Ctrl-C"), f"yolofs.commit.apply.{where}", str(at)]
    with Terminal(project, words, command=command) as terminal:
        terminal.wait_for("press Ctrl-C")
        terminal.type("\x03")
        code = terminal.wait()
        said = " ".join(terminal.text.split())
    assert code == 130, said
    what = "the commit" if words[0] == "commit" else "the undo of commit 1"
    ended = "taken back: it was interrupted" if phase == "switch" else "not begun, as it was interrupted"
    assert f"{what} was {ended}; base is as it was" in said
    assert exactly(project) == before
    assert "interrupted" not in program("status").err
    program(*words)
    assert tree_of(project) == expected


@pytest.mark.parametrize("is_content", [True, False], ids=["content", "time"])
def test_a_file_that_was_changed_before_a_link_replaced_its_directory_is_no_conflict_when_taken_back(
    tmp_path: Path, is_content: bool
) -> None:
    project = tmp_path / "project"
    (project / "gone").mkdir(parents=True)
    (project / "stays").write_text("two names\n")
    (project / "gone/name").hardlink_to(project / "stays")
    view = CoreDriver(bytes(project))
    if is_content:
        view.overwrite(b"gone/name", b"written\n")
    else:
        view.utimes(b"gone/name", 1_000_000_000_000_000_000)
    view.unlink(b"gone/name")
    view.rmdir(b"gone")
    view.symlink(b"nowhere", b"gone")
    expected = view.tree()
    view.close()
    before = exactly(project)
    done = signalled(project, "yolofs.commit.apply.steps:Steps.do", signal.SIGINT, "commit", "--yes", at=1)
    assert done.returncode == 130, done.stderr
    assert exactly(project) == before
    Program(project)("commit", "--yes")
    assert tree_of(project) == expected
