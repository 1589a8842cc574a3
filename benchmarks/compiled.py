"""What the compiled build saves of each request (``docs/design/compiled.md``), in CPU time.

    scripts/install-compiled.sh build/compiled
    python -m benchmarks.compiled build/compiled/bin/python [--rounds 5]

The requests are those of :mod:`benchmarks.answering`.  In each round this interpreter and the other
one go through them in turn; the least of all rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEAST_S = 0.3
"""So long one kind of request is repeated: the kernel splits user and system time by ticks of some
milliseconds.
"""
WORK = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks.compiled import work; work()"

Costs = dict[str, tuple[float, float]]
"""Seconds of user time, and of user and system time, for one request of each kind."""


def work() -> None:
    """Print, as JSON, whether the core is compiled, and the costs."""
    # Only here: the interpreter that compares need not have the other one's build.
    from benchmarks.answering import requests
    from yolofs.compiled import is_compiled

    costs: Costs = {}
    with requests(files=500) as asked:
        for line in asked.lines():
            line.action()
            count, user, both = 0, 0.0, 0.0
            while both < LEAST_S:
                before = resource.getrusage(resource.RUSAGE_SELF)
                line.action()
                after = resource.getrusage(resource.RUSAGE_SELF)
                count += line.count
                user += after.ru_utime - before.ru_utime
                both += after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            costs[line.title] = user / count, both / count
    print(json.dumps([is_compiled(), costs]))


def measure(python: str) -> tuple[bool, Costs]:
    """Have an interpreter do the work."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([python, "-P", "-c", WORK], env=environment, check=True, stdout=subprocess.PIPE)
    is_compiled, costs = json.loads(done.stdout)
    return is_compiled, {title: (user, both) for title, (user, both) in costs.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description="What the compiled build saves.")
    parser.add_argument("python", help="the interpreter of a venv that has the compiled build")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    best: dict[bool, Costs] = {False: {}, True: {}}
    for _ in range(options.rounds):
        for python, wanted in ((sys.executable, False), (options.python, True)):
            is_compiled, costs = measure(python)
            if is_compiled is not wanted:
                sys.exit(f"{python} has {'a' if is_compiled else 'no'} compiled core")
            for title, (user, both) in costs.items():
                least = best[wanted].get(title, (user, both))
                best[wanted][title] = min(least[0], user), min(least[1], both)
    print("| request | user time, as it is; compiled | with the system's | ratio of user time |\n|---|---|---|---|")
    for title, (user, both) in best[False].items():
        less, less_both = best[True][title]
        times = f"{user * 1e6:.1f}; {less * 1e6:.1f} µs | {both * 1e6:.1f}; {less_both * 1e6:.1f} µs"
        print(f"| {title} | {times} | {less / user:.2f} |")


if __name__ == "__main__":
    main()
