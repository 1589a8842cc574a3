"""A project that somebody else wrote, and a home with a key in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.trust.clones import SECRET
from tests.support.program import Program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a key in it."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    (home / ".ssh/key").write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def clone(home: Path) -> Iterator[Program]:
    """A project that somebody else wrote, as it is after cloning it."""
    project = home / "src/clone"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("a\n")
    program = Program(project)
    program.start_session()
    yield program
    if (program.session / "daemon.json").exists():
        program("unmount", "--force")
