"""Startup: what `yolofs run -- true`, `status`, `snapshot` and `diff` take on a mounted session.

    python -m benchmarks.startup [--rounds 20] [--check]

Prints, for each command, the wall time and the CPU time of it and of all processes that it waited
for, and how many processes the machine started meanwhile; fastest and median of the rounds, in
which the commands take turns; and how many times the fastest is that of `python -c pass`.  One file
and one directory are staged.  The first lines are Python alone, to compare machines by.  With
--check the exit code is 1 if a command takes longer than it may.  Where other programs want the
CPUs: chrt --rr 10 python -m benchmarks.startup, as root.  Needs a mount and bubblewrap.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAM = Path(sys.executable).parent / "yolofs"
LIMITS_MS = {"run -- true": 150.0, "status": 150.0, "snapshot": 90.0, "diff": 150.0}
"""How much wall time the median of a command may take."""
_ALONE = "python -c pass"
_SURVEY_S = 5.0
"""After so long what may be bound straight from base is known."""


class Took(NamedTuple):
    """What one start took."""

    wall_ms: float
    cpu_ms: float
    processes: int


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    # As an installed program runs: its bytecode is kept.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="yolofs-bench-") as directory:
        environment["XDG_RUNTIME_DIR"] = os.path.join(directory, "run")
        environment["XDG_STATE_HOME"] = os.path.join(directory, "state")
        project = Path(directory, "project")
        for path in (project, Path(directory, "run")):
            path.mkdir(mode=0o700)
        _yolofs(["init"], project, environment)
        _yolofs(["mount"], project, environment)
        try:
            _yolofs(["run", "--no-review", "sh", "-c", "echo text > new; mkdir directory"], project, environment)
            time.sleep(_SURVEY_S)
            medians = measure(project, environment, options.rounds)
        finally:
            _yolofs(["unmount", "--force"], project, environment)
    slow = [name for name, limit_ms in LIMITS_MS.items() if medians[name] > limit_ms]
    for name in slow:
        print(f"{name} takes longer than {LIMITS_MS[name]:.0f} ms")
    return int(options.check and bool(slow))


def measure(project: Path, environment: Mapping[str, str], rounds: int) -> dict[str, float]:
    """Print a line for each command; return the median of its wall time, in milliseconds."""
    commands: dict[str, list[str]] = {
        "python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"],
        _ALONE: [sys.executable, "-c", "pass"],
        **{name: [str(PROGRAM), *name.split()] for name in LIMITS_MS},
    }
    took: dict[str, list[Took]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            one = start(command, project, environment)
            if number:  # the first time fills the caches
                took[name].append(one)
    alone_ms = min(one.wall_ms for one in took[_ALONE])
    for name, some in took.items():
        wall, cpu = [one.wall_ms for one in some], [one.cpu_ms for one in some]
        print(
            f"{name:22} wall {min(wall):6.1f} {statistics.median(wall):6.1f} ms"
            f"   CPU {min(cpu):6.1f} {statistics.median(cpu):6.1f} ms   {min(one.processes for one in some)} processes"
            f"   x{min(wall) / alone_ms:.1f}"
        )
    return {name: statistics.median(one.wall_ms for one in some) for name, some in took.items()}


def start(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Took:
    """Start a command, wait for it, and return what it took."""
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    os.chdir(directory)
    processes, since = _processes_started(), time.perf_counter()
    _, status, usage = os.wait4(os.posix_spawn(command[0], list(command), environment, file_actions=null), 0)
    wall_s = time.perf_counter() - since
    if status:
        raise SystemExit(f"{' '.join(command)} failed: {os.waitstatus_to_exitcode(status)}")
    return Took(wall_s * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3, _processes_started() - processes)


def _processes_started() -> int:
    """Return how many processes and threads the machine has started since it runs."""
    text = Path("/proc/stat").read_text()
    return int(text.partition("\nprocesses ")[2].split()[0])


def _yolofs(words: Sequence[str], project: Path, environment: Mapping[str, str]) -> None:
    subprocess.run([PROGRAM, *words], cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    os.chdir("/")


if __name__ == "__main__":
    sys.exit(main())
