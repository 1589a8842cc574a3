"""``yolofs watch`` with nobody at it: all is allowed, all denied, or a command answers."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import READ_MANY, Reader, reader, settings
from tests.support.fault_points import points
from tests.support.program import DEADLINE_S, Program, can_read, wait_until
from tests.support.watching import alone, is_denied, waiting, watched_project

pytestmark = pytest.mark.mount


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return watched_project(tmp_path_factory.mktemp("w") / "p")  # short enough for one line


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def test_watch_allows_or_denies_every_ask_by_itself(yolofs: Program, view: Path) -> None:
    with alone(yolofs, "--allow-all") as process:
        paths = [view / f"secret/deep/{number}" for number in range(20)]
        assert Reader(*paths, script=READ_MANY).end() == ("all read\n", "")
        assert process.stdout is not None
        lines = [process.stdout.readline().decode().rstrip("\n") for _ in range(20)]
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 130
        assert process.stdout.read() == b""
        assert re.fullmatch(rf"allow  \d+  read {re.escape(str(yolofs.project))}/secret/deep/\d+", lines[0])
    with alone(yolofs, "--deny-all"):
        assert is_denied(Reader(view / "secret/a").end())


@pytest.mark.parametrize("options", [["--deny-all"], ["--answer-with", "echo deny"]])
def test_the_end_of_the_mount_ends_the_watch(yolofs: Program, options: list[str]) -> None:
    with yolofs.mounted() as view, alone(yolofs, *options) as process:
        assert is_denied(Reader(view / "secret/a").end())
        yolofs("unmount")
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b"the mount has ended\n"


def test_a_command_answers_asks_that_it_is_given_as_json(yolofs: Program, view: Path, tmp_path: Path) -> None:
    script = tmp_path / "decide"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "ask = json.load(sys.stdin)\n"
        f"json.dump(ask, open({str(tmp_path / 'seen')!r}, 'w'))\n"
        "if ask['path'].endswith('/a'): print('allow')\n"
        "elif ask['path'].endswith('/b'): print('deny')\n"
        "else: print(json.dumps({'decision': 'allow', 'lifetime': 'session', "
        "'scope': ask['path'].rpartition('/')[0], 'state': 'read-only'}))\n"
    )
    script.chmod(0o755)
    with alone(yolofs, "--answer-with", shlex.quote(str(script))):
        assert Reader(view / "secret/a").end()[0]
        seen = json.loads((tmp_path / "seen").read_text())
        assert (seen["operation"], seen["path"]) == ("read", str(yolofs.project / "secret/a"))
        assert is_denied(Reader(view / "secret/b").end())
        assert Reader(view / "secret/deep/1").end() == ("1\n", "")
    assert (view / "secret/deep/2").read_text() == "2\n"


FAILING = ["exit 3", "echo maybe", 'echo \'{"decision": "allow"\'', "kill -9 $$", "/does/not/exist", "yes", ":"]


@pytest.mark.parametrize(
    ("command", "default"), points(list(itertools.product(FAILING, ["deny", "allow"])), "a command that fails", some=4)
)
def test_an_ask_gets_the_default_if_the_command_fails(yolofs: Program, command: str, default: str) -> None:
    settings(yolofs, ask_default=default)
    with yolofs.mounted() as view, alone(yolofs, "--answer-with", command) as process:
        out, error = Reader(view / "secret/a").end()
        assert "first line" in out if default == "allow" else "Permission denied" in error
        process.terminate()
        assert process.stderr is not None
        assert b"ask 1 gets the default, as the command failed" in process.stderr.read()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "it ended with exit code 3"),
        ("kill -9 $$", "it was ended by SIGKILL"),
        ("yes allow", "it says more than 65536 bytes"),
    ],
)
def test_watch_says_why_a_command_failed(yolofs: Program, view: Path, command: str, why: str) -> None:
    with alone(yolofs, "--answer-with", command) as process:
        Reader(view / "secret/a").end()
        process.terminate()
        assert process.stderr is not None
        assert f"ask 1 gets the default, as the command failed: {why}\n" in process.stderr.read().decode()
    assert "denied by yolofs watch, as its command failed" in yolofs("log", "-v").out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_end_of_watch_ends_the_commands_that_it_runs_and_answers_nothing(
    yolofs: Program, view: Path, tmp_path: Path, number: signal.Signals
) -> None:
    pid = tmp_path / "pid"
    with (
        alone(yolofs, "--answer-with", f"echo $$ > {pid}; exec >&-; exec sleep 1000") as process,
        reader(view / "secret/a") as blocked,
    ):
        wait_until(lambda: pid.exists() and pid.read_text(), "started")
        process.send_signal(number)
        assert process.wait(DEADLINE_S) == 130
        wait_until(lambda: not Path(f"/proc/{int(pid.read_text())}").exists(), "killed")
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert waiting(yolofs) == 1
        assert blocked.process.poll() is None


def test_a_signal_just_before_watch_waits_for_its_commands_ends_it(yolofs: Program, view: Path, tmp_path: Path) -> None:
    """As one that another thread gets: the main thread's waiting is not interrupted by it."""
    pid = tmp_path / "pid"
    with (
        alone(yolofs, "--answer-with", f"echo $$ > {pid}; exec sleep 1000") as process,
        reader(view / "secret/a"),
    ):
        wait_until(lambda: pid.exists() and pid.read_text(), "started")
        thread = next(int(name) for name in os.listdir(f"/proc/{process.pid}/task") if int(name) != process.pid)
        assert ctypes.CDLL(None, use_errno=True).tgkill(process.pid, thread, signal.SIGTERM) == 0
        assert process.wait(DEADLINE_S) == 130


def test_a_process_that_a_command_leaves_running_does_not_delay_the_answer(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    command = f"setsid sh -c 'echo $$ > {left}; exec sleep 1000' & echo allow"
    try:
        with alone(yolofs, "--answer-with", command) as process:
            assert Reader(view / "secret/a").end()[0]
            wait_until(lambda: left.exists() and left.read_text(), "left running")
            process.terminate()
            assert process.wait(DEADLINE_S) == 130
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


def test_a_command_that_hangs_is_killed_when_the_time_is_up(yolofs: Program, tmp_path: Path) -> None:
    settings(yolofs, ask_timeout=5)
    command = f"grep -q /secret/b && exec echo allow; echo $$ > {tmp_path}/pid; exec sleep 1000"
    with yolofs.mounted() as view, alone(yolofs, "--answer-with", command) as process:
        wait_until(lambda: can_read(view / "secret/b"), "it listens")  # else the time could be up before
        assert is_denied(Reader(view / "secret/a").end())
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "killed")
        number = yolofs("log", "--json").json["records"][-1]["id"]
        expected = f"ask {number} ended (not answered in time) before its command answered; the command was killed\n"
        assert process.stderr is not None
        while expected not in (said := process.stderr.readline().decode()):
            assert said
