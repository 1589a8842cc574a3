"""Names and attributes: loops over one system call each, and renames of directories."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks import made_trees
from benchmarks.workload import Cell, Scene, Size, Workload, check

FILE = 4096
LONG = 65536
LOOKED_AT = ("stat", "open", "read")
CLIENTS = (2, 4)
"""So many at once show how much the one that serves them can answer."""
OPEN_AND_RELEASE = 2
READDIR_DIRECTORIES = 10
NAMES = 100
TITLES = {
    "stat": "stat",
    "open": "open, close",
    "read": "open, read 4 KiB, close",
    "readdir": "list a directory of 100",
}


def _build(base: Path, size: Size) -> None:
    for operation in LOOKED_AT:
        for state in ("warm", "cold"):
            made_trees.make_files(base / f"{operation}_base_{state}", size.files, FILE)
    for state in ("warm", "cold"):
        made_trees.make_directories(base / f"readdir_base_{state}", READDIR_DIRECTORIES, NAMES)
    for name in ("overwrite", "rename", "unlink", "chmod"):
        made_trees.make_files(base / f"{name}_base", size.files, FILE)
    made_trees.make_files(base / "append_base", size.files, LONG)
    for name in ("create", "mkdir", "symlink"):
        (base / name).mkdir()


# ---- what only looks


def _looking(operation: str, state: str, is_cold: bool) -> Workload:
    directory = f"{operation}_{state}_{'cold' if is_cold else 'warm'}"

    def run(cell: Cell) -> float:
        count = READDIR_DIRECTORIES if operation == "readdir" else cell.size.files
        if state == "staged":
            _stage_for(cell, operation, directory)
        if is_cold:
            cell.drop_caches()
            return cell.micro(operation, directory, count)
        return cell.micro(operation, directory, count, cell.size.warm_ms)

    return Workload(directory, f"{TITLES[operation]}; {state}, {'cold' if is_cold else 'warm'}", run)


def _at_once(clients: int) -> Workload:
    directory = "open_base_warm"

    def run(cell: Cell) -> float:
        return cell.micro_at_once("open", directory, cell.size.files, clients * cell.size.warm_ms, clients)

    title = f"{TITLES['open']}; base, warm; {clients} clients at once"
    return Workload(f"{clients}_clients", title, run, requests=OPEN_AND_RELEASE)


def _stage_for(cell: Cell, operation: str, directory: str) -> None:
    if operation == "readdir":
        made_trees.make_directories(cell.path(directory), READDIR_DIRECTORIES, NAMES)
    else:
        cell.path(directory).mkdir()
        cell.micro("create", directory, cell.size.files)


# ---- what changes


def _staged_files(cell: Cell, directory: str, operation: str = "create") -> None:
    cell.path(directory).mkdir()
    cell.micro(operation, directory, cell.size.files)


def _change(operation: str, directory: str, cell: Cell) -> float:
    return cell.micro(operation, directory, cell.size.files)


def _change_base(operation: str, directory: str, cell: Cell) -> float:
    cell.warm_base(directory)
    return cell.micro(operation, directory, cell.size.files)


def _change_staged(operation: str, directory: str, cell: Cell) -> float:
    _staged_files(cell, directory, "create-long" if operation == "append" else "create")
    return cell.micro(operation, directory, cell.size.files)


def _changes() -> list[Workload]:
    made: list[tuple[str, str, Callable[[Cell], float]]] = [
        ("create", "create and write 4 KiB", partial(_change, "create", "create")),
        ("mkdir", "mkdir", partial(_change, "mkdir", "mkdir")),
        ("symlink", "symlink", partial(_change, "symlink", "symlink")),
    ]
    for name, operation, title in (
        ("overwrite", "overwrite", "overwrite with O_TRUNC, 4 KiB"),
        ("append", "append", "append 1 byte to 64 KiB"),
        ("rename", "rename", "rename a file"),
        ("chmod", "chmod-600", "chmod"),
        ("unlink", "unlink", "unlink"),
    ):
        made.append((f"{name}_base", f"{title}; base", partial(_change_base, operation, f"{name}_base")))
        made.append((f"{name}_staged", f"{title}; staged", partial(_change_staged, operation, f"{name}_staged")))
    return [Workload(*workload) for workload in made]


def _workloads(size: Size) -> Sequence[Workload]:
    looking = [
        _looking(operation, state, is_cold)
        for operation in TITLES
        for state in ("base", "staged")
        for is_cold in (True, False)
    ]
    return [*looking, *map(_at_once, CLIENTS), *_changes()]


# ---- directories


def _build_directories(base: Path, size: Size) -> None:
    for files in size.directories:
        made_trees.make_files(base / f"of{files}", files, 16)


def _rename_directory(files: int, cell: Cell) -> float:
    """Rename a directory; copy it if a plain rename(2) is refused, like mv(1)."""
    old, new = cell.path(f"of{files}"), cell.path(f"renamed{files}")
    names = set(os.listdir(old))
    start = time.perf_counter()
    try:
        old.rename(new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        cell.run(["mv", "-T", old, new])
    took = time.perf_counter() - start
    check("the old name is gone", holds=not old.exists())
    check("all the files are at the new place", holds=set(os.listdir(new)) == names)
    last = files - 1
    check("with their content", holds=(new / f"f{last}").read_bytes() == made_trees.content(last, 16))
    return took


def _directory_workloads(size: Size) -> Sequence[Workload]:
    return [
        Workload(
            f"rename_directory_{files}", f"rename a base directory of {files:,}", partial(_rename_directory, files)
        )
        for files in size.directories
    ]


SCENES = (
    Scene("metadata", _build, _workloads),
    Scene("directories", _build_directories, _directory_workloads),
)
