"""What the tests of a tree's settings do in a clone."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Program, replace_text
from yolofs.errors import TrustError

EXIT = TrustError.exit_code
SECRET = "the secret of this test"
"""Of the key in the user's home directory."""


def settings(program: Program, text: str) -> None:
    """Let ``.yolofs.toml`` say something else."""
    replace_text(program.project / ".yolofs.toml", text)


def reads(program: Program, path: Path) -> str:
    """Return what a command in the sandbox reads, empty if it is refused or finds nothing."""
    return program("run", "sh", "-c", f"cat '{path}' 2>/dev/null; true").out


def waiting(program: Program) -> list[str]:
    """Return the lines that wait, as status has them."""
    return [one["text"] for one in program("status", "--json").json["waiting"]]
