"""A loop, and a device that it serves."""

from __future__ import annotations

import os
from collections.abc import Iterator

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
