"""A run whose stdin, stdout and stderr are closed (``>&-``), as some services start it."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.support.program import COMMAND, Program

pytestmark = pytest.mark.mount


def test_what_a_run_prints_goes_into_no_file_of_the_session(yolofs: Program) -> None:
    """The next file that is opened would get the number of a stream that is closed."""
    words = ["run", "--", "sh", "-c", "echo printed; echo wrong >&2; echo written > new"]
    command = f"exec {shlex.join([*COMMAND, *words])} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=yolofs.project, timeout=60, check=False).returncode == 0
    assert "new" in yolofs("status").out
    lines = [line for path in yolofs.session.rglob("*") if path.is_file() for line in path.read_bytes().splitlines()]
    assert b"written" in lines
    assert not {b"printed", b"wrong"}.intersection(lines)
