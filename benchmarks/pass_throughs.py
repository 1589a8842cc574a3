"""Pass-throughs, which stage nothing: yardsticks for what FUSE itself costs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cleaning import GRACE_S, mount_taken_away, unmount
from benchmarks.columns import Column, View
from benchmarks.measured import FLOOR
from benchmarks.processor_time import Servers, mounted_by


class _PassedView(View):
    def __init__(self, root: Path, command: list[str | Path], variables: dict[str, str]) -> None:
        self._process = Servers()
        super().__init__(root, self._process)
        self._command = command
        self._variables = variables
        self._mount()

    def mount_anew(self) -> None:
        self._process.ends()
        unmount(self.root)
        self._wait_for_its_end()
        self._mount()

    def _wait_for_its_end(self) -> None:
        """Else it would be taken for the next one: both have the same command line."""
        deadline = time.monotonic() + GRACE_S
        with contextlib.suppress(ProcessLookupError):
            while mounted_by(self.root) and time.monotonic() < deadline:
                time.sleep(0.005)  # between two looks: it is no child of ours, so nothing can be waited for

    def _mount(self) -> None:
        subprocess.run(self._command, env=os.environ | self._variables, check=True)
        self._process.began(mounted_by(self.root))


class PassThrough(Column):
    """A program that mounts a copy of the base: ``command SOURCE MOUNTPOINT``, and goes to the
    background.
    """

    is_staging = False
    is_yardstick = True

    def __init__(self, name: str, command: list[str], **variables: str) -> None:
        self.name = name
        self._command = command
        self._variables = variables

    @contextlib.contextmanager
    def view(self, base: Path, scratch: Path) -> Iterator[View]:
        root = scratch / "mnt"
        root.mkdir()
        with mount_taken_away(root):
            yield _PassedView(root, [*self._command, base, root], self._variables)


def yardsticks(directory: Path, build: Path) -> list[Column]:
    """Return the pass-throughs found in ``directory``: ``floor.c`` and ``pyfloor.py``; ``build`` is
    for binaries.
    """
    columns: list[Column] = []
    if (directory / "floor.c").exists():
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True
        ).stdout.split()
        binary = str(build / FLOOR)
        subprocess.run(["gcc", "-O2", "-w", "-o", binary, directory / "floor.c", *flags], check=True)
        columns.append(PassThrough(FLOOR, [binary]))
    if (directory / "pyfloor.py").exists():
        command = [sys.executable, str(directory / "pyfloor.py")]
        columns.append(PassThrough("pyfloor", command, LOOP="mini", SPIN_US="60"))
    return columns
