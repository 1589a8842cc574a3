"""The cost of rules for an access without an ask: a view under the built-in rules beside one that
allows all.

    python -m benchmarks.gate [--rounds 200] [--files 200]

Two mounts of two like projects serve the same calls in turns, so that whatever else goes on hits
both alike.  Prints for each kind of access the ratio of the medians, and the daemons' processor
time.  Needs a mount.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.asks import cpu_seconds, mounted

_UNCACHED = "[mount]\nbase_timeout = 0\nwatch = false\n"
"""So that each call comes to us."""
SETTINGS = {
    "rules": f'preset = "standard"\n{_UNCACHED}',
    "free": f'preset = "none"\n{_UNCACHED}[rules]\n"/" = "allow"\n',
}
"""The built-in rules, and the least that a view can have: one rule for everything."""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--files", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="yolofs-bench-") as directory, ExitStack() as stack:
        views: dict[str, list[str]] = {}
        pids: dict[str, int] = {}
        for side, settings in SETTINGS.items():
            project = Path(directory, side, "project")
            (project / "some/directory").mkdir(parents=True)
            for number in range(options.files):
                (project / f"some/directory/file{number}.c").write_bytes(b"x" * 4096)
            view, client = stack.enter_context(mounted(project, Path(directory, side, "run"), settings))
            views[side] = [str(view / f"some/directory/file{number}.c") for number in range(options.files)]
            pids[side] = client.pid
        for access in (look_up, open_and_close, open_and_read):
            compare(access, views, pids, options.rounds)


def look_up(path: str) -> None:
    """Ask for attributes."""
    os.stat(path)


def open_and_close(path: str) -> None:
    """Open for reading."""
    os.close(os.open(path, os.O_RDONLY))


def open_and_read(path: str) -> None:
    """Read a page."""
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 4096)
    os.close(fd)


def compare(access: Callable[[str], None], views: dict[str, list[str]], pids: dict[str, int], rounds: int) -> None:
    """Print what an access costs on both sides: a round is one pass over all files, on one side
    after the other.
    """
    times: dict[str, list[float]] = {side: [] for side in views}
    spent = dict.fromkeys(views, 0.0)
    for turn in range(rounds):
        for side in views if turn % 2 else reversed(views):
            before = cpu_seconds(pids[side])
            start = time.perf_counter()
            for path in views[side]:
                access(path)
            times[side].append((time.perf_counter() - start) / len(views[side]))
            spent[side] += cpu_seconds(pids[side]) - before
    medians = {side: statistics.median(some) for side, some in times.items()}
    pairs = statistics.median(one / other for one, other in zip(times["rules"], times["free"], strict=True))
    calls = rounds * len(views["rules"])
    print(
        f"{access.__name__.replace('_', ' '):<16}"
        f" {medians['rules'] * 1e6:7.2f} µs under rules, {medians['free'] * 1e6:7.2f} µs without:"
        f" ratio of medians {medians['rules'] / medians['free']:.3f}, median of ratios {pairs:.3f};"
        f" the daemon's time {spent['rules'] / calls * 1e6:.1f} and {spent['free'] / calls * 1e6:.1f} µs",
        flush=True,
    )


if __name__ == "__main__":
    main()
