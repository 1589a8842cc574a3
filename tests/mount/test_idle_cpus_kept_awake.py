"""CPUs are kept awake by a real daemon, while it has much to do."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from tests.cli.program import DEADLINE_S, Program, wait_until
from yolofs.fuse.loop.idle_cpus import idle_cpus_to_keep_awake

DEVICE = "/dev/cpu_dma_latency"

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(
        idle_cpus_to_keep_awake(time.monotonic) is None, reason=f"{DEVICE} is not permitted here, or of no use"
    ),
]


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    program = Program(tmp_path)
    program("init")
    return program


def is_held(pid: int) -> bool:
    """Tell whether a process has the device open."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed just now
            if os.readlink(f"/proc/{pid}/fd/{name}") == DEVICE:
                return True
    return False


@pytest.mark.parametrize("keep_awake", [True, False])
def test_it_is_asked_for_while_requests_are_dense_and_not_in_an_idle_session(yolofs: Program, keep_awake: bool) -> None:
    (yolofs.project / ".yolofs.toml").write_text(f"[mount]\nkeep_awake = {str(keep_awake).lower()}\n")
    (yolofs.project / "f").write_text("f\n")
    with yolofs.mounted() as view:
        pid = int(yolofs.daemon["pid"])
        wait_until(lambda: not is_held(pid), "the silence after the mount")
        assert busy(view / "f", pid, DEADLINE_S if keep_awake else 5) is keep_awake
        wait_until(lambda: not is_held(pid), "the silence")


def busy(path: Path, pid: int, longest_s: float) -> bool:
    """Open a file again and again, for so long at most; tell whether the CPUs were kept awake
    meanwhile.
    """
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline:
        for _ in range(50):
            os.close(os.open(path, os.O_RDONLY))
        if is_held(pid):
            return True
    return False
