"""How long single calls take while another process writes with fsync."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import made_trees
from benchmarks.workload import Cell, Figures, Scene, Size, Workload, check

ROWS = {"p50": "median", "p99": "99th percentile", "max": "longest"}


def _build(base: Path, size: Size) -> None:
    made_trees.make_files(base / "looked_at", size.files, 4096)


def _beside_writer(operation: str, cell: Cell) -> Figures:
    directory = f"written_for_{operation}"
    cell.path(directory).mkdir()
    with cell.micro_start("fsync-writer", directory) as writer:
        assert writer.stdout is not None
        try:
            check("the writer writes", holds=writer.stdout.readline() == "writing\n")
            printed = cell.micro_output(f"latency-{operation}", "looked_at", cell.size.files, cell.size.latency_ms)
        finally:
            writer.terminate()
        rounds = int(writer.stdout.read() or 0)
    check("the writer wrote meanwhile and met no error", holds=rounds > 0 and writer.returncode == 0)
    return {row: float(value) * 1e-9 for row, value in zip(ROWS, printed.split(), strict=True)}


def _workload(operation: str, title: str) -> Workload:
    title = f"{title} beside writes with fsync"
    rows = {row: f"{title}; {which}" for row, which in ROWS.items()}
    return Workload(f"{operation}_beside_fsync", title, partial(_beside_writer, operation), rows)


def _workloads(size: Size) -> Sequence[Workload]:
    return [_workload("stat", "stat"), _workload("read", "open, read 4 KiB, close")]


SCENES = (Scene("latency", _build, _workloads),)
