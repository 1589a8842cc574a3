"""The host puts a file into a directory that an undo has just made: it stays the host's, whatever
follows.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program, run_code

CONFLICT = 9
_KILLED = """
import os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import MakeDirectory
really = Steps.do
def do(self, step):
    really(self, step)
    if isinstance(step, MakeDirectory) and step.path.endswith(b"d/sub"):
        os.kill(os.getpid(), signal.SIGKILL)
Steps.do = do
sys.argv[0] = "yolofs"
main.program()
"""


@pytest.fixture
def undone_up_to_a_directory(yolofs: Program) -> Program:
    """A commit has removed a directory with a hard link in it, so that the undo makes it anew; the
    undo is killed when it has.
    """
    project = yolofs.project
    (project / "d/sub").mkdir(parents=True)
    (project / "stays").write_text("linked\n")
    os.link(project / "stays", project / "d/sub/link")
    (project / "d/file").write_text("file\n")
    view = CoreDriver(os.fsencode(project))
    for path in (b"d/sub/link", b"d/file"):
        view.unlink(path)
    for path in (b"d/sub", b"d"):
        view.rmdir(path)
    view.close()
    yolofs("commit", "--yes")
    assert not (project / "d").exists()
    killed = run_code(_KILLED, ["undo", "--yes"], project)
    assert killed.returncode == -signal.SIGKILL, killed
    assert os.listdir(project / "d") == ["sub"]
    return yolofs


@pytest.mark.parametrize("where", ["d/host", "d/sub/host"])
def test_a_redo_does_not_take_the_hosts_file_for_what_the_undo_has_brought_back(
    undone_up_to_a_directory: Program, where: str
) -> None:
    yolofs = undone_up_to_a_directory
    host = yolofs.project / where
    host.write_text("the host's\n")
    yolofs("commit", "--continue")
    assert host.read_text() == "the host's\n"
    assert "!" in yolofs("status").out
    yolofs("commit", "--yes", code=CONFLICT)
    assert host.read_text() == "the host's\n"
    yolofs("commit", "--yes", "--ours")
    assert not (yolofs.project / "d").exists()
    assert [kept.read_text() for kept in yolofs.session.glob("commits/3/replaced/**/host")] == ["the host's\n"]


def test_a_deleted_directory_whose_undo_is_finished_is_committed_again(undone_up_to_a_directory: Program) -> None:
    yolofs = undone_up_to_a_directory
    yolofs("commit", "--continue")
    assert "!" not in yolofs("status").out
    assert sorted(os.listdir(yolofs.project / "d")) == ["file", "sub"]
    yolofs("commit", "--yes")
    assert not (yolofs.project / "d").exists()
