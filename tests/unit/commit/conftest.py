"""What the tests of a commit share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, have_linked
from tests.unit.commit.base_to_commit_to import open_scribe


@pytest.fixture(params=["copied", "linked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """New files come into base as copies, or store inodes do themselves."""
    if request.param == "linked":
        have_linked(monkeypatch)


@pytest.fixture
def scribe(tmp_path: Path) -> CommitScribe:
    """A view of a small base."""
    base = tmp_path / "base"
    for name in ("d/sub", "e"):
        (base / name).mkdir(parents=True)
    for name in ("a", "b", "d/x", "d/sub/y"):
        (base / name).write_bytes(b"base " + name.encode())
    return open_scribe(tmp_path)


@pytest.fixture
def parking(tmp_path: Path) -> bytes:
    """The directory of the commit."""
    return os.fsencode(tmp_path / "commits" / "1")
