"""What a run leaves behind: nothing.  Mounts below its directory and the directory itself go away
on every way out.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

GRACE_S = 20.0
"""How long a filesystem's process may take to end once its mount is gone."""


@contextlib.contextmanager
def scratch_directory(parent: Path | None) -> Iterator[Path]:
    """Give a directory for the time of the block, with directories for what yolofs keeps and runs
    in it.

    SIGTERM and SIGHUP end the block as Ctrl-C does; nothing interrupts the cleaning up.
    """
    path = Path(tempfile.mkdtemp(prefix="yolofs-bench.", dir=parent))
    runtime = path / "run"
    runtime.mkdir(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    os.environ["XDG_STATE_HOME"] = str(path / "state")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        yield path
    finally:
        with uninterrupted():
            for mountpoint in mounts_below(path):
                unmount(mountpoint)
            if not mounts_below(path):  # never remove what lies in somebody's mount
                shutil.rmtree(path)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no signal end the block."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def mounts_below(path: Path) -> list[Path]:
    """Return what is mounted below ``path``, the deepest first."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as lines:
        points = [Path(line.split()[1].replace("\\040", " ")) for line in lines]
    return sorted((point for point in points if point.is_relative_to(path)), reverse=True)


@contextlib.contextmanager
def mount_taken_away(mountpoint: Path) -> Iterator[None]:
    """Take away, after the block, what is mounted there by then."""
    try:
        yield
    finally:
        for mounted in mounts_below(mountpoint):
            unmount(mounted)


def unmount(mountpoint: Path) -> None:
    """Take a mount away, at last from under whoever is inside."""
    command = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    deadline = time.monotonic() + GRACE_S / 4
    while mountpoint in mounts_below(mountpoint):
        is_late = time.monotonic() > deadline
        lazily = ["-l" if os.geteuid() == 0 else "-z"] if is_late else []
        done = subprocess.run([*command, *lazily, mountpoint], check=False, capture_output=True)
        if done.returncode == 0 or is_late:
            return
        time.sleep(0.05)  # a program that has just ended may be inside still


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Wait for a filesystem's process whose mount is gone; kill it if it hangs."""
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
