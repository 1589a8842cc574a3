"""Whole trees: unpack, copy, find, compile and remove them."""

from __future__ import annotations

import shutil
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import made_trees
from benchmarks.workload import Cell, Scene, Size, Workload, check

FILES_IN_DIRECTORY = 50
FILE_BYTES = 2048


def _make_tree(directory: Path, files: int) -> None:
    for first in range(0, files, FILES_IN_DIRECTORY):
        part = directory / f"part{first // FILES_IN_DIRECTORY}"
        part.mkdir(parents=True)
        for number in range(first, min(first + FILES_IN_DIRECTORY, files)):
            (part / f"f{number}").write_bytes(made_trees.content(number, FILE_BYTES))


def _build(base: Path, size: Size) -> None:
    _make_tree(base / "tree", size.tree_files)
    _make_tree(base / "doomed", size.tree_files)
    library = Path(tarfile.__file__).parent
    modules = sorted(path for path in library.glob("*.py") if path.stat().st_size < 60_000)
    (base / "modules").mkdir()
    for number in range(size.modules):
        source = modules[number % len(modules)]
        shutil.copyfile(source, base / f"modules/{source.stem}{number}.py")


def _check_tree(directory: Path, cell: Cell) -> None:
    expected = {
        f"part{number // FILES_IN_DIRECTORY}/f{number}": made_trees.content(number, FILE_BYTES)
        for number in range(cell.size.tree_files)
    }
    found = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("f*")}
    check("all files are there with their content", holds=found == expected)


def _untar(cell: Cell) -> float:
    archive = cell.scratch / "tree.tar"
    cell.run(["tar", "-C", cell.base, "-cf", archive, "tree"])
    cell.path("unpacked").mkdir()
    start = time.perf_counter()
    cell.run(["tar", "-C", cell.path("unpacked"), "-xf", archive])
    took = time.perf_counter() - start
    archive.unlink()
    _check_tree(cell.path("unpacked/tree"), cell)
    return took


def _copy(cell: Cell) -> float:
    cell.warm_base("tree")
    start = time.perf_counter()
    cell.run(["cp", "-r", cell.path("tree"), cell.path("copied")])
    took = time.perf_counter() - start
    _check_tree(cell.path("copied"), cell)
    return took


def _find(is_cold: bool, cell: Cell) -> float:
    words: list[str | Path] = ["find", cell.path("tree"), "-type", "f", "-size", "+1"]
    if is_cold:
        cell.drop_caches()
    else:
        cell.run(words)
    start = time.perf_counter()
    found = cell.run(words)
    took = time.perf_counter() - start
    check("find finds every file", holds=len(found.splitlines()) == cell.size.tree_files)
    return took


def _remove(directory: str, cell: Cell) -> float:
    if not cell.path(directory).exists():
        cell.run(["cp", "-r", cell.path("tree"), cell.path(directory)])
    cell.warm_base(directory)
    start = time.perf_counter()
    cell.run(["rm", "-rf", cell.path(directory)])
    took = time.perf_counter() - start
    check("it is gone", holds=not cell.path(directory).exists())
    return took


def _compile(cell: Cell) -> float:
    cell.warm_base("modules")
    start = time.perf_counter()
    cell.run([sys.executable, "-m", "compileall", "-q", cell.path("modules")])
    took = time.perf_counter() - start
    made = list(cell.path("modules/__pycache__").iterdir())
    check("every module is compiled", holds=len(made) == cell.size.modules)
    return took


def _workloads(size: Size) -> Sequence[Workload]:
    tree = f"{size.tree_files:,} files"
    return [
        Workload("find_cold", f"find, cold; {tree}", lambda cell: _find(True, cell)),
        Workload("find_warm", f"find, warm; {tree}", lambda cell: _find(False, cell)),
        Workload("untar", f"untar; {tree}", _untar),
        Workload("copy", f"cp -r; {tree} of base", _copy),
        Workload("remove_base", f"rm -rf; {tree} of base", lambda cell: _remove("doomed", cell)),
        Workload("remove_staged", f"rm -rf; {tree}, staged", lambda cell: _remove("copied", cell)),
        Workload("compile", f"python -m compileall; {size.modules} modules", _compile),
    ]


SCENES = (Scene("archives", _build, _workloads),)
