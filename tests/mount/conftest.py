"""Fixtures for tests that mount."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.hard_links import Links, Mounter
from tests.support.in_process import MountedView


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """An empty base directory."""
    path = tmp_path / "base"
    path.mkdir()
    return path


@pytest.fixture
def mounted(base: Path) -> Iterator[Callable[..., MountedView]]:
    """Mounts the base directory as the test has filled it; keyword arguments go to ``Mount``."""
    views: list[MountedView] = []
    old_umask = os.umask(0o022)

    def mount(**options: Any) -> MountedView:
        view = MountedView(os.fsencode(base), **options)
        views.append(view)
        return view

    yield mount
    os.umask(old_umask)
    for view in views:
        view.close()


@pytest.fixture
def links(base: Path, mounted: Mounter) -> Links:
    """A view of a file with three names."""
    return Links(base, mounted)
