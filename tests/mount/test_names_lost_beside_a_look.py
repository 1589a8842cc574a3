"""A file loses one of two names while somebody else asks for its attributes by the other one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
ROUNDS = 150
LOOKING = """
import os, time
while True:
    time.sleep(0.0001)  # not a wait for anything: the other one is to get on in between
    os.listdir("looked-at")
    for entry in os.scandir("looked-at"):
        try:
            entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            pass
"""
# Of all threads this one gets the CPU last: others often hear of the new count before it counts.
LOSING = """
import os, sys
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
for number in range(int(sys.argv[1])):
    lost, left = f"lost/{number}", f"looked-at/{number}"
    os.close(os.open(lost, os.O_CREAT | os.O_WRONLY))
    os.link(lost, left)
    if sys.argv[2] == "unlink":
        os.unlink(lost)
    else:
        os.close(os.open("lost/other", os.O_CREAT | os.O_WRONLY))
        os.rename("lost/other", lost)
    os.link(left, f"lost/{number}.again")
    assert os.stat(left).st_nlink == 2, os.stat(left).st_nlink
    os.unlink(left)
"""


@pytest.mark.parametrize("way", ["unlink", "rename"])
def test_a_look_beside_the_loss_of_a_name_does_not_bring_back_the_old_count_of_names(
    way: str, base: Path, mounted: Callable[..., MountedView]
) -> None:
    view = os.fsdecode(mounted().mountpoint)
    for name in ("lost", "looked-at"):
        os.mkdir(os.path.join(view, name))
    cpu = {min(os.sched_getaffinity(0))}
    looking = subprocess.Popen(
        [sys.executable, "-c", LOOKING], cwd=view, preexec_fn=lambda: os.sched_setaffinity(0, cpu)
    )
    try:
        losing = subprocess.run(
            [sys.executable, "-c", LOSING, str(ROUNDS), way],
            cwd=view,
            check=False,
            capture_output=True,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cpu),
        )
    finally:
        looking.kill()
        looking.wait()
    assert losing.stderr == ""
