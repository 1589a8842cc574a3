"""The power fails after a commit's steps have reached the disk, but not their log: the commit is
finished by the files at their places, and an undo takes all of it back.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.crash.at_a_call import program_in_which
from tests.support.every_kind_of_step import prepare
from tests.support.looks import tree_of
from tests.support.program import Program, run_code

_KILLED = program_in_which("os.kill(os.getpid(), 9)")


@pytest.mark.parametrize("kept_lines", [0, 8])
def test_a_commit_is_undone_whose_log_was_lost(tmp_path: Path, kept_lines: int) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = tree_of(project)
    words = ["yolofs.commit.apply.steps:Steps.copy_kept_files", "1", "", "commit", "--yes"]
    assert run_code(_KILLED, words, project).returncode == -signal.SIGKILL
    program = Program(project)
    log = program.session / "commits/1/progress"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:kept_lines]))
    program("commit", "--continue")
    assert tree_of(project) == expected
    program("undo", "--yes")
    assert tree_of(project) == before
