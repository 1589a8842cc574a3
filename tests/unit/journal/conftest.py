"""Where a journal is to lie, and its two forms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.journal.journal_files import KEY, form_of
from yolofs.journal.header import HEADER_1, JournalForm, header


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "journal")


@pytest.fixture(params=[1, 2])
def form(request: pytest.FixtureRequest) -> JournalForm:
    """Return the form of the journals of each version."""
    return form_of(HEADER_1 if request.param == 1 else header(KEY))
