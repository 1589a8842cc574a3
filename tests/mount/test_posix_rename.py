"""renameat2(2) on a real mount; the model test has the rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
RENAME_WHITEOUT = 4


def test_a_flag_that_the_view_does_not_know_is_refused(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"")
    view = mounted()
    with pytest.raises(OSError, match="Errno 22"):
        view.rename(b"f", b"g", RENAME_WHITEOUT)
    assert os.listdir(view.mountpoint) == [b"f"]
