"""Tests that mount have the mark ``mount``, by which they are skipped where nobody can mount.

What mounts for tests asks here, so a test without the mark fails on every machine.
"""

from __future__ import annotations

_unmarked = ""
"""The test that is running and may not mount; empty if it may."""


def begin(test: str, *, is_marked: bool) -> None:
    """Note which test begins."""
    global _unmarked
    _unmarked = "" if is_marked else test


def check() -> None:
    """Fail if the test that is running has no mark."""
    assert not _unmarked, f"{_unmarked} mounts, so it needs @pytest.mark.mount"
