"""Other commands beside a commit that goes on or is stopped: they name it, call nothing
interrupted, and end when told to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.test_commit_signals import SIGNALLED
from tests.support.every_kind_of_step import prepare
from tests.support.fork_server import LIMITS
from tests.support.looks import exactly, tree_of
from tests.support.program import Done, Program, run_program, wait_until
from tests.support.started import start
from yolofs.system.processes import is_stopped

pytestmark = [pytest.mark.timeout(60), pytest.mark.mount]
AT_ONCE_S = 15.0
"""So long a command may take to end; the daemon would send it away after 30 s."""
LOOKING = (
    ("status",),
    ("status", "--json"),
    ("log",),
    ("commits",),
    ("diff",),
    ("timeline",),
    ("blame", "new"),
    ("ls", "base:."),
    ("hunks",),
    ("feedback",),
    ("unmount",),
    ("doctor",),
)
REFUSED = (
    ("commit", "--yes"),
    ("commit", "--dry-run"),
    ("commit", "--continue"),
    ("commit", "--roll-back"),
    ("commit", "--discard-interrupted", "--yes"),
    ("undo", "--yes"),
    ("undo", "--dry-run"),
    ("gc",),
    ("gc", "--dry-run"),
    ("gc", "--generations"),
    ("abort", "--yes"),
    ("snapshot",),
    ("travel", "0"),
    ("restore", "new"),
    ("mount",),
    ("run", "true"),
)


@contextlib.contextmanager
def stopped_commit(project: Path) -> Iterator[int]:
    """Give the process of a commit that is stopped half way; it goes on at the end, and is waited
    for.
    """
    where = ["yolofs.commit.apply.steps:Steps.do", "12", str(int(signal.SIGSTOP))]
    command = [sys.executable, "-P", "-W", "error", "-c", SIGNALLED, *where, "commit", "--yes"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is not None or is_stopped(process.pid), "the commit is half done")
            yield process.pid
        finally:
            process.send_signal(signal.SIGCONT)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert b"commit 1 done" in said


def test_whoever_looks_is_told_that_a_commit_goes_on_and_not_that_one_was_interrupted(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    with stopped_commit(project) as pid:
        for words in LOOKING:
            done = run_program(words, project)
            assert "interrupted" not in done.stdout.replace('"interrupted": null', ""), words
            assert "interrupted" not in done.stderr, words
            assert f"process {pid} (yolofs commit) is at work on this session" in done.stdout + done.stderr, words
            assert f"kill -CONT {pid}" in done.stdout + done.stderr, words
        assert "interrupted" not in Program(project)("sessions").out
    assert tree_of(project) == expected


def test_a_command_that_would_change_something_names_the_commit_that_holds_the_session(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    with stopped_commit(project) as pid:
        half = exactly(project)
        for words in REFUSED:
            said = Program(project)(*words, code=5).err
            assert f"process {pid} (yolofs commit) is at work on this session, and was stopped" in said, words
            assert f"hint: kill -CONT {pid} lets it go on" in said, words
            assert "interrupted" not in said, words
        assert exactly(project) == half
    assert tree_of(project) == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
def test_a_command_that_waits_for_its_turn_ends_when_it_is_told_to(tmp_path: Path, number: signal.Signals) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    program = Program(project)
    with program.mounted(), stopped_commit(project):
        for words in (("undo", "--yes"), ("commit", "--yes"), ("abort", "--yes"), ("gc",)):
            for stdout in (subprocess.PIPE, subprocess.DEVNULL):
                with start(words, project, stdout=stdout) as waiting:
                    wait_until(lambda: _waits(waiting.pid), f"{words} waits")
                    waiting.send_signal(number)
                    try:
                        assert waiting.wait(AT_ONCE_S) in (128 + number, -number), words
                    finally:
                        waiting.kill()
    assert tree_of(project) == expected


def test_a_command_that_has_waited_long_names_the_process_that_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    prepare(project)
    program = Program(project)
    monkeypatch.setenv(LIMITS, "yolofs.daemon.control:BUSY_WAIT_S=1")
    with program.mounted(), stopped_commit(project) as pid:
        done: Done = program("status", code=5)
        assert "for more than 1 seconds now" in done.err
        assert f"process {pid} (yolofs commit) is at work on this session, and was stopped" in done.err
        assert f"hint: kill -CONT {pid} lets it go on" in done.err


def _waits(pid: int) -> bool:
    """Tell whether a process has asked the daemon for something, and waits."""
    try:
        waits_in = Path(f"/proc/{pid}/wchan").read_text()
        fds = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(fd.startswith("socket:") for fd in fds) and waits_in not in ("", "0")
