"""Somebody has removed something from the directory of an interrupted commit: no command takes that
for the end of it, and what is lost is named.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import exactly
from tests.support.program import Program, run_code

MISFIT = 15
_KILLED = """
import os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import FinishDirectory
really = Steps.do
def do(self, step):
    if isinstance(step, FinishDirectory):
        os.kill(os.getpid(), signal.SIGKILL)
    really(self, step)
Steps.do = do
sys.argv[0] = "yolofs"
main.program()
"""


@pytest.fixture
def interrupted(yolofs: Program) -> Program:
    project = yolofs.project
    for name in ("removed", "edited", "stays"):
        (project / name).write_text(f"{name}\n")
    (project / "linked").write_text("linked\n")
    os.link(project / "linked", project / "other")
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"linked", b"view\n")
    view.unlink(b"removed")
    view.overwrite(b"edited", b"view\n")
    view.create(b"new", b"new\n", 0o644)
    view.close()
    assert run_code(_KILLED, ["commit", "--yes"], project).returncode == -signal.SIGKILL
    assert (project / "new").exists()
    assert not (project / "removed").exists()
    return yolofs


def directory_of(program: Program) -> Path:
    return program.session / "commits/1"


@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--continue"),
        ("commit", "--roll-back"),
        ("commit", "--yes"),
        ("abort", "--yes"),
        ("undo", "--yes"),
        ("gc",),
    ],
    ids=" ".join,
)
def test_a_commit_whose_plan_is_gone_still_counts_as_interrupted(interrupted: Program, words: tuple[str, ...]) -> None:
    (directory_of(interrupted) / "plan.json").unlink()
    before = exactly(interrupted.project)
    said = interrupted.refused(*words, code=MISFIT)
    assert "a commit was interrupted: commit 1" in said
    assert "its plan cannot be read" in said
    assert "yolofs commit --discard-interrupted" in said
    assert exactly(interrupted.project) == before
    assert "its plan cannot be read" in interrupted("status").err


def test_a_commit_whose_plan_is_gone_can_be_given_up_and_all_is_kept(interrupted: Program) -> None:
    directory = directory_of(interrupted)
    (directory / "plan.json").unlink()
    interrupted("commit", "--discard-interrupted", "--yes")
    assert sorted(path.read_text() for path in (directory / "replaced").iterdir()) == [
        "edited\n",
        "linked\n",
        "removed\n",
    ]
    assert (directory / "journal").exists()
    assert "interrupted" not in interrupted("status").err


@pytest.mark.parametrize("text", ["edited\n", "linked\n", "removed\n"])
def test_rolling_back_names_the_one_file_that_is_no_longer_kept(interrupted: Program, text: str) -> None:
    project = interrupted.project
    for kept in (directory_of(interrupted) / "replaced").iterdir():
        if kept.read_text() == text:
            kept.unlink()
    said = interrupted("commit", "--roll-back")
    assert f"what base had at {project / text.strip()} is lost" in said.out + said.err
    for other in {"edited", "linked", "removed"} - {text.strip()}:
        assert (project / other).read_text() == f"{other}\n"


def test_rolling_back_names_a_file_that_is_lost_and_counts_the_others(interrupted: Program) -> None:
    project = interrupted.project
    shutil.rmtree(directory_of(interrupted) / "replaced")
    said = interrupted("commit", "--roll-back")
    text = said.out + said.err
    assert "base is as it was, but for what is lost, and all stays staged" in text
    assert "and 2 more is lost: it was kept in" in text
    assert (project / "edited").read_text() == "view\n"  # the only version that there is
    assert not (project / "new").exists()


def test_rolling_back_names_nothing_where_all_is_kept(interrupted: Program) -> None:
    said = interrupted("commit", "--roll-back")
    assert "lost" not in said.out + said.err
    assert (interrupted.project / "edited").read_text() == "edited\n"
    assert (interrupted.project / "removed").read_text() == "removed\n"


@pytest.mark.parametrize("log_goes", [False, True], ids=["with its log", "without"])
def test_without_the_note_of_what_it_made_a_commit_goes_neither_way(interrupted: Program, log_goes: bool) -> None:
    """Else what lies in base would be told by presence, and new files keep names in the store."""
    (directory_of(interrupted) / "made").unlink()
    if log_goes:
        (directory_of(interrupted) / "progress").unlink()
    before = exactly(interrupted.project)
    for words in (("commit", "--continue"), ("commit", "--roll-back"), ("undo", "--yes")):
        said = interrupted.refused(*words, code=MISFIT)
        assert "the note that it made before its first step is gone" in said
        assert "yolofs commit --discard-interrupted" in said
    assert exactly(interrupted.project) == before
