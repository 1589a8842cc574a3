"""What the tests of a tree's settings do in a clone."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.support.program import Program, replace_text
from yolofs.errors import TrustError

EXIT = TrustError.exit_code
SECRET = "the secret of this test"
"""Of the key in the user's home directory."""


def settings(program: Program, text: str) -> None:
    """Let ``.yolofs.toml`` say something else."""
    replace_text(program.project / ".yolofs.toml", text)


def reads(program: Program, *paths: Path) -> str:
    """Return what a command in the sandbox reads of some files; nothing of those that it is refused
    or does not find.
    """
    return program("run", "sh", "-c", f"cat {shlex.join(map(str, paths))} 2>/dev/null; true").out


def waiting(program: Program) -> list[str]:
    """Return the lines that wait, as status has them."""
    return [one["text"] for one in program("status", "--json").json["waiting"]]
