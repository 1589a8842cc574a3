"""Snapshots with work between them, and the two ways to end a session: commit and abort."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import made_trees
from benchmarks.workload import Cell, Figures, Scene, Size, Workload, check

FILES = 100
UNTOUCHED = 10
"""So many files are made, and so many of base that nobody changes are read, after a snapshot."""
SMALL = 1024


def _build_snapshots(base: Path, size: Size) -> None:
    made_trees.make_files(base / "work", FILES, 4096)
    made_trees.make_files(base / "untouched", UNTOUCHED, 4096)
    (base / "made").mkdir()


def _snapshots(cell: Cell) -> Figures:
    """Change three files, then snapshot, then make and read ten others, many times; compare the
    first tenth with the last.
    """
    snapshots, changes, creates, reads = [], [], [], []
    expected = {number: made_trees.content(number, 4096) for number in range(FILES)}
    for turn in range(cell.size.snapshots):
        start = time.perf_counter()
        for number in ((turn * 3 + k) % FILES for k in range(3)):
            expected[number] = f"{turn}\n".encode() + expected[number][:64]
            cell.path(f"work/f{number}").write_bytes(expected[number])
        changes.append(time.perf_counter() - start)
        start = time.perf_counter()
        cell.view.snapshot()
        snapshots.append(time.perf_counter() - start)
        cell.path(f"made/{turn}").mkdir()
        creates.append(cell.micro("create", f"made/{turn}", UNTOUCHED))
        reads.append(cell.micro("read", "untouched", UNTOUCHED))
    for number, content in expected.items():
        check(f"file {number} is as it was left", holds=cell.path(f"work/f{number}").read_bytes() == content)
    tenth = max(1, len(snapshots) // 10)
    return {
        "first": statistics.median(snapshots[:tenth]),
        "last": statistics.median(snapshots[-tenth:]),
        "work_first": statistics.median(changes[:tenth]) / 3,
        "work_last": statistics.median(changes[-tenth:]) / 3,
        "creates": statistics.median(creates),
        "reads": statistics.median(reads),
    }


def _snapshot_workloads(size: Size) -> Sequence[Workload]:
    rows = {
        "first": f"snapshot; the first tenth of {size.snapshots:,}",
        "last": f"snapshot; the last tenth of {size.snapshots:,}",
        "work_first": "rewrite a small file before one of them",
        "work_last": "rewrite a small file before one of the last",
        "creates": f"create and write 4 KiB, the first {UNTOUCHED} after a snapshot",
        "reads": f"open, read 4 KiB, close; base, the first {UNTOUCHED} after a snapshot",
    }
    return [Workload("snapshots", "snapshots with work between them", _snapshots, rows)]


# ---- endings


def _build_ending(base: Path, size: Size) -> None:
    made_trees.make_files(base / "old", 10, SMALL)


def _stage(cell: Cell, files: int) -> None:
    cell.path("new").mkdir()
    per_directory = 1000
    for first in range(0, files, per_directory):
        name = f"new/part{first // per_directory}"
        cell.path(name).mkdir()
        cell.micro("create-small", name, min(per_directory, files - first))


def _commit(files: int, cell: Cell) -> float:
    _stage(cell, files)
    took = cell.view.commit() / files
    found = made_trees.listing(cell.base / "new")
    check("base has all the files", holds=len(found) == files)
    check("each with its own content", holds=len(set(found.values())) == min(files, 1000))
    last = cell.base / "new/part0/f1"
    check("as it was written", holds=last.read_bytes() == made_trees.content(1, SMALL))
    return took


def _abort(files: int, cell: Cell) -> float:
    _stage(cell, files)
    took = cell.view.abort() / files
    check("base has none of the files", holds=not (cell.base / "new").exists())
    check("and what it had", holds=len(list((cell.base / "old").iterdir())) == 10)
    return took


def _ending_workloads(size: Size) -> Sequence[Workload]:
    return [
        workload
        for files in size.staged
        for workload in (
            Workload(f"commit_{files}", f"commit one of {files:,} files of 1 KiB", partial(_commit, files)),
            Workload(f"abort_{files}", f"abort one of {files:,} files of 1 KiB", partial(_abort, files)),
        )
    ]


SCENES = (
    Scene("snapshots", _build_snapshots, _snapshot_workloads),
    Scene("endings", _build_ending, _ending_workloads, keeps_base=False),
)
