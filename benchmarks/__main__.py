"""``python -m benchmarks``: yolofs beside the plain directory and its peers."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import machine, picture, result_tables
from benchmarks.cleaning import scratch_directory
from benchmarks.columns import Column, FuseOverlay, KernelOverlay, Plain, Yolofs
from benchmarks.measured import Results
from benchmarks.pass_throughs import yardsticks
from benchmarks.running import SCENES, Mode, Options, Run
from benchmarks.workload import FULL, QUICK, TINY, Size

YARDSTICKS = "YOLOFS_BENCH_YARDSTICKS"
SIZES = {size.name: size for size in (TINY, QUICK, FULL)}
INTERRUPTED = 130


def main() -> int:
    """Run, print, write; return the exit code: 1 if any result was wrong."""
    arguments = _parse()
    size = SIZES[arguments.size]
    if arguments.list:
        for name in _names(size):
            print(name)
        return 0
    try:
        results = Results.load(arguments.load) if arguments.load else _measure(arguments, size)
    except KeyboardInterrupt:
        print("interrupted; everything is taken away", file=sys.stderr)
        return INTERRUPTED
    print(result_tables.as_text(results))
    if arguments.svg:
        arguments.svg.write_text(picture.draw(results, arguments.modes[0].value), encoding="utf-8")
    if arguments.markdown:
        arguments.markdown.write_text(result_tables.as_markdown(results), encoding="utf-8")
    return 1 if results.failures else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="quick", help="how much is done (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often (%(default)s)")
    parser.add_argument(
        "--only", type=_words, default=(), metavar="NAME,…", help="workloads, by the beginning of a name"
    )
    parser.add_argument("--columns", type=_words, default=(), metavar="NAME,…", help="columns, by name")
    parser.add_argument(
        "--modes", type=_modes, default=list(Mode), metavar="MODE,…", help="free, pinned to one CPU (both)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the first mode")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the ratios as a table")
    parser.add_argument("--load", type=Path, metavar="FILE", help="measure nothing, show the figures in a JSON file")
    parser.add_argument(
        "--compiled", type=Path, metavar="PYTHON", help="a further column: yolofs as it is installed for PYTHON"
    )
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a further column, called that: yolofs with a setting, as in mount.spin_us=0; several times for several",
    )
    parser.add_argument("--trace", action="store_true", help="count yolofs' requests; that makes it slower")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where to work; must not be tmpfs for OverlayFS")
    parser.add_argument(
        "--yardsticks",
        type=Path,
        metavar="DIR",
        default=os.environ.get(YARDSTICKS),
        help=f"further columns, from floor.c and pyfloor.py there (default: the variable {YARDSTICKS})",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the workloads, and end")
    return parser.parse_args()


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _modes(text: str) -> list[Mode]:
    return [Mode(word) for word in text.split(",")]


def _names(size: Size) -> list[str]:
    return [workload.name for scene in SCENES for workload in scene.workloads(size)]


def _measure(arguments: argparse.Namespace, size: Size) -> Results:
    with scratch_directory(arguments.scratch) as scratch:
        return _run(arguments, size, scratch)


def _run(arguments: argparse.Namespace, size: Size, scratch: Path) -> Results:
    only: tuple[str, ...] = arguments.only
    unknown = [word for word in only if not any(name.startswith(word) for name in _names(size))]
    if unknown:
        raise SystemExit(f"no workload begins with {', '.join(unknown)}; see --list")
    trace = scratch / "trace" if arguments.trace else None
    columns: list[Column] = [Plain(), KernelOverlay(), FuseOverlay(), Yolofs(trace)]
    if arguments.compiled:
        columns.append(Yolofs(name="yolofs-compiled", python=arguments.compiled))
    columns += [Yolofs(name=setting, setting=setting) for setting in arguments.setting]
    if arguments.yardsticks:
        columns += yardsticks(Path(arguments.yardsticks), scratch)
    wanted = [column for column in columns if not arguments.columns or column.name in arguments.columns]
    if len(wanted) < len(arguments.columns):
        raise SystemExit(f"columns are {', '.join(column.name for column in columns)}")
    missing = {column.name: why for column in wanted if (why := column.why_missing())}
    present = [column for column in wanted if column.name not in missing]
    for name, why in missing.items():
        print(f"missing: {name}: {why}", file=sys.stderr)
    names = [column.name for column in present]
    results = Results(machine.describe(scratch), size.name, arguments.rounds, names, missing)

    def is_wanted(name: str) -> bool:
        return not only or name.startswith(only)

    def save() -> None:
        results.machine["load at the end"] = machine.load()
        if arguments.json:  # after each round, should a later one be interrupted
            results.save(arguments.json)

    options = Options(size, arguments.rounds, arguments.modes, present, is_wanted, scratch, trace)
    Run(options, results).carry_out(save)
    return results


if __name__ == "__main__":
    sys.exit(main())
