"""The benchmarks run, notice what is wrong, and leave nothing behind.  What they measure is not
judged here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.cleaning import mounts_below
from benchmarks.columns import Column, FuseOverlay, KernelOverlay, Plain, View, Yolofs, daemon_of, run_yolofs
from benchmarks.measured import Results
from benchmarks.processor_time import of_process
from benchmarks.running import Mode, Options, Run, compile_micro
from benchmarks.workload import TINY, Cell, WrongResultError
from tests.support.program import wait_until

pytestmark = pytest.mark.mount
ROOT = Path(__file__).parents[2]
MODES = [mode.value for mode in Mode]
OTHERS = ["read_base_warm", "rename_directory", "stat_beside", "write_bytes", "allocate", "copy_large"]
OTHERS += ["2_clients", "make_mounted", "make_12"]
"""Those that are measured besides four of which rows are looked at."""
SMALL = (sys.executable, "-m", "benchmarks", "--size", "tiny", "--rounds", "1")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    path = tmp_path / "scratch"
    path.mkdir()
    return path


@pytest.mark.slow
@pytest.mark.nightly
def test_a_small_run_fills_every_row_in_all_columns(tmp_path: Path, scratch: Path) -> None:
    """In those of them that this machine has."""
    present = {
        column.name for column in (Plain(), KernelOverlay(), FuseOverlay(), Yolofs()) if not column.why_missing()
    }
    json, svg = tmp_path / "out.json", tmp_path / "out.svg"
    names = ["create", "snapshots", "commit", "edit", *OTHERS]
    words: list[str | Path] = [*SMALL, "--only", ",".join(names), "--scratch", scratch, "--trace"]
    words += ["--json", json, "--svg", svg, "--modes", ",".join(MODES)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = Results.load(json)
    assert results.failures == []
    assert present >= {"plain", "yolofs"}
    assert (set(results.columns), present & set(results.missing)) == (present, set())
    for mode in MODES:
        rows = {row.name: row for row in results.rows if row.mode == mode}
        assert set(names) - {"snapshots", "stat_beside", "commit", "rename_directory"} <= set(rows)
        assert rows["snapshots_last"].notes == {"plain": "has no snapshots"}
        assert rows["commit_50"].notes == {"plain": "stages nothing"}
        for row in rows.values():
            left_out = {"overlayfs"} if row.name == "make_12" else set()
            assert set(row.seconds) | set(row.notes) == present - left_out
            assert all(seconds > 0 for found in row.seconds.values() for seconds in found)
        served = present - {"plain", "overlayfs"}
        for name in ("edit", "make_mounted", "make_12"):
            assert set(rows[name].server_s) == served
            assert all(rows[name].serial_share(column) for column in served)
        assert all(rows["2_clients"].requests_a_second(column) for column in served)
        assert rows["create"].requests["create"].count == TINY.files
        assert "create 10" in done.stdout
    assert len(ElementTree.parse(svg).findall(".//{*}circle")) > 4
    assert list(scratch.iterdir()) == []
    again = subprocess.run([*SMALL, "--load", json], cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == done.stdout


@pytest.mark.nightly
def test_the_requests_of_a_mount_that_a_workload_makes_are_counted(tmp_path: Path, scratch: Path) -> None:
    json = tmp_path / "out.json"
    words: list[str | Path] = [*SMALL, "--only", "run_make", "--columns", "yolofs", "--modes", "pinned", "--trace"]
    subprocess.run([*words, "--scratch", scratch, "--json", json], cwd=ROOT, capture_output=True, check=True)
    (row,) = Results.load(json).rows
    assert row.requests["create"].count > TINY.sources  # the objects, the compiler's temporary files


def test_the_time_of_the_daemon_in_whose_project_something_is_run_counts(scratch: Path) -> None:
    base, project = scratch / "project/base", scratch / "run"
    base.mkdir(parents=True)
    project.mkdir()
    with Yolofs().view(base, base.parent) as view:
        assert view.servers is not None
        with view.runner(project, is_settled=False) as run:
            daemon = daemon_of(project)
            counted_s, taken_s = view.servers.seconds(), of_process(daemon)
            run(["sh", "-c", "for k in 1 2 3 4 5 6 7 8 9; do echo $k >file$k; done"])
            taken_s = of_process(daemon) - taken_s
            assert view.servers.seconds() - counted_s >= taken_s > 0
        assert view.servers.seconds() - counted_s >= taken_s


def test_what_is_measured_has_the_rules_that_were_written_for_it(scratch: Path) -> None:
    base = scratch / "project/base"
    base.mkdir(parents=True)
    with Yolofs(setting="mount.spin_us = 0").view(base, scratch):
        told = run_yolofs(Path(sys.executable), base.parent, "trust", "--json")
        rules = run_yolofs(Path(sys.executable), base.parent, "rule", "list", "--all")
    assert json.loads(told)["waiting"] == []
    assert [line.split()[:2] for line in rules.splitlines() if line.startswith("allow")] == [["allow", "/"]]
    assert "built-in" not in rules


@pytest.mark.nightly
def test_the_first_runs_after_a_mount_have_rows_of_their_own(tmp_path: Path, scratch: Path) -> None:
    out = tmp_path / "out.json"
    words: list[str | Path] = [*SMALL, "--only", "run_true", "--columns", "plain,yolofs", "--modes", "free"]
    subprocess.run([*words, "--scratch", scratch, "--json", out], cwd=ROOT, capture_output=True, check=True)
    rows = {row.name: row.seconds for row in Results.load(out).rows}
    cold = {"run_true_first_cold", "run_true_second_cold"} if os.geteuid() == 0 else set()
    assert set(rows) == {"run_true_first_warm", "run_true_second_warm", *cold}
    assert all(set(seconds) == {"plain", "yolofs"} for seconds in rows.values())


def test_an_interrupted_run_takes_everything_away(scratch: Path) -> None:
    words = [*SMALL, "--columns", "plain,yolofs", "--only", "stat_beside", "--scratch", str(scratch)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait_until(lambda: mounts_below(scratch) or process.poll() is not None, "a mount")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said.decode().splitlines()[-1]) == (130, "interrupted; everything is taken away")
    assert mounts_below(scratch) == []
    assert list(scratch.iterdir()) == []


class Leaky(Column):
    """A column that claims to stage, and writes to the base directory."""

    name = "leaky"

    @contextlib.contextmanager
    def view(self, base: Path, scratch: Path) -> Iterator[View]:
        yield View(base)


def run_leaky(scratch: Path, name: str) -> Results:
    results = Results({}, "tiny", 1, ["leaky"], {})
    options = Options(TINY, 1, [Mode.FREE], [Leaky()], lambda each: each == name, scratch, None)
    Run(options, results).carry_out()
    return results


def test_a_column_that_changes_the_base_directory_is_told(scratch: Path) -> None:
    assert run_leaky(scratch, "chmod_base").failures == [
        "round 1, free: chmod_base in leaky: the base directory has changed"
    ]
    assert run_leaky(scratch, "stat_base_warm").failures == []


def test_a_benchmark_that_reads_wrong_content_fails(scratch: Path) -> None:
    cell = Cell(View(scratch), scratch, TINY, scratch, compile_micro(scratch))
    (scratch / "files").mkdir()
    cell.micro("create", "files", 3)
    assert cell.micro("read", "files", 3) > 0
    with (scratch / "files/f2").open("r+b") as file:
        file.seek(4095)
        file.write(b"!")
    with pytest.raises(WrongResultError, match=r"files/f2: .*it holds what was written"):
        cell.micro("read", "files", 3)
    os.unlink(scratch / "files/f1")
    with pytest.raises(WrongResultError, match=r"files/f1: .*No such file"):
        cell.micro("stat", "files", 3)


@pytest.mark.nightly
def test_a_setting_has_a_column_of_its_own(tmp_path: Path, scratch: Path) -> None:
    json, setting = tmp_path / "out.json", "mount.spin_us=0"
    words: list[str | Path] = [*SMALL, "--only", "stat_base_warm", "--modes", "pinned", "--scratch", scratch]
    words += ["--columns", f"plain,{setting}", "--setting", setting, "--json", json]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = Results.load(json)
    assert (results.columns, results.failures) == (["plain", setting], [])
    words = [word if word != setting else "mount.spin_us=-1" for word in words]
    done = subprocess.run(
        [*words, "--columns", "mount.spin_us=-1"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "mount.spin_us: expected a whole number" in done.stderr


def test_a_benchmark_refuses_unknown_rows_and_columns() -> None:
    for words in (["--only", "nonsense"], ["--columns", "nonsense"]):
        done = subprocess.run([*SMALL, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "see --list" in done.stderr or "columns are" in done.stderr
