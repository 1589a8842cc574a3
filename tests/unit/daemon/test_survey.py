"""The process that looks through directories that are to be bound: alone, as the daemon starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from yolofs.daemon import survey


def test_a_daemon_that_is_gone_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", survey.__file__, "0", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()  # before the interpreter is even up
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
