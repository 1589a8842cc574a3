"""A mount that fails leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import with_few_files
from yolofs.registry.runtime import runtime_directory

pytestmark = pytest.mark.mount


def test_a_mount_that_fails_leaves_no_directory_for_it(tmp_path: Path) -> None:
    yolofs = with_few_files(tmp_path / "project")
    runtime = runtime_directory(os.fsencode(yolofs.session))
    done = yolofs("mount", code=None, YOLOFS_TRANSPORT="none")
    assert "there is no transport" in done.err
    assert not os.path.lexists(runtime)
