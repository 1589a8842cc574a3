"""A project's directory that was removed: each command says so, and what to do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import COMMAND, Program

pytestmark = pytest.mark.mount


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Program, Program, str]]:
    """Give the program in a project, the directory above that, and the id of the session; all of
    it is taken away at the end, though the project may be gone.
    """
    program = Program(tmp_path / "project")
    program.project.mkdir()
    program("init")
    session = program.session.name
    beside = Program(tmp_path)
    yield program, beside, session
    beside("unmount", session, code=None)
    beside("sessions", "--forget", "--yes", session, code=None)


INSIDE = 'echo staged > new; echo; read _; cd /; "$@" status; echo $?; "$@" log; echo $?'


def test_a_run_says_that_its_project_was_removed(started: tuple[Program, Program, str]) -> None:
    program, _, session = started
    with subprocess.Popen(
        [*COMMAND, "run", "sh", "-c", INSIDE, "x", *COMMAND],
        cwd=program.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "\n"
        shutil.rmtree(program.project)
        out, err = run.communicate("\n")
    assert "Traceback" not in err
    assert "Errno" not in err
    said = f"the project's directory, {program.project}, is gone"
    assert err.count(f"yolofs: {said}\n") == 2
    assert f"warning: cannot tell what run 1 changed: {said}" in err
    assert f"yolofs sessions --rebase DIR {session}" in err
    assert "daemon.log" not in err
    assert out.split() == ["4", "4"]


def test_where_the_project_was_nothing_but_what_to_do_is_said(started: tuple[Program, Program, str]) -> None:
    program, beside, session = started
    program("run", "sh", "-c", "echo staged > new")
    project = program.project
    (project / "sub").mkdir()
    script = 'rm -r "$0"; "$@" status; "$@" commit --yes; "$@" -C "$0" diff'
    done = subprocess.run(
        ["sh", "-c", script, str(project), *COMMAND], cwd=project / "sub", capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    hint = f"its session keeps what is staged; to go on in another directory: yolofs sessions --rebase DIR {session}"
    lines = done.stderr.splitlines()
    assert lines[0] == lines[2] == "yolofs: the current directory no longer exists"
    assert lines[1] == lines[3] == lines[5] == f"hint: {hint}"
    assert lines[4] == f"yolofs: {project} does not exist"
    beside("unmount", session)
    project.mkdir()
    assert "goes on" in program("sessions", "--rebase", project, session).err
    assert "A  new" in program("status").out
