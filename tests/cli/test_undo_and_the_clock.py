"""The machine's clock was wrong and is set back between a run and the commit: the run's files seem
born after that commit.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from yolofs.system.syscalls import birth_ns

_MINUTE_NS = 60_000_000_000


def test_a_file_that_seems_born_after_its_commit_is_still_the_commits_own(tmp_path: Path) -> None:
    """Nobody can set the clock back here: the end of the commit is noted a minute earlier."""
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    view.create(b"new", b"made in the view", 0o644)
    view.mkdir(b"dir", 0o755)
    view.create(b"dir/file", b"made there", 0o644)
    view.close()
    program = Program(project)
    program("commit", "--yes")
    done = program.session / "commits/1/done"
    born_ns = birth_ns(bytes(project / "new"))
    assert born_ns is not None
    os.utime(done, ns=(0, born_ns - _MINUTE_NS))
    program("undo", "--yes")
    assert not (project / "new").exists()
    assert not (project / "dir").exists()
    assert "A  new" in program("status").out
