"""A model to press keys at."""

from __future__ import annotations

import pytest

from tests.unit.cli.review.models import small_model
from yolofs.cli.review.keys import ReviewModel


@pytest.fixture
def model() -> ReviewModel:
    return small_model()
