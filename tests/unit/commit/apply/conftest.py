"""What the tests of taking back share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, have_linked
from tests.unit.commit.apply.rolling_back import make_scribe


@pytest.fixture(params=["copied", "linked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """New files come into base as copies, or store inodes do themselves."""
    if request.param == "linked":
        have_linked(monkeypatch)


@pytest.fixture
def scribe(tmp_path: Path) -> CommitScribe:
    """A base with something for every kind of step, all of it old."""
    return make_scribe(tmp_path)


@pytest.fixture
def parking(tmp_path: Path) -> bytes:
    """The commit's directory."""
    return os.fsencode(tmp_path / "commits" / "1")
