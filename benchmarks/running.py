"""The run: the same workloads in all columns, interleaved, several rounds.

In each round a scene's views are open side by side, and a workload is carried out in one after the
other, beginning with another one each round: what disturbs the machine for a while disturbs all of
them.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import archives, building, latency, made_trees, metadata, reading_and_writing, session_history
from benchmarks.columns import Column, UnsupportedError, View, Yolofs
from benchmarks.measured import Requests, Results, Row
from benchmarks.workload import Cell, Scene, Size, Workload
from yolofs.fuse.trace import Figure, Trace

SCENES: tuple[Scene, ...] = (
    *metadata.SCENES,
    *reading_and_writing.SCENES,
    *building.SCENES,
    *archives.SCENES,
    *session_history.SCENES,
    *latency.SCENES,
)


class Mode(enum.Enum):
    """Where client and daemon run."""

    FREE = "free"
    """Wherever the scheduler puts them."""
    PINNED = "pinned"
    """Both on one CPU: nobody has to wake another one, and what is computed shows undiluted."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and where."""

    size: Size
    rounds: int
    modes: Sequence[Mode]
    columns: Sequence[Column]
    is_wanted: Callable[[str], bool]
    """Whether a workload of that name is to be carried out."""
    scratch: Path
    trace: Path | None
    """Where the daemon counts its requests, if it is to."""


@dataclass(slots=True)
class Stand:
    """A column's view while it is open."""

    column: Column
    view: View
    base: Path
    """What it shows."""
    fingerprint: str
    """Of :attr:`base`, if it has to stay as it is; else empty."""


@dataclass(slots=True)
class Run:
    """One run; :meth:`carry_out` does it."""

    options: Options
    results: Results
    _micro: Path = field(init=False)
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._micro = compile_micro(self.options.scratch)
        self._numbers = itertools.count()

    def carry_out(self, after_round: Callable[[], None] = lambda: None) -> None:
        """Measure everything; what fails is noted in the results, and the rest goes on."""
        for turn in range(self.options.rounds):
            for mode in self.options.modes:
                with _on_cpus(mode):
                    for scene in SCENES:
                        self._play(scene, mode, turn)
            after_round()

    def _play(self, scene: Scene, mode: Mode, turn: int) -> None:
        workloads = [each for each in scene.workloads(self.options.size) if self.options.is_wanted(each.name)]
        if not workloads:
            return
        base = self.options.scratch / f"base-{scene.name}"
        if not base.exists():
            base.mkdir()
            scene.build(base, self.options.size)
        groups = [workloads] if scene.keeps_base else [[each] for each in workloads]
        for group in groups:
            with contextlib.ExitStack() as stack:
                is_long = all(workload.is_long for workload in group)
                columns = [each for each in self.options.columns if not (is_long and each.is_yardstick)]
                stands = self._open(stack, scene, base, columns)
                for workload in group:
                    for k in range(len(stands)):
                        self._measure(workload, stands[(k + turn) % len(stands)], mode, turn)

    def _open(self, stack: contextlib.ExitStack, scene: Scene, base: Path, columns: Sequence[Column]) -> list[Stand]:
        stands = []
        for column in columns:
            scratch = self._directory(f"{scene.name}-{column.name}")
            stack.callback(made_trees.remove, scratch)
            shown = base
            keeps_base = column.is_staging and scene.keeps_base
            if not keeps_base or column.takes_copy:
                shown = scratch / "base"
                made_trees.copy(base, shown)
                scratch = scratch / "scratch"
                scratch.mkdir()
            fingerprint = made_trees.fingerprint(shown) if keeps_base else ""
            try:
                view = stack.enter_context(column.view(shown, scratch))
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                self._failed(f"{column.name} cannot show the base of {scene.name}: {error}")
                continue
            stands.append(Stand(column, view, shown, fingerprint))
        os.sync()  # what was copied just now is not to be written while others are measured
        return stands

    def _measure(self, workload: Workload, stand: Stand, mode: Mode, turn: int) -> None:
        name = stand.column.name
        where = f"round {turn + 1}, {mode.value}: {workload.name} in {name}"
        scratch = self._directory(workload.name)
        cell = Cell(stand.view, stand.base, self.options.size, scratch, self._micro)
        before = self._figures()
        try:
            found = workload.run(cell)
            worked_s, served_s = cell.meter.seconds()
            if stand.fingerprint and made_trees.fingerprint(stand.base) != stand.fingerprint:
                self._failed(f"{where}: the base directory has changed")
        except UnsupportedError as error:
            for row in workload.rows or ("",):
                self._row(workload, row, mode).notes[name] = str(error)
            print(f"{where}: {error}", file=sys.stderr)
            return
        except Exception as error:  # noqa: BLE001 - one workload that fails must not cost all the others
            self._failed(f"{where}: {type(error).__name__}: {error}")
            return
        finally:
            made_trees.remove(scratch)
        figures = {"": found} if isinstance(found, (int, float)) else found
        if not workload.rows:
            only_row = self._row(workload, "", mode)
            only_row.requests_each = workload.requests
            only_row.work_s.setdefault(name, []).append(worked_s)
            if stand.view.servers is not None:
                only_row.server_s.setdefault(name, []).append(served_s)
        for row, seconds in figures.items():
            self._row(workload, row, mode).seconds.setdefault(name, []).append(seconds)
            if isinstance(stand.column, Yolofs) and stand.column.is_traced:
                self._row(workload, row, mode).requests = _difference(before, self._figures())
            print(f"{where}{row and ', ' + row}: {seconds * 1e6:.1f} µs", file=sys.stderr)

    def _row(self, workload: Workload, row: str, mode: Mode) -> Row:
        if not row:
            return self.results.row(workload.name, workload.title, mode.value)
        return self.results.row(f"{workload.name}_{row}", workload.rows[row], mode.value)

    def _figures(self) -> dict[str, Figure]:
        """Return the figures of the mount and of those that workloads have made beside it."""
        trace = self.options.trace
        totals: dict[str, Figure] = {}
        for path in trace.parent.glob(trace.name + "*") if trace is not None else ():
            for kind, figure in Trace.open(os.fsencode(path)).figures().items():
                known = totals.get(kind, Figure(0, 0))
                totals[kind] = Figure(known.count + figure.count, known.handler_ns + figure.handler_ns)
        return totals

    def _failed(self, message: str) -> None:
        self.results.failures.append(message)
        print(f"FAILED: {message}", file=sys.stderr)

    def _directory(self, name: str) -> Path:
        path = self.options.scratch / f"{next(self._numbers)}-{name}"
        path.mkdir()
        return path


def _difference(before: dict[str, Figure], after: dict[str, Figure]) -> dict[str, Requests]:
    counted = {}
    for kind, figure in after.items():
        count = figure.count - before[kind].count
        if count:
            counted[kind] = Requests(count, (figure.handler_ns - before[kind].handler_ns) * 1e-9)
    return counted


@contextlib.contextmanager
def _on_cpus(mode: Mode) -> Iterator[None]:
    """Bind this process, and all that it starts meanwhile, to the CPUs of a mode."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)} if mode is Mode.PINNED else allowed)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def compile_micro(directory: Path) -> Path:
    """Compile ``micro.c`` into a directory."""
    program = directory / "micro"
    source = Path(__file__).with_name("micro.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program
