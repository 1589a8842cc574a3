"""What the tests of taking back share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.rolling_back import make_scribe


@pytest.fixture
def scribe(tmp_path: Path) -> CommitScribe:
    """A base with something for every kind of step, all of it old."""
    return make_scribe(tmp_path)
