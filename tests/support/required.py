"""What a test does without where the machine lacks it, unless ``YOLOFS_REQUIRE_MOUNT=1`` wants all
of it tried.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def is_required() -> bool:
    """Tell whether whoever runs the tests says that this machine mounts, and is root, who may."""
    return os.environ.get("YOLOFS_REQUIRE_MOUNT") == "1" and os.geteuid() == 0


def do_without(reason: str) -> NoReturn:
    """Skip a test that lacks a mount or another disk; fail it where that is required."""
    if is_required():
        pytest.fail(f"YOLOFS_REQUIRE_MOUNT=1, but {reason}", pytrace=False)
    pytest.skip(reason)
