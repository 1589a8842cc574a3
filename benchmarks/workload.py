"""What is measured: workloads, the scenes they play in, and the cell of a table that one run
fills.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.columns import UnsupportedError, View
from benchmarks.processor_time import Meter

Figures = Mapping[str, float]
"""Seconds by the name of the row; an empty name stands for the workload's own."""


SETTLE_S = 0.15
"""Ample: to note a thousand files that the kernel has forgotten took yolofs 2 to 5 ms."""


class WrongResultError(Exception):
    """A workload was carried out wrongly: its figure is worth nothing."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done."""

    name: str
    files: int
    """Of each kind in the loops of system calls."""
    warm_ms: int
    """How long a loop over what is warm goes on."""
    data_mib: int
    """Of the files that data is read from and written to."""
    large_mib: int
    """Of a file that is allocated; one that is copied is twice as large."""
    sources: int
    many_sources: int
    """Of a project that is built once."""
    headers: int
    edits: int
    """How often sources are edited and built anew."""
    tree_files: int
    modules: int
    """Python modules to compile."""
    snapshots: int
    directories: tuple[int, ...]
    """How many files the directories have that are renamed."""
    staged: tuple[int, ...]
    """How many files are committed and aborted."""
    latency_ms: int


TINY = Size("tiny", 10, 5, 1, 1, 6, 12, 3, 1, 60, 5, 12, (20,), (50,), 50)
QUICK = Size("quick", 100, 60, 8, 64, 60, 400, 30, 2, 1000, 60, 30, (1000,), (2000,), 400)
FULL = Size("full", 300, 250, 64, 64, 120, 400, 200, 5, 5000, 400, 1000, (1000, 50_000), (10_000, 50_000), 3000)


class Cell:
    """One workload in one column: where to work, and with what."""

    def __init__(self, view: View, base: Path, size: Size, scratch: Path, micro_program: Path) -> None:
        self.view = view
        self.base = base
        """The directory that the view shows.  Look only."""
        self.size = size
        self.scratch = scratch
        """An ordinary directory of this cell's own."""
        self._micro = micro_program
        self.meter = Meter(view.servers)

    def path(self, name: str) -> Path:
        """Return a path in the view."""
        return self.view.root / name

    def micro(self, operation: str, directory: str, count: int, milliseconds: int = 0) -> float:
        """Loop over a system call in a directory of the view; return the seconds that one took.

        Raises:
            WrongResultError: a call failed, or did something else.
        """
        return float(self.micro_output(operation, directory, count, milliseconds)) * 1e-9

    def micro_output(self, operation: str, directory: str, count: int, milliseconds: int = 0) -> str:
        """Do the same; return what the program printed."""
        words = [str(self._micro), operation, str(self.path(directory)), str(count)]
        if milliseconds:
            words.append(str(milliseconds))
        return self.run(words)

    def micro_at_once(self, operation: str, directory: str, count: int, milliseconds: int, clients: int) -> float:
        """Loop over a system call in several processes at once; return the seconds from one call's
        end to the next one's, whoever makes it.

        Raises:
            WrongResultError: a call failed, or did something else.
        """
        words = [str(self._micro), operation, str(self.path(directory)), str(count), str(milliseconds)]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(clients)]
        printed = [process.communicate() for process in running]
        for process, (_, said) in zip(running, printed, strict=True):
            if process.returncode:
                raise WrongResultError(f"{' '.join(words)}: exit status {process.returncode}: {said.decode()}")
        return 1e-9 / sum(1 / float(out) for out, _ in printed)

    def micro_start(self, operation: str, directory: str) -> subprocess.Popen[str]:
        """Start the program, to be ended by SIGTERM."""
        words = [str(self._micro), operation, str(self.path(directory)), "1"]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def run(self, words: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run a program that has to succeed; return its output.

        Raises:
            WrongResultError: it failed.
        """
        done = subprocess.run(
            words,
            cwd=cwd or self.scratch,
            env=os.environ | dict(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise WrongResultError(f"{' '.join(map(str, words))}: exit status {done.returncode}: {said}")
        return done.stdout

    def warm_base(self, directory: str) -> None:
        """Have the kernel cache what base has in a directory.

        Some columns have a base in common, and others one of their own: whoever comes first would
        read it from the disk for all of the former.
        """
        for parent, _, names in os.walk(self.base / directory):
            for name in names:
                (Path(parent) / name).read_bytes()

    def drop_caches(self) -> None:
        """Have the kernel forget all names, attributes and pages, of every filesystem.

        The daemons of all views that are open are told of each file that was forgotten; this waits
        until they have taken note, as otherwise what comes next would take its turn with that.
        None of it counts as the workload's processor time.

        Raises:
            UnsupportedError: that takes root.
        """
        with self.meter.aside():
            os.sync()
            try:
                Path("/proc/sys/vm/drop_caches").write_text("3\n")
            except OSError as error:
                raise UnsupportedError("only root can drop the kernel's caches") from error
            time.sleep(SETTLE_S)


def check(claim: str, *, holds: bool) -> None:
    """Fail if a claim does not hold.

    Raises:
        WrongResultError: it does not.
    """
    if not holds:
        raise WrongResultError(f"this should hold and does not: {claim}")


@dataclass(frozen=True, slots=True)
class Workload:
    """Something to do in a view.  It sets up what it needs, takes the time of the rest, and checks
    what came of it.
    """

    name: str
    title: str
    """What one figure is the time of."""
    run: Callable[[Cell], float | Figures]
    rows: Mapping[str, str] = field(default_factory=dict)
    """Where it fills several rows: what each adds to the name, and its title."""
    is_long: bool = False
    """Whether it takes so long that yardsticks are left out."""
    requests: int = 0
    """Where it keeps a server busy: how many requests it takes to do it once."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A base directory, and what is done in views of it, one workload after another."""

    name: str
    build: Callable[[Path, Size], None]
    workloads: Callable[[Size], Sequence[Workload]]
    keeps_base: bool = True
    """Whether no workload may change the base directory of a staging column; else each gets a
    copy.
    """
