"""What a commit has put into base is read for the history by no link that somebody has put in the
way since.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.program import Program, run_program

pytestmark = pytest.mark.mount

TIME_NS = 1_000_000_000_000_000_000


def test_a_run_before_a_commit_is_not_told_with_content_or_attributes_of_another_directory(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for directory in (project, other):
        directory.mkdir()
    (project / ".yolofs.toml").write_text("scratch = []\n")
    (other / "file").write_text("secret\n")
    os.utime(other / "file", ns=(TIME_NS, TIME_NS))
    (other / "file").chmod(0o751)
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        program("run", "sh", "-c", "mkdir dir; echo public > dir/file; touch -d @1000000000 dir/file")
        program("commit", "--yes")
        assert "+public\n" in program("diff", "--run", "1").out
        (project / "dir").rename(project / "moved")
        (project / "dir").symlink_to(other)
        done = run_program(["diff", "--run", "1"], project)
        assert "secret" not in done.stdout
        assert "0751" not in done.stdout + done.stderr
        told = json.loads(run_program(["diff", "--run", "1", "--json"], project).stdout)
        modes = {change[side]["mode"] for change in told["changes"] for side in ("old", "new") if side in change}
        assert modes
        assert "0751" not in modes
        assert "Traceback" not in done.stderr
