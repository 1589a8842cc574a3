"""What a test does without where the machine lacks it, unless ``YOLOFS_REQUIRE_MOUNT=1`` wants all
of it tried.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def is_required() -> bool:
    """Tell whether the tests must not skip: root has said that this machine mounts."""
    return os.environ.get("YOLOFS_REQUIRE_MOUNT") == "1" and os.geteuid() == 0


def do_without(reason: str) -> NoReturn:
    """Skip a test for want of a mount or another disk; fail it if :func:`is_required`."""
    if is_required():
        pytest.fail(f"YOLOFS_REQUIRE_MOUNT=1, but {reason}", pytrace=False)
    pytest.skip(reason)
