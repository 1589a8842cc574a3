"""A command that is killed while git is asked what it ignores leaves nothing behind for good."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.program import Program, run_killed
from yolofs.session.session import Session, SessionAccess
from yolofs.system.work_directories import left_behind


@pytest.mark.mount
def test_gc_removes_what_a_status_worked_in_that_was_killed(yolofs: Program) -> None:
    subprocess.run(["git", "init", "-q"], cwd=yolofs.project, check=True)
    (yolofs.project / ".gitignore").write_text("*.o\n")
    with yolofs.mounted() as view:
        (view / "a.o").write_text("x")
        (view / "b.o").write_text("x")
    run_killed(("status",), yolofs.project, module="hostcode.git_ignored", name="_ask", after=False)
    with Session.open(bytes(yolofs.project), SessionAccess.READ) as session:
        directory = session.directory
    assert len(left_behind(directory)) == 1
    yolofs("gc")
    assert left_behind(directory) == []
