"""The benchmarks that need no mount run, at a small size; what they measure is not judged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINE = re.compile(r".{62} +[0-9.]+ [nµm]?s +\[[0-9.]+ [nµm]?s to [0-9.]+ [nµm]?s\]")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["benchmarks.core", "--rounds", "1", "--entries", "2000", "--files", "30"], 21),
        (["benchmarks.answering", "--rounds", "1", "--files", "20"], 10),
    ],
)
def test_each_line_that_a_benchmark_prints_has_a_figure(words: list[str], lines: int) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.splitlines()
    assert len(printed) == lines
    assert all(LINE.fullmatch(line) for line in printed), done.stdout


def test_the_benchmark_of_scale_runs_on_a_small_session() -> None:
    words = [sys.executable, "-m", "benchmarks.scale", "--records", "2000", "--changes", "200", "--files", "20"]
    words += ["--generations", "20"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "journal: 2000 records about 200 paths" in done.stdout
    assert "mv of a directory of 20 files" in done.stdout
    assert "20 snapshots: " in done.stdout
    assert re.search(r"memory: \d+ bytes for a known file, \d+ more once it is staged", done.stdout)
