"""``make demo`` works, and cleans up after itself whether or not it gets to its end.

CI runs it beside the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "scripts/demo.sh"

pytestmark = pytest.mark.mount


@pytest.fixture
def scratch(traces: object) -> Path:
    """Return an empty directory whose path is short enough for the socket below it."""
    del traces  # sets XDG_RUNTIME_DIR
    directory = Path(os.environ["XDG_RUNTIME_DIR"], "demo")
    directory.mkdir()
    return directory


def run_demo(scratch: Path, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(scratch), "PATH": path}
    return subprocess.run(["bash", DEMO], env=environment, capture_output=True, text=True, check=False)


def bin_first() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.nightly
def test_the_demo_reaches_its_end_with_every_check_passed(scratch: Path) -> None:
    done = run_demo(scratch, bin_first())
    assert done.returncode == 0, done.stdout
    checked = [line for line in done.stdout.splitlines() if line.startswith("checked: ")]
    assert len(checked) == DEMO.read_text().count('\ncheck "')
    assert list(scratch.iterdir()) == []
    scratch.rmdir()


def test_a_demo_that_fails_half_way_says_so_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    broken = tmp_path / "tail"  # what `yolofs status` is piped into, with the view mounted
    broken.write_text("#!/bin/sh\nexit 7\n")
    broken.chmod(0o755)
    done = run_demo(scratch, f"{tmp_path}:{bin_first()}")
    assert done.returncode == 7, done.stdout
    assert done.stdout.splitlines()[-1] == "demo: failed (exit code 7)"
    assert list(scratch.iterdir()) == []
    scratch.rmdir()
