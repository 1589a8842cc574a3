"""What the tests of code for the host share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from tests.unit.hostcode.found_marks import HARMLESS


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """A machine with a home, in it a project that is a repository, and a directory beside."""
    base = tmp_path / "base"
    for directory in (
        "home/u/p/.git/hooks",
        "home/u/p/src",
        "home/u/p/d",
        "home/u/.ssh",
        "home/u/dotfiles",
        "home/u/bin",
    ):
        (base / directory).mkdir(parents=True)
    files = {
        "p/.git/config": HARMLESS,
        "p/.git/HEAD": b"ref: refs/heads/main\n",
        "p/.git/hooks/pre-commit": b"#!/bin/sh\n",
        "p/src/x.c": b"int x;\n",
        "p/d/f": b"f\n",
        "p/Makefile": b"all:\n",
        "dotfiles/bashrc": b"# x\n",
    }
    for name, content in files.items():
        (base / "home/u" / name).write_bytes(content)
    (base / "home/u/.bashrc").symlink_to("dotfiles/bashrc")
    return Scribe(bytes(base), bytes(tmp_path / "store"))
