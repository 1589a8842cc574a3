"""A store to work in."""

from __future__ import annotations

import pytest

from yolofs.store.store import Store


@pytest.fixture
def store(room: bytes) -> Store:
    return Store(room + b"/files")
