"""Git, as tests call it in a project of theirs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(project: Path, *words: str) -> None:
    """Run git without anybody's settings; it has to succeed."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=project, check=True, capture_output=True, env=env)
