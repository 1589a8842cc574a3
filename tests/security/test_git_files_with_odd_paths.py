"""Files of git's, of a repository from elsewhere or written by an agent, hold paths that no file
can have: with a zero byte, or too long.  No command ends with that.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program

NAME = b"0123456789" * 4
INTO_A_MODULE = b"gitdir: ../elsewhere\0/../.git/modules/m\n"
"""Git takes a zero byte for the end, and so follows this to ``elsewhere``."""


def see_all(program: Program) -> str:
    """Look at what is staged and commit it; return what the commit says."""
    for words in (["status"], ["diff"]):
        program(*words)
    program("commit", "--dry-run", code=16)
    return program("commit", "--yes", code=16).err


def test_a_file_git_with_a_zero_byte_in_base_stops_no_command(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".git").write_bytes(INTO_A_MODULE)
    (project / ".gitignore").write_text("build\n")
    view = CoreDriver(os.fsencode(project))
    view.mkdir(b"build", 0o755)
    view.create(b"build/made", b"", 0o644)
    view.create(b".envrc", b"", 0o644)
    view.close()
    assert ".envrc" in see_all(Program(project))
    assert (project / "build/made").exists()


def test_a_file_git_with_a_zero_byte_that_is_staged_has_to_be_named(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    view.mkdir(b"sub", 0o755)
    view.create(b"sub/.git", INTO_A_MODULE, 0o644)
    view.create(b"a", b"", 0o644)
    view.close()
    assert "sub/.git" in see_all(Program(project))
    assert (project / "a").exists()
    assert not (project / "sub/.git").exists()


@pytest.mark.parametrize("ref", [b"refs/heads/a\0b", b"refs/heads/" + b"x" * 300, b"refs/heads/" + b"x/" * 3000])
def test_packed_refs_with_paths_that_no_file_can_have_stop_no_command(tmp_path: Path, ref: bytes) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git/packed-refs").write_bytes(NAME + b" refs/heads/main\n")
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b".git/packed-refs", NAME + b" refs/heads/main\n" + NAME + b" " + ref + b"\n")
    view.create(b".envrc", b"", 0o644)
    view.close()
    assert ".envrc" in see_all(Program(project))
    assert ref in (project / ".git/packed-refs").read_bytes()
