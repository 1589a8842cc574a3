"""How a mount begins where the kernel does not play along."""

from __future__ import annotations

import os

import pytest

from yolofs.fuse.handshake import Handshake
from yolofs.fuse.loop.loop import DeviceLoop

pytestmark = pytest.mark.mount


def test_a_device_that_gives_nothing_leaves_nothing_open() -> None:
    """One that was never mounted fails each read, like one whose mount was taken away at once."""
    loop = DeviceLoop()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        before = set(os.listdir("/proc/self/fd"))
        with pytest.raises(PermissionError):
            Handshake(device, loop)
        assert set(os.listdir("/proc/self/fd")) == before
        assert os.readlink(f"/proc/self/fd/{device}") == "/dev/fuse"
    finally:
        os.close(device)
