"""The watch over tests: it finds what a test left running or mounted, and nothing that is not its
own.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tests.support.leftovers
from tests.support.idle_fork import idle_fork
from tests.support.leftovers import Leftovers, Traces, all_processes


@pytest.fixture
def own(tmp_path: Path) -> Traces:
    return Traces(mark=f"mark-of-{os.getpid()}", directories=(str(tmp_path),), variable="YOLOFS_LEFTOVERS_TEST")


def start_sleeper(mark: str) -> subprocess.Popen[bytes]:
    """Start a process with ``mark`` in its environment and wait until it runs."""
    environment = {**os.environ, "YOLOFS_LEFTOVERS_TEST": mark}
    program = "import sys; print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_process_with_the_mark_is_found_and_killed(own: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tests.support.leftovers, "GRACE_S", 0.0)
    with start_sleeper(own.mark) as process:
        left = own.find_after_grace(Leftovers())
        assert {pid for pid, _ in left.processes} == {process.pid}
        assert f"process {process.pid} (" in str(left)
        own.clear(left)
        assert process.wait() == -9
    assert not own.find()


def test_a_process_with_another_mark_is_not_ours(own: Traces) -> None:
    with start_sleeper("somebody-elses") as process:
        assert not own.find()
        assert process.pid in own.others  # and is not looked at again
        process.kill()


def test_a_fork_of_the_tests_is_looked_at_again(own: Traces) -> None:
    """It may become a program with a mark."""
    with idle_fork() as pid:
        assert not own.find()
        assert pid not in own.others


def test_what_was_there_before_the_run_is_no_leftover(own: Traces) -> None:
    with start_sleeper(own.mark) as process:
        assert process.pid in all_processes()
        assert not dataclasses.replace(own, others=all_processes()).find()
        assert dataclasses.replace(own, others=all_processes() - {process.pid}).find()
        process.kill()


def test_the_number_of_a_process_that_has_ended_is_looked_at_again(own: Traces) -> None:
    with start_sleeper("somebody-elses") as process:
        own.others.update(all_processes())
        process.kill()
    assert not own.find()
    assert process.pid not in own.others


def test_a_process_from_before_a_test_is_not_left_behind_by_it(own: Traces) -> None:
    with start_sleeper(own.mark) as process:
        assert not own.find_after_grace(own.find())
        process.kill()


def test_a_process_that_runs_another_program_since_is_the_same_one(
    own: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tests.support.leftovers, "GRACE_S", 0.0)
    environment = {**os.environ, own.variable: own.mark}
    script = "echo; read line; exec sh -c 'echo; read line' another"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = own.find()
        process.stdin.write(b"\n")
        process.stdout.readline()
        assert own.find() != before
        assert not own.find_after_grace(before)
        process.kill()


def test_only_fuse_mounts_below_the_own_directories_count(
    own: Traces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = [
        f"1 1 0:1 / {place} rw - {kind} none rw".encode()
        for place, kind in [
            (f"{tmp_path}/a\\040b", "fuse.yolofs"),
            (f"{tmp_path}/tmpfs", "tmpfs"),
            (f"{tmp_path}-of-another/c", "fuse.yolofs"),
            ("/proc", "proc"),
        ]
    ]
    read = tests.support.leftovers._read
    monkeypatch.setattr(
        tests.support.leftovers,
        "_read",
        lambda path: b"\n".join(table) if path == "/proc/self/mountinfo" else read(path),
    )
    assert own.find().mounts == {f"{tmp_path}/a b"}
