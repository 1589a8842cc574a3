"""Finds the mounts and processes that a test run has left behind, and only those of this run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import forked
from yolofs.system.mount_table import mounted_paths

GRACE_S = 60.0
"""How long something may take to go away after a test, in seconds; what the daemon has done at low
priority takes long on a busy machine."""

_OWN_ENVIRONMENT = Path("/proc/self/environ").read_bytes()
"""What a fork has, too, until it runs another program."""

_LOOKS = 50
"""How often a process with an empty environment is looked at, a millisecond apart."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """FUSE mountpoints and processes (pid and command line)."""

    mounts: frozenset[str] = frozenset()
    processes: frozenset[tuple[int, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.mounts or self.processes)

    def __sub__(self, other: Leftovers) -> Leftovers:
        """Return what is not in ``other``; a process that runs another program by now is still the
        same one.
        """
        known = {pid for pid, _ in other.processes}
        return Leftovers(self.mounts - other.mounts, frozenset(one for one in self.processes if one[0] not in known))

    def __str__(self) -> str:
        mounts = [f"the mount {path}" for path in sorted(self.mounts)]
        return ", ".join(mounts + [f"process {pid} ({command})" for pid, command in sorted(self.processes)])


@dataclass(frozen=True, slots=True)
class Traces:
    """How the mounts and processes of one test run are recognised."""

    mark: str
    """What every process of the run has in its environment, as the value of :attr:`variable`."""

    directories: tuple[str, ...]
    """Where the run mounts."""

    variable: str = "YOLOFS_TEST_RUN"

    others: set[int] = field(default_factory=set)
    """Processes that are not of this run, or were there before it, and are there all the time
    since: they are not looked at again, as each look takes time.
    """

    def find(self) -> Leftovers:
        """Return what is there now, this process and its server of commands excepted."""
        return Leftovers(frozenset(self._mounts()), frozenset(self._processes()))

    def find_after_grace(self, before: Leftovers) -> Leftovers:
        """Return what is there beyond ``before`` once it had :data:`GRACE_S` to go away; usually at
        once nothing.
        """
        deadline = time.monotonic() + GRACE_S
        while (left := self.find() - before) and time.monotonic() < deadline:
            time.sleep(0.02)  # between two looks at a condition with a deadline
        return left

    def clear(self, left: Leftovers) -> None:
        """Kill the processes and detach the mounts in ``left``, so that the next test starts
        clean.
        """
        for pid, _ in left.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for mountpoint in left.mounts:
            command = ["umount", "-l"] if os.getuid() == 0 else ["fusermount3", "-u", "-z"]
            subprocess.run([*command, mountpoint], check=False)

    def _mounts(self) -> Iterator[str]:
        below = tuple(f"{path}/" for path in self.directories)
        for path, _ in mounted_paths(_fuse_lines()):
            mountpoint = os.fsdecode(path)
            if mountpoint.startswith(below):
                yield mountpoint

    def _processes(self) -> Iterator[tuple[int, str]]:
        wanted = f"{self.variable}={self.mark}".encode()
        now = all_processes()
        self.others.intersection_update(now)  # the number of one that has ended may come again
        for pid in now - self.others - {os.getpid()}:
            if forked.is_server(pid):
                continue
            with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
                process = f"/proc/{pid}"
                environment = _environment(process)
                if wanted in environment and wanted in environment.split(b"\0"):
                    command = _read(f"{process}/cmdline").replace(b"\0", b" ").strip()
                    yield pid, command.decode(errors="replace")
                elif environment and environment != _OWN_ENVIRONMENT:
                    self.others.add(pid)


def _fuse_lines() -> list[bytes]:
    """Return the lines of the table of mounts that are about FUSE: few of many."""
    return [line for line in _read("/proc/self/mountinfo").splitlines() if b" - fuse" in line]


def all_processes() -> set[int]:
    """Return the numbers of the processes that there are."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def _read(path: str) -> bytes:
    """Read a file: before and after each test that mounts, one of each process there is, so that it
    has to be quick.
    """
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _environment(process: str) -> bytes:
    """Return the environment of a process; one that has just been started shows none until the
    kernel has set it up.
    """
    for _ in range(_LOOKS):
        found = _read(f"{process}/environ")
        if found or not _read(f"{process}/maps"):  # without memory: a zombie, or of the kernel
            return found
        time.sleep(0.001)  # between two looks at a condition, of which there are so many at most
    return b""
