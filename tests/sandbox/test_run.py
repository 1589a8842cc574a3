"""``yolofs run``: the command's own streams and exit code, and what is said afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import COMMAND, Program, run_with_input, wait_until
from tests.support.required import is_required
from tests.support.started import start
from yolofs.errors import SandboxError
from yolofs.registry.runtime import AGENT_SOCKET_NAME
from yolofs.sandbox.confine import StartingPlace, confined
from yolofs.system.processes import pidfd_of

pytestmark = pytest.mark.mount


def run(yolofs: Program, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command in the sandbox, with bytes in and out."""
    return run_with_input(["run", *words], yolofs.project, stdin)


def run_notes(yolofs: Program) -> list[dict[str, Any]]:
    """Return what the audit has about runs."""
    notes = map(json.loads, (yolofs.session / "audit.jsonl").read_text().splitlines())
    return [note for note in notes if note["kind"] in ("run", "run-end")]


def test_the_streams_are_the_commands_own(yolofs: Program) -> None:
    done = run(yolofs, "--", "sh", "-c", "cat; printf err >&2", stdin=b"\0in\xff")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\0in\xff", b"err")


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9)]
)
def test_the_exit_code_is_passed_on(yolofs: Program, script: str, code: int) -> None:
    assert run(yolofs, "sh", "-c", script).returncode == code


def test_a_command_that_is_not_there_is_127_and_one_that_is_no_program_126(yolofs: Program) -> None:
    assert "no such command" in yolofs.refused("run", "no-such-command", code=127)
    assert "/etc/passwd is not executable" in yolofs.refused("run", "/etc/passwd", code=126)


@pytest.mark.parametrize(
    ("word", "code", "hint"),
    [
        ("no-such-command", 127, "sh -c"),
        ("/etc/passwd", 126, "yolofs run -- chmod +x /etc/passwd"),
        ("/etc", 126, "name a program in it"),
        ("./no-interpreter", 127, "yolofs run -- head -n 1 ./no-interpreter"),
        ("./no-program", 126, "name the program that reads it"),
        ("./denied", 126, "yolofs rule explain ./denied"),
    ],
)
@pytest.mark.some(3)
def test_a_command_that_cannot_be_started_is_told_with_what_to_do(
    yolofs: Program, word: str, code: int, hint: str
) -> None:
    for name, content in (
        ("no-interpreter", b"#!/no/such/program\n"),
        ("no-program", b"\x7fELF"),
        ("denied", b"#!/bin/sh\n"),
    ):
        (yolofs.project / name).write_bytes(content)
        (yolofs.project / name).chmod(0o755)
    yolofs("rule", "deny", "denied")
    assert hint in yolofs.refused("run", word, code=code)
    assert hint in yolofs("run", *COMMAND, "run", word, code=code).err  # in a sandbox already


def test_of_a_command_that_is_nowhere_no_rule_is_named(yolofs: Program) -> None:
    message = yolofs.refused("run", "/no such/command", code=127)
    assert "hint: look what there is: yolofs run -- ls '/no such'" in message
    (yolofs.project / "hidden").write_text("#!/bin/sh\n")
    yolofs("rule", "hidden", "hidden")
    assert "yolofs rule explain ./hidden" in yolofs.refused("run", "./hidden", code=127)


def test_a_command_of_path_that_a_rule_hides_is_told_with_what_shows_it(yolofs: Program) -> None:
    tools = yolofs.project / "tools"
    (tools / "bin").mkdir(parents=True)
    program = tools / "bin" / "a-tool"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    yolofs("rule", "hidden", tools)
    search = f"{tools}/bin:{os.environ['PATH']}"
    said = yolofs("run", "a-tool", code=127, PATH=search).err
    assert f"yolofs: a-tool: {program} of the host is not in the view\n" in said
    told = said.splitlines()[-1].removeprefix("hint: ")
    explain, _, show = told.partition("; if a rule hides it: ")
    assert "by the rule tools = hidden" in yolofs(*explain.split()[1:]).out
    yolofs(*show.split()[1:])
    assert yolofs("run", "a-tool", PATH=search).out == "ran\n"
    for path in (tools, tools / "bin"):
        yolofs("rule", "unset", path)


def test_a_command_of_path_whose_interpreter_or_target_is_missing_is_told_so(yolofs: Program) -> None:
    (yolofs.project / "bin").mkdir()
    script, link = yolofs.project / "bin" / "no-interpreter", yolofs.project / "bin" / "a-link"
    script.write_text("#!/no/such/program\n")
    script.chmod(0o755)
    program = yolofs.project / "away" / "a-link"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    link.symlink_to(program)
    yolofs("rule", "hidden", program.parent)
    search = f"{yolofs.project}/bin:{os.environ['PATH']}"
    for front in ([], [*COMMAND, "run"]):
        said = yolofs("run", *front, "no-interpreter", code=127, PATH=search).err
        assert f"yolofs: {script}: the program that its first line names" in said
        said = yolofs("run", *front, "a-link", code=127, PATH=search).err
        assert f"yolofs: {link}: it leads to {program}, which is not in the view\n" in said
        assert f"yolofs rule read-only {program.parent}" in said
    yolofs("rule", "unset", program.parent)


def test_an_empty_command_is_not_there_and_a_directory_that_is_gone_is_told(yolofs: Program) -> None:
    assert yolofs.refused("run", "", code=127).startswith('yolofs: "": there is no such command')
    assert "there is no such command" in yolofs("run", *COMMAND, "run", "", code=127).err
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@" run true'
    done = subprocess.run(
        ["sh", "-c", script, "x", *COMMAND], cwd=yolofs.project, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("yolofs: the current directory no longer exists\n")


def test_an_option_that_there_is_not_is_no_command(yolofs: Program) -> None:
    said = yolofs.refused("run", "--no-reveiw", "touch", "made", code=2)
    assert "no such option" in said
    assert "--no-review" in said
    assert yolofs("diff", "--list").out == "no changes\n"
    assert run(yolofs, "--", "--no-reveiw").returncode == 127


def test_user_directory_umask_and_environment_are_the_same(yolofs: Program) -> None:
    (yolofs.project / "sub").mkdir()
    script = "import os; print(os.getcwd(), os.getuid(), os.getgid(), oct(os.umask(0)), os.environ['MINE'])"
    done = yolofs("run", sys.executable, "-c", script, cwd=yolofs.project / "sub", MINE="x")
    umask = os.umask(0)
    os.umask(umask)
    assert done.out.split() == [str(yolofs.project / "sub"), str(os.getuid()), str(os.getgid()), oct(umask), "x"]


def test_secrets_in_the_environment_stay_outside_unless_kept(yolofs: Program) -> None:
    config = yolofs.project / ".yolofs.toml"
    before = config.read_text()
    config.write_text('[run]\nkeep_env = ["OTHER_TOKEN"]\n')
    yolofs.trust()
    try:
        shown = yolofs("run", "env", SSH_AUTH_SOCK="/x", MY_TOKEN="t", OTHER_TOKEN="o").out.splitlines()
    finally:
        config.write_text(before)
    assert "OTHER_TOKEN=o" in shown
    assert not [line for line in shown if line.startswith(("SSH_AUTH_SOCK=", "MY_TOKEN="))]


def test_several_runs_at_once_share_the_view(yolofs: Program) -> None:
    script = "echo ready; while [ ! -e signal ]; do sleep 0.01; done; cat signal"
    first = start(["run", "sh", "-c", script], yolofs.project)
    assert first.stdout is not None
    assert first.stdout.readline() == b"ready\n"
    yolofs("run", "sh", "-c", "echo from-the-other > signal.new && mv signal.new signal")
    assert first.communicate(timeout=60)[0] == b"from-the-other\n"


def test_background_processes_end_with_the_command(yolofs: Program) -> None:
    seconds = f"600.{os.getpid()}"  # that no other test sleeps for
    done = yolofs("run", "sh", "-c", f"sleep {seconds} > /dev/null 2>&1 & echo started")
    assert done.out == "started\n"
    running = subprocess.run(["ps", "-e", "-ww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    assert f"sleep {seconds}" not in running.splitlines()


def test_a_run_in_a_run_is_just_the_command(yolofs: Program) -> None:
    done = yolofs("run", *COMMAND, "run", "sh", "-c", "echo inner > inner; echo $YOLOFS_RUN; exit 5", code=5)
    assert run_notes(yolofs)[-1]["run"] == int(done.out)
    assert "  A  inner" in done.err


def test_runs_are_noted_with_command_directory_exit_code_and_generations(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo 1 > noted; exit 6", code=6)
    start, end = run_notes(yolofs)[-2:]
    assert (start["kind"], end["kind"]) == ("run", "run-end")
    assert start["time_ns"] < end["time_ns"]
    assert start["directory"] == str(yolofs.project)
    assert start["command"][0] == "sh"
    assert (end["run"], end["code"]) == (start["run"], 6)
    assert end["after"]["generation"] == start["before"]["generation"] + 1


def test_the_log_shows_runs_between_what_they_did(yolofs: Program) -> None:
    yolofs("run", "sh", "-c", "echo 1 > logged; exit 6", code=6)
    number = run_notes(yolofs)[-1]["run"]
    records = yolofs("log", "--run", str(number), "--json").json["records"]
    assert [record["kind"] for record in records] == ["run", "stage", "run-end"]
    assert records[0]["directory"] == str(yolofs.project)
    assert (records[0]["command"], records[2]["code"]) == (["sh", "-c", "echo 1 > logged; exit 6"], 6)
    assert records[2]["after"] == records[0]["before"] + 1
    lines = yolofs("log", "--run", str(number)).out.splitlines()
    assert "run " in lines[0]
    assert lines[-1].endswith(f"{number}: exit 6")


def test_a_run_whose_supervisor_is_killed_ends_with_it_and_is_noted(yolofs: Program) -> None:
    with start(["run", "sh", "-c", "echo ready; sleep 601"], yolofs.project) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
        process.wait()
        assert process.stdout.read() == b""  # nobody holds the other end any more
    started = [event for event in run_notes(yolofs) if event["kind"] == "run" and "601" in event["command"][-1]][-1]

    def ended() -> list[dict[str, Any]]:
        return [event for event in run_notes(yolofs) if event["kind"] == "run-end" and event["run"] == started["run"]]

    wait_until(ended, "the daemon has noted it")
    done = yolofs("run", "true")
    assert done.code == 0
    assert [event["code"] for event in ended()] == [None]


def test_a_signal_to_the_supervisor_reaches_the_command(yolofs: Program) -> None:
    script = "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    process = start(["run", "bash", "-c", script], yolofs.project)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == b"got it\n"
    assert process.returncode == 7


def test_a_command_reads_on_in_a_file_where_the_shell_stands_and_the_shell_goes_on_behind_it(
    yolofs: Program, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("one\ntwo\nthree\n")
    command = " ".join(COMMAND)
    script = f"read a; {command} run -- python3 -c 'import os; print(os.read(0, 4))'; read b; echo $a $b"
    with (tmp_path / "lines").open("rb") as lines:
        done = subprocess.run(
            ["bash", "-c", script], cwd=yolofs.project, stdin=lines, capture_output=True, check=True, timeout=60
        )
    assert done.stdout == b"b'two\\n'\none three\n"


def kill_when_started(pid: int, mark: Path) -> None:
    """Kill a process once a file is there."""
    wait_until(mark.exists, "the command has begun")
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("is_started", [False, True])
def test_nothing_runs_on_where_bubblewrap_was_killed(yolofs: Program, is_started: bool, tmp_path: Path) -> None:
    """As where the kernel runs out of memory, also before the command has begun."""
    mountpoint = os.fsencode(yolofs.daemon["mountpoint"])
    above = os.path.dirname(mountpoint)
    socket = os.path.join(above, AGENT_SOCKET_NAME)
    place = StartingPlace(mountpoint, os.path.dirname(above), socket, b"/", native={}, has_network=True)
    begun = Path(os.fsdecode(mountpoint + bytes(tmp_path / "started")))
    command = [b"sh", b"-c", b"touch %b; sleep 600" % bytes(tmp_path / "started")]
    with confined(place, command, os.environb, 0) as sandbox, pidfd_of(sandbox.info.child_pid) as init:
        assert init is not None
        status = Path(f"/proc/{sandbox.info.child_pid}/status").read_text()
        bubblewrap = int(status.partition("PPid:")[2].split()[0])
        if is_started:
            killer = threading.Thread(target=kill_when_started, args=(bubblewrap, begun))
            killer.start()
            assert sandbox.run(print) == 128 + signal.SIGKILL
            killer.join()
        else:
            os.kill(bubblewrap, signal.SIGKILL)
            with contextlib.suppress(SandboxError):  # the command may have begun, or not
                assert sandbox.run(print) == 128 + signal.SIGKILL
        assert select.select([init], [], [], 0)[0]


def test_without_network_there_is_only_a_loopback(yolofs: Program) -> None:
    config = yolofs.project / ".yolofs.toml"
    before = config.read_text()
    script = "import socket; print([name for _, name in socket.if_nameindex()])"
    config.write_text('[run]\nnetwork = "none"\n')
    try:
        assert yolofs("run", "python3", "-c", script).out == "['lo']\n"
    finally:
        config.write_text(before)
    assert (
        yolofs("run", "python3", "-c", script).out == f"{[name for _, name in __import__('socket').if_nameindex()]}\n"
    )


@pytest.mark.skipif(shutil.which("tmux") is None and not is_required(), reason="tmux is not installed")
def test_tmux_starts_in_the_sandbox_and_leaves_that_of_the_host_alone(yolofs: Program, tmp_path: Path) -> None:
    """Twice, as the first server leaves its socket behind; from within a tmux, too."""
    script = "tmux new-session -d 'sleep 100'; tmux list-sessions -F '#{session_windows}'"
    host, directory = f"{tmp_path}/host,1,0", str(tmp_path)
    for _ in range(2):
        done = yolofs("run", "--no-review", "sh", "-c", script, TMUX=host, TMUX_PANE="%0", TMUX_TMPDIR=directory)
        assert done.out == "1\n"
    assert not list(tmp_path.iterdir())
    assert not os.path.lexists(f"/var/tmp/tmux-{os.getuid()}")
    assert yolofs("run", "--no-review", "sh", "-c", "echo $TMUX_TMPDIR $TMUX").out == "/var/tmp\n"
