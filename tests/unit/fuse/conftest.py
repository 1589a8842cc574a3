"""A loop and a device that it serves, and a base directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.fuse.loops import Device
from yolofs.fuse.loop.loop import DeviceLoop


@pytest.fixture
def loop() -> Iterator[DeviceLoop]:
    loop = DeviceLoop(max_threads=3)
    yield loop
    loop.stop()


@pytest.fixture
def device(loop: DeviceLoop) -> Iterator[Device]:
    device = Device(loop)
    yield device
    os.close(device.fd)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """An empty base directory."""
    path = tmp_path / "base"
    path.mkdir()
    return path
