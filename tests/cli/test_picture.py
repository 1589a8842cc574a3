"""The picture in README.md shows what the program does now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/session.svg"

pytestmark = pytest.mark.mount


def test_the_picture_of_a_session_is_what_a_run_shows_now(tmp_path: Path) -> None:
    drawn = tmp_path / "session.svg"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/make_picture.py", drawn], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert drawn.read_text(encoding="utf-8") == PICTURE.read_text(encoding="utf-8"), "run: make picture"
    assert PICTURE.stat().st_size < 60_000


def test_readme_shows_the_picture() -> None:
    assert "](docs/session.svg)" in (ROOT / "README.md").read_text()
