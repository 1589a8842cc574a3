"""A session over the whole machine, as the tests of the sandbox have it."""

from __future__ import annotations

from tests.sandbox.conftest import shared, yolofs

__all__ = ["shared", "yolofs"]
