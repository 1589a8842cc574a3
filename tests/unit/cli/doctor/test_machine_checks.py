"""Which version of a package is the one that is wanted."""

from __future__ import annotations

import pytest

from yolofs.cli.doctor.machine_checks import is_in_range


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("3.4.0", ">=3.4,<3.6", True),
        ("3.4", "<3.6,>=3.4", True),
        ("3.5.9", ">=3.4, <3.6", True),
        ("3.6", ">=3.4,<3.6", False),
        ("3.6.0", ">=3.4,<3.6", False),
        ("3.10", ">=3.4,<3.6", False),
        ("3.3.9", ">=3.4,<3.6", False),
        ("3.5.0rc1", ">=3.4,<3.6", True),
        ("1", "", True),
    ],
)
def test_a_version_is_in_a_range_or_not(version: str, wanted: str, expected: bool) -> None:
    assert is_in_range(version, wanted) is expected
