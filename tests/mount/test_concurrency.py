"""Eight processes at once, in directories of their own and in shared ones; their logs say what has
to be there.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.mount import busy_worker
from tests.mount.manifest import untouched
from tests.support.program import Program

pytestmark = pytest.mark.mount
COUNT = 8


def describe(path: Path) -> list[Any]:
    """Tell what is at a path, in the words of the workers' logs."""
    st = path.lstat()
    if stat.S_ISDIR(st.st_mode):
        return ["directory"]
    if stat.S_ISLNK(st.st_mode):
        return ["link", os.readlink(path)]
    return ["file", stat.S_IMODE(st.st_mode), hashlib.sha256(path.read_bytes()).hexdigest()]


def check(root: Path, reports: list[dict[str, Any]]) -> None:
    """Compare a tree with what the workers reported."""
    expected = {path: node for report in reports for path, node in report["nodes"].items()}
    places = [root / name for name in [f"own-{n}" for n in range(COUNT)] + list(busy_worker.SHARED)]
    found = {
        str(Path(at, name).relative_to(root)): describe(Path(at, name))
        for place in places
        for at, below, files in os.walk(place)
        for name in below + files
    } | {f"own-{n}": describe(root / f"own-{n}") for n in range(COUNT)}
    assert found == expected

    lines = [line.split()[:2] for line in (root / "shared/log").read_text().splitlines()]
    for number, report in enumerate(reports):
        assert [line[1] for line in lines if line[0] == str(number)] == [str(n) for n in range(report["lines"])]
    assert len(lines) == sum(report["lines"] for report in reports)

    winners = {path: str(number) for number, report in enumerate(reports) for path in report["won"]}
    assert len(winners) == sum(len(report["won"]) for report in reports), "two were the first"
    assert {f"shared/race/{name}" for name in os.listdir(root / "shared/race")} == set(winners)
    for path, winner in winners.items():
        has = os.listdir(root / path) if (root / path).is_dir() else [(root / path).read_text()]
        assert has == [winner], path

    put: dict[str, set[str]] = {}
    for report in reports:
        for path, words in report["put"].items():
            put.setdefault(path, set()).add(words[-1])
    assert {f"shared/put/{name}" for name in os.listdir(root / "shared/put")} == set(put)
    for path, candidates in put.items():
        assert set((root / path).read_text().split()) <= candidates, path


def work(tmp_path: Path, seconds: float, seed: int) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in (*busy_worker.SHARED, "shared/race", "shared/put", "shared/meet"):
        (project / name).mkdir(parents=True)
    (project / "shared/log").write_bytes(b"")
    yolofs = Program(project)
    yolofs.start_session()
    before = untouched(project)
    with yolofs.mounted() as root:
        processes = [
            subprocess.Popen(
                [sys.executable, "-P", busy_worker.__file__, str(number), str(seed), str(seconds)],
                cwd=root,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(COUNT)
        ]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and all(process.poll() is None for process in processes):
            yolofs("snapshot")
            time.sleep(min(0.5, seconds / 10))  # not a wait for anything: the workers are to get on in between
        results = [process.communicate() for process in processes]
        assert [err for _, err in results] == [""] * COUNT
        reports = [json.loads(out) for out, _ in results]
        assert all(report["lines"] for report in reports)
        check(root, reports)
        assert untouched(project) == before
    with yolofs.mounted() as root:
        check(root, reports)
        yolofs("commit", "--yes")
        check(project, reports)


@pytest.mark.parametrize("seed", [1])
def test_the_work_of_eight_processes_is_all_there(tmp_path: Path, seed: int) -> None:
    work(tmp_path, 2, seed)


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [2, 3])
def test_a_minutes_work_of_eight_processes_is_all_there(tmp_path: Path, seed: int) -> None:
    work(tmp_path, 60, seed)
