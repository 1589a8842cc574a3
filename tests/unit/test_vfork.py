"""How tests start processes: vfork is not for one that serves a mount."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.vfork import UnlessServing


@pytest.mark.mount
def test_a_process_that_has_the_device_open_does_not_vfork() -> None:
    assert UnlessServing()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        assert not UnlessServing()
    finally:
        os.close(device)
    assert UnlessServing()


def test_vfork_is_decided_anew_for_each_process_that_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(subprocess._USE_VFORK, UnlessServing)
    asked = []

    class Noted(UnlessServing):
        def __bool__(self) -> bool:
            asked.append(1)
            return super().__bool__()

    monkeypatch.setattr(subprocess, "_USE_VFORK", Noted())
    for number in (1, 2):
        subprocess.run(["true"], check=True)
        assert len(asked) == number
