"""A generated C project under git: add and commit, status, make, grep, and edits with rebuilds and
snapshots.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.columns import UnsupportedError
from benchmarks.workload import Cell, Figures, Scene, Size, Workload, check

HEADERS_IN_SOURCE = 3
EDITED = 10
GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@example.org",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@example.org",
}
MAKEFILE = """\
CC = gcc
CFLAGS = -O0 -MMD -Iinclude
OBJECTS = $(patsubst src/%.c,build/%.o,$(wildcard src/*/*.c))
build/sum: $(OBJECTS)
\t$(CC) -o $@ $^
build/%.o: src/%.c
\t@mkdir -p $(@D)
\t$(CC) $(CFLAGS) -c -o $@ $<
-include $(OBJECTS:.o=.d)
"""
HEADER = """\
#ifndef H{number}_H
#define H{number}_H
/* {filler} */
static inline int from_h{number}(int x) {{ return x + {number}; }}
struct s{number} {{ int a[{length}]; const char *name; }};
#endif
"""
SOURCE = """\
#include <stdio.h>
#include <string.h>
{includes}
/* {filler} */
int value{number}(void) {{ return {value}; }}
int part{number}(int x) {{
    struct s{header} s = {{{{0}}, "name"}};
    for (int i = 0; i < {length}; i++) s.a[i] = from_h{header}(x + i);
    return (int)strlen(s.name) - 4 + s.a[0] - s.a[0];
}}
"""
FIRST_RUNS = {
    "first_warm": "yolofs run -- true, the first after a mount",
    "second_warm": "yolofs run -- true, the second after a mount",
    "first_cold": "yolofs run -- true, the first after a mount, with cold caches",
    "second_cold": "yolofs run -- true, the one after that",
}
FILLER = "what a comment says, at the length that comments have, so that the file has some size " * 12


def source_path(number: int) -> str:
    """Return where the source of that number is."""
    return f"src/part{number % 20}/file{number}.c"


def source(number: int, value: int, size: Size) -> str:
    """Return a source file whose function returns ``value``."""
    used = [(number * 7 + k * 13) % size.headers for k in range(min(HEADERS_IN_SOURCE, size.headers))]
    includes = "\n".join(f'#include "h{header}.h"' for header in sorted(set(used)))
    return SOURCE.format(
        includes=includes, filler=FILLER, number=number, value=value, header=used[0], length=4 + used[0] % 9
    )


def _build(base: Path, size: Size) -> None:
    (base / "include").mkdir()
    for number in range(size.headers):
        text = HEADER.format(number=number, filler=FILLER, length=4 + number % 9)
        (base / f"include/h{number}.h").write_text(text)
    for number in range(size.sources):
        path = base / source_path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source(number, number, size))
    declared = "\n".join(f"int value{n}(void); int part{n}(int);" for n in range(size.sources))
    added = " + ".join(f"value{n}() + part{n}({n})" for n in range(size.sources))
    (base / "src/main").mkdir()
    (base / "src/main/main.c").write_text(
        f'#include <stdio.h>\n{declared}\nint main(void) {{ printf("%d\\n", {added}); return 0; }}\n'
    )
    (base / "Makefile").write_text(MAKEFILE)
    (base / ".gitignore").write_text("build/\n")


# ---- steps; each makes what it needs if --only has left it out


def _git(cell: Cell, *words: str) -> str:
    return cell.run(["git", *words], cwd=cell.view.root, env=GIT_ENV)


def _has_commit(cell: Cell) -> bool:
    return cell.path(".git/refs/heads").is_dir() and any(cell.path(".git/refs/heads").iterdir())


def _add_and_commit(cell: Cell) -> float:
    _git(cell, "init", "--quiet")
    start = time.perf_counter()
    _git(cell, "add", "--all")
    _git(cell, "commit", "--quiet", "--message=all")
    took = time.perf_counter() - start
    check("the repository is sound", holds="missing" not in _git(cell, "fsck", "--full"))
    tracked = len(_git(cell, "ls-files").splitlines())
    check("all files are committed", holds=tracked == cell.size.sources + cell.size.headers + 3)
    return took


def _status(cell: Cell) -> float:
    if not _has_commit(cell):
        _add_and_commit(cell)
    start = time.perf_counter()
    said = _git(cell, "status", "--porcelain")
    took = time.perf_counter() - start
    check("nothing has changed", holds=said == "")
    return took


def _make(cell: Cell) -> float:
    start = time.perf_counter()
    cell.run(["make", "-j2", "--silent"], cwd=cell.view.root)
    return time.perf_counter() - start


def _sum(cell: Cell) -> int:
    return int(cell.run([cell.path("build/sum")]))


def _make_all(sources: int, cell: Cell) -> float:
    shutil.rmtree(cell.path("build"), ignore_errors=True)
    took = _make(cell)
    check("the program adds up", holds=_sum(cell) == sum(range(sources)))
    return took


def _make_mounted(sources: int, cell: Cell) -> float:
    """Make as soon as the view is mounted, when its daemon has much to do besides."""
    cell.view.mount_anew()
    return _make_all(sources, cell)


def _run_make(cell: Cell) -> float:
    """Make in a project of its own, by the command with which agents run things; its start and end
    are timed too.
    """
    project = cell.scratch / "project"
    project.mkdir()
    with cell.meter.aside():
        for name in ("include", "src", "Makefile"):
            subprocess.run(["cp", "-a", cell.path(name), project], check=True)
    with cell.view.runner(project) as run:
        start = time.perf_counter()
        run(["make", "-j2", "--silent"])
        took = time.perf_counter() - start
        check("the program adds up", holds=int(run(["build/sum"])) == sum(range(cell.size.sources)))
    return took


def _first_runs(cell: Cell) -> Figures:
    """Run hardly anything, twice after each of two mounts, by a user who had one before."""
    project = cell.scratch / "project"
    project.mkdir()
    with cell.view.runner(project):
        pass
    figures = {}
    for state in ("warm", "cold"):
        with cell.view.runner(project, is_settled=False) as run:
            if state == "cold":
                try:
                    cell.drop_caches()
                except UnsupportedError:  # only root can
                    break
            for turn in ("first", "second"):
                start = time.perf_counter()
                run(["true"])
                figures[f"{turn}_{state}"] = time.perf_counter() - start
    return figures


def _edit(cell: Cell) -> float:
    """Edit ten files, make, run, snapshot, several times; all of it is timed."""
    size = cell.size
    if not cell.path("build/sum").exists():
        _make_all(size.sources, cell)
    values = dict(enumerate(range(size.sources)))
    is_snapshotting = True
    start = time.perf_counter()
    for turn in range(size.edits):
        for k in range(min(EDITED, size.sources)):
            number = (turn * EDITED + k) % size.sources
            values[number] += 1000
            cell.path(source_path(number)).write_text(source(number, values[number], size))
        _make(cell)
        check("the program adds up after an edit", holds=_sum(cell) == sum(values.values()))
        if is_snapshotting:
            try:
                cell.view.snapshot()
            except UnsupportedError:  # a plain directory has none: it is measured without
                is_snapshotting = False
    return (time.perf_counter() - start) / size.edits


def _grep(is_cold: bool, cell: Cell) -> float:
    words: list[str | Path] = ["grep", "-r", "--count", "static inline int", cell.path("include"), cell.path("src")]
    if is_cold:
        cell.drop_caches()
    else:
        _search(cell, words)
    start = time.perf_counter()
    found = _search(cell, words)
    took = time.perf_counter() - start
    check("grep finds every header", holds=found == cell.size.headers)
    return took


def _search(cell: Cell, words: list[str | Path]) -> int:
    return sum(line.endswith(":1") for line in cell.run(words).splitlines())


def _workloads(size: Size) -> Sequence[Workload]:
    project = f"C project of {size.sources} sources and {size.headers} headers"
    return [
        Workload("grep_cold", f"grep -r, cold; {project}", lambda cell: _grep(True, cell)),
        Workload("grep_warm", f"grep -r, warm; {project}", lambda cell: _grep(False, cell)),
        Workload("git_commit", f"git add, git commit; {project}", _add_and_commit),
        Workload("git_status", f"git status; {project}", _status),
        Workload("make", f"make -j2; {project}", partial(_make_all, size.sources)),
        Workload("make_mounted", f"make -j2, right after a mount; {project}", partial(_make_mounted, size.sources)),
        Workload("run_make", f"yolofs run -- make -j2, of native make; {project}", _run_make),
        Workload("run_true", "yolofs run -- true", _first_runs, FIRST_RUNS),
        Workload("edit", f"edit 10 files, make, snapshot; {project}", _edit),
    ]


def _with_many(size: Size) -> Size:
    return dataclasses.replace(size, sources=size.many_sources)


def _build_many(base: Path, size: Size) -> None:
    _build(base, _with_many(size))


def _workloads_of_many(size: Size) -> Sequence[Workload]:
    many = size.many_sources
    title = f"make -j2; C project of {many} sources"
    return [Workload(f"make_{many}", title, partial(_make_all, many), is_long=True)]


SCENES = (Scene("building", _build, _workloads), Scene("building_many", _build_many, _workloads_of_many))
