"""Commits of many small new files, beside `cp -a` of the same files and fuse-overlayfs with `cp -a`
of its upper layer.

    python -m benchmarks.commits [--files 3000 15000 100000] [--rounds 3] [--scratch DIRECTORY]

The ways take turns, on the same filesystem, and each ends with what it wrote on the disk
(`sync -f`).  A commit is the whole command `yolofs commit --yes`, start and list included, without
a mount.  Prints, for each number of files and each way, how many files a second that made in its
fastest and its median round, the processor time and the largest resident set of the process.  Needs
fuse-overlayfs (scripts/setup-bench.sh), else that way is left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.cleaning import scratch_directory
from benchmarks.columns import FuseOverlay
from benchmarks.machine import describe
from yolofs.journal.records import Stage
from yolofs.paths import RelPath
from yolofs.session.session import Session, SessionAccess

SIZE = 1024
PER_DIRECTORY = 100
_BATCH = 500
_TIME_NS = 1_700_000_000_000_000_000


class Took(NamedTuple):
    """What one round of one way took."""

    wall_s: float
    cpu_s: float
    rss_mib: float


def content(number: int) -> bytes:
    """Return what is in a file: a kibibyte, different from file to file."""
    return (b"%08d\n" % number * (SIZE // 9 + 1))[:SIZE]


def write(top: Path, files: int) -> None:
    """Write the files into a directory."""
    for number in range(files):
        directory = top / f"d{number // PER_DIRECTORY}"
        if number % PER_DIRECTORY == 0:
            directory.mkdir()
        (directory / f"f{number}").write_bytes(content(number))


def stage(project: Path, files: int) -> None:
    """Make a session of a project in which the files are staged, in the directory ``new``."""
    Session.create(os.fsencode(project))
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        place = session.base.relative(os.fsencode(project))
        top = (place + b"/" if place else b"") + b"new"
        records = [Stage(_TIME_NS, RelPath(top), session.store.create_dir(0o755)[0])]
        for number in range(files):
            directory = top + b"/d%d" % (number // PER_DIRECTORY)
            if number % PER_DIRECTORY == 0:
                records.append(Stage(_TIME_NS, RelPath(directory), session.store.create_dir(0o755)[0]))
            ino, fd, _ = session.store.create_file(0o644)
            with open(fd, "wb") as file:
                file.write(content(number))
            records.append(Stage(_TIME_NS, RelPath(directory + b"/f%d" % number), ino))
            if len(records) > _BATCH:
                session.journal.append(*records)
                records.clear()
        session.journal.append(*records)
        session.journal.sync()


def timed(command: Sequence[str | Path], directory: Path) -> Took:
    """Run a command in a directory, wait until what it wrote is on the disk, and tell what both
    took: a commit has waited itself, `cp -a` has not.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]}: exit code {process.returncode}")
    subprocess.run(["sync", "-f", directory], check=True)
    return Took(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def copied(scratch: Path, files: int) -> Took:
    """Copy the files with `cp -a`."""
    (scratch / "plain").mkdir()
    write(scratch / "plain", files)
    os.sync()
    return timed(["cp", "-a", "plain", "copy"], scratch)


def overlaid(scratch: Path, files: int) -> Took:
    """Write the files through fuse-overlayfs, and copy its upper layer into the base with
    `cp -a`.
    """
    base, layers = scratch / "base", scratch / "layers"
    base.mkdir()
    layers.mkdir()
    with FuseOverlay().view(base, layers) as view:
        (view.root / "new").mkdir()
        write(view.root / "new", files)
    os.sync()
    return timed(["cp", "-a", f"{layers}/u0/.", base], scratch)


def committed(scratch: Path, files: int) -> Took:
    """Commit the files."""
    project = scratch / "project"
    project.mkdir()
    stage(project, files)
    os.sync()
    took = timed([sys.executable, "-P", "-m", "yolofs.cli.main", "commit", "--yes"], project)
    last = project / f"new/d{(files - 1) // PER_DIRECTORY}/f{files - 1}"
    if last.read_bytes() != content(files - 1):
        raise RuntimeError(f"{last} is not what was staged")
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commits", description="Commits of many small files.")
    parser.add_argument("--files", type=int, nargs="+", default=[3000, 15_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="where to work (a directory that is there)")
    options = parser.parse_args()
    ways = {"cp -a": copied, "yolofs commit": committed}
    if not FuseOverlay().why_missing():
        ways["fuse-overlayfs, cp -a"] = overlaid
    with scratch_directory(options.scratch) as top:
        print(", ".join(f"{name}: {fact}" for name, fact in describe(top).items()))
        print(f"{'files':>8}  {'way':24}{'files/s':>9}{'median':>9}{'CPU s':>8}{'MiB':>6}")
        for files in options.files:
            found: dict[str, list[Took]] = {name: [] for name in ways}
            for turn in range(options.rounds):
                for name, way in ways.items():
                    place = top / f"{files}-{turn}-{len(found[name])}-{name.split()[0]}"
                    place.mkdir()
                    found[name].append(way(place, files))
                    shutil.rmtree(place)
            for name, rounds in found.items():
                walls = [one.wall_s for one in rounds]
                cpu_s = min(one.cpu_s for one in rounds)
                rss = max(one.rss_mib for one in rounds)
                rates = f"{files / min(walls):9,.0f}{files / statistics.median(walls):9,.0f}"
                print(f"{files:8,}  {name:24}{rates}{cpu_s:8.2f}{rss:6.0f}", flush=True)


if __name__ == "__main__":
    main()
