"""How the tests are spread over the processes of pytest-xdist, so that none is left with a long one
at the end.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

LONG = ("tests/property/", "tests/crash/")
"""Where tests take seconds each; elsewhere such a test has the marker ``slow``."""


def long_ones_first(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Return tests in the order in which ``--dist worksteal`` deals them out: a stretch for each
    process, long ones first.

    The tests of one file stay together, as they share what is set up for them.
    """
    by_file = [list(group) for _, group in itertools.groupby(items, lambda item: item.nodeid.partition("::")[0])]
    long = [file for file in by_file if any(map(_is_long, file))]
    short = [item for file in by_file if not any(map(_is_long, file)) for item in file]
    shares = [[item for file in long[number::processes] for item in file] for number in range(processes)]
    begun = 0
    found = []
    for number, share in enumerate(shares, 1):
        end = max(begun, len(items) * number // processes - sum(map(len, shares[:number])))
        found += [*share, *short[begun:end]]
        begun = end
    return [*found, *short[begun:]]


def _is_long(item: pytest.Item) -> bool:
    return item.nodeid.startswith(LONG) or item.get_closest_marker("slow") is not None


def compile_tests(root: Path) -> None:
    """Have pytest write the bytecode of all tests, if it has not yet, as in a fresh checkout."""
    if sys.dont_write_bytecode or list(root.glob("tests/unit/__pycache__/test_paths.*-pytest-*.pyc")):
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options = ([str(root / "tests/unit")], [str(root / "tests"), f"--ignore={root / 'tests/unit'}"])
    started = [
        subprocess.Popen([*command, *which], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for which in options
    ]
    for process in started:
        process.wait()  # what is wrong with the tests, their own collection tells
