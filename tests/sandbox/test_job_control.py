"""A sandbox in a terminal: Ctrl-C, Ctrl-Z, window size, full-screen programs; a shell around it and
one inside.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import COMMAND, DEADLINE_S, Program, wait_until
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

YOLOFS = shlex.join(COMMAND)
TIOCGSID = 0x5429
"""Asks for the session of a terminal; Python 3.11 has no name for it."""


@pytest.fixture
def shell(yolofs: Program) -> Iterator[Terminal]:
    """Return an interactive shell outside, in a terminal."""
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, PS1="outside> ", HISTFILE="") as terminal:
        terminal.wait_for("outside> ")
        yield terminal
        terminal.type("\nexit\nexit\n")  # twice, should a job be stopped
        terminal.wait()


def type_line(shell: Terminal, line: str) -> None:
    """Type a line at the shell's prompt."""
    shell.type(line + "\n")


def signals_told(shell: Terminal) -> str:
    """Say to which group Ctrl-C goes, and what each process at the terminal does with signals."""
    session = struct.unpack("i", fcntl.ioctl(shell._master, TIOCGSID, bytes(4)))[0]
    processes = subprocess.run(
        ["ps", "-ww", "-o", "pid,pgid,tpgid,stat,blocked,ignored,caught,wchan,args", "--sid", str(session)],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"Ctrl-C goes to the group {shell.foreground}:\n{processes.stdout}{processes.stderr}"


def test_what_is_told_of_signals_names_the_shell_at_the_terminal(shell: Terminal) -> None:
    told = signals_told(shell)
    assert f"the group {shell.foreground}:" in told
    assert "bash --norc --noprofile -i" in told


def test_ctrl_c_ends_the_command_and_the_shell_around_goes_on(shell: Terminal) -> None:
    type_line(shell, f"{YOLOFS} run -- sh -c 'echo rea''dy; read line'")
    shell.wait_for("ready\n")
    shell.type("\x03")
    shell.wait_for("outside> ", count=2)
    type_line(shell, "echo code=$?")
    shell.wait_for("code=130")


def test_ctrl_c_reaches_a_command_that_handles_it_and_only_that(shell: Terminal) -> None:
    script = "trap 'echo cau''ght; exit 9' INT; echo rea''dy; while :; do sleep 0.05; done"
    type_line(shell, f'{YOLOFS} run -- bash -c "{script}"; echo code=$?')
    shell.wait_for("ready\n")
    shell.type("\x03")
    try:
        shell.wait_for("caught")
    except AssertionError as error:
        error.add_note(signals_told(shell))
        raise
    shell.wait_for("code=9")


def test_a_loop_of_the_shell_ends_with_ctrl_c(shell: Terminal) -> None:
    type_line(shell, f"for i in 1 2 3; do {YOLOFS} run -- sh -c 'echo rea''dy; read line'; done; echo en''ded")
    shell.wait_for("ready\n")
    shell.type("\x03")
    shell.wait_for("outside> ", count=2)
    assert shell.text.count("ready\n") == 1


def test_ctrl_z_stops_the_command_and_fg_lets_it_go_on(shell: Terminal) -> None:
    type_line(shell, f"{YOLOFS} run -- sh -c 'echo rea''dy; read line; echo got=$line'")
    shell.wait_for("ready\n")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.wait_for("outside> ", count=2)
    type_line(shell, "echo between=$((40 + 2))")
    shell.wait_for("between=42")
    shell.wait_for("outside> ", count=3)
    type_line(shell, "fg")
    shell.wait_for("run -- sh -c", count=3)  # typed, stopped, fg
    type_line(shell, "typed")
    shell.wait_for("got=typed")


def test_what_is_typed_after_ctrl_z_is_not_read_by_a_command_that_had_no_time_to_stop(shell: Terminal) -> None:
    busy = "while :; do :; done & "  # in the same session, so that what is idle there gets no time
    type_line(shell, busy * len(os.sched_getaffinity(0)) + "echo bu''sy")
    shell.wait_for("busy\n")
    shell.wait_for("outside> ", count=2)
    type_line(shell, f"{YOLOFS} run -- chrt --idle 0 sh -c 'echo rea''dy; read line; echo got=$line'")
    shell.wait_for("ready\n")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.wait_for("outside> ", count=3)
    type_line(shell, "echo between=$((40 + 2))")
    shell.wait_for("between=42")
    type_line(shell, "kill $(jobs -p); wait; echo en''ded")
    shell.wait_for("ended")


def test_a_command_in_the_background_stops_when_it_reads_and_goes_on_in_the_foreground(shell: Terminal) -> None:
    type_line(shell, f"{YOLOFS} run -- sh -c 'read line; echo got=$line' &")
    shell.wait_for("outside> ", count=2)
    type_line(shell, "echo ne''xt")
    shell.wait_for("next")
    shell.wait_for("outside> ", count=3)
    while "Stopped" not in shell.text:
        type_line(shell, "jobs")
        shell.wait_for("outside> ", count=shell.text.count("outside> ") + 1)
    shown = shell.text.count("read line; echo got")
    type_line(shell, "fg")
    shell.wait_for("read line; echo got", count=shown + 1)
    type_line(shell, "typed")
    shell.wait_for("got=typed")


def test_in_a_pipeline_the_reader_outside_keeps_the_terminal(shell: Terminal) -> None:
    type_line(shell, f"{YOLOFS} run -- echo from-in''side | (read x </dev/tty; cat; echo tty=$x)")
    type_line(shell, "typed")
    shell.wait_for("from-inside\n")
    shell.wait_for("tty=typed")


def test_in_a_pipeline_a_command_that_wants_the_terminal_gets_it(shell: Terminal) -> None:
    type_line(shell, f"echo piped | {YOLOFS} run -- sh -c 'read line < /dev/tty; cat; echo got=$line' | cat")
    type_line(shell, "typed")
    shell.wait_for("piped\n")
    shell.wait_for("got=typed")


def test_the_window_size_and_its_changes_arrive(shell: Terminal) -> None:
    fcntl.ioctl(shell._master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    script = "trap 'stty size; exit' WINCH; stty size; echo rea''dy; while :; do sleep 0.05; done"
    type_line(shell, f'{YOLOFS} run -- bash -c "{script}"')
    shell.wait_for("33 99\n")
    shell.wait_for("ready\n")
    fcntl.ioctl(shell._master, termios.TIOCSWINSZ, struct.pack("HHHH", 22, 77, 0, 0))
    shell.wait_for("22 77\n")


def test_a_shell_inside_has_job_control_of_its_own(shell: Terminal) -> None:
    inner = "PS1='in''side> ' bash --norc --noprofile -i"
    type_line(shell, f"SHELL=/bin/sh {YOLOFS} run -- env {inner}")
    shell.wait_for("inside> ")
    type_line(shell, "sh -c 'echo sta''rted; read line'")
    shell.wait_for("started\n")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.wait_for("inside> ", count=2)
    # bash's own wait returns at once where it has not heard yet that the stopped job is dead
    gone = "while kill -0 %1; do sleep 0.01; done 2>&-"
    type_line(shell, f"jobs; kill -KILL %1; {gone}; echo in-the-she''ll > made; exit 8")
    shell.wait_for("yolofs: run ")
    shell.wait_for("A  made")
    shell.wait_for("outside> ", count=2)
    type_line(shell, "echo code=$?")
    shell.wait_for("code=8")


def test_yolofs_shell_is_the_users_shell_and_one_generation(yolofs: Program, shell: Terminal) -> None:
    type_line(shell, f"PS1='in> ' SHELL=/bin/sh {YOLOFS} shell")
    shell.wait_for("in> ")
    type_line(shell, "echo 1 > one; echo 2 > two; exit")
    shell.wait_for("A  two")
    assert yolofs("timeline", "--json").json["generations"][-1]["name"] == "shell"


def test_vim_edits_a_file_with_a_stop_in_between(yolofs: Program, shell: Terminal) -> None:
    (yolofs.project / "text").write_text("base\n")
    type_line(shell, f"{YOLOFS} run -- vim -u NONE -N text")
    shell.wait_for("base")
    shell.wait_for("1L, 5B")
    shell.type("Oedited\x1b")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.wait_for("outside> ", count=2)
    shown = shell.text.count("edited")
    type_line(shell, "fg")
    shell.wait_for("edited", count=shown + 1)
    shell.type(":wq\r")
    shell.wait_for("M  text")
    assert (yolofs.project / "text").read_text() == "base\n"
    assert yolofs("run", "cat", "text").out == "edited\nbase\n"


def wait_for_vims_size(shell: Terminal, lines: int, columns: int) -> None:
    """Ask vim until it has heard of a size: it looks at signals when it has nothing to read."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        shown = shell.text.count("columns=")
        shell.type(":set lines? columns?\r")
        shell.wait_for("columns=", count=shown + 1)
        is_there = shell.text.rsplit("lines=", 1)[1].split()[:2] == [str(lines), f"columns={columns}"]
        shell.type("\r")
        if is_there:
            return
        assert time.monotonic() < deadline, f"not {lines} and {columns}:\n{shell.screen}"


def test_vim_follows_the_window_size_also_one_that_changed_while_it_was_stopped(shell: Terminal) -> None:
    shell.resize(100, 30)
    type_line(shell, f"{YOLOFS} run -- vim -u NONE -N sized")
    shell.wait_for_screen("sized", "~")
    wait_for_vims_size(shell, 30, 100)
    shell.resize(90, 20)
    wait_for_vims_size(shell, 20, 90)
    prompts = shell.text.count("outside> ")  # the shell has shown it again for the first size
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.wait_for("outside> ", count=prompts + 1)
    shell.resize(80, 25)
    type_line(shell, "fg")
    shell.wait_for_screen("~", gone="Stopped")
    wait_for_vims_size(shell, 25, 80)
    prompts = shell.text.count("outside> ")
    shell.type(":q!\r")
    shell.wait_for("outside> ", count=prompts + 1)


def test_ctrl_c_in_a_program_that_vim_has_started_ends_that_program_alone(yolofs: Program, shell: Terminal) -> None:
    shell.resize(100, 30)
    type_line(shell, f"{YOLOFS} run -- vim -u NONE -N made-in-vim")
    shell.wait_for_screen("made-in-vim", "~")
    # a shell loses Ctrl-C that comes while it is about to start another program: this one waits by
    # itself
    shell.type(":!echo sta''rted; read line\r")
    shell.wait_for("started")
    shell.type("\x03")
    shell.wait_for("Press ENTER")
    shell.type_until_gone("\r", "Press ENTER")  # an interrupted vim throws away what has been typed ahead
    shell.wait_for_screen("~")
    shell.type("iafter")
    shell.wait_for_screen("after", "-- INSERT --")
    shell.type("\x1b:wq\r")
    shell.wait_for("A  made-in-vim")
    assert yolofs("run", "cat", "made-in-vim").out == "after\n"


def test_background_jobs_of_yolofs_shell_go_on_stop_and_end_with_it(yolofs: Program, shell: Terminal) -> None:
    plain = yolofs.project / "plain-shell"
    plain.write_text("#!/bin/sh\nexec bash --norc --noprofile -i\n")
    plain.chmod(0o755)
    type_line(shell, f"PS1='in''side> ' SHELL={plain} {YOLOFS} shell")
    shell.wait_for("inside> ")
    type_line(shell, "while [ ! -e end ]; do sleep 0.05; done > /dev/null & first=$!; sleep 600 & read line &")
    shell.wait_for("[3]")
    shell.wait_for("inside> ", count=2)
    while "Stopped" not in shell.text:  # what reads in the background
        listed = shell.text.count("listed")
        type_line(shell, "jobs; echo lis''ted")
        shell.wait_for("listed", count=listed + 1)
    type_line(shell, "touch end; wait $first; echo wai''ted=$?")  # %1 may have ended and be forgotten
    shell.wait_for("waited=0")
    before = shell.foreground
    type_line(shell, "kill %3; fg %2")
    shell.wait_for("sleep 600", count=shell.text.count("sleep 600") + 1)
    wait_until(lambda: shell.foreground != before, "the job has the terminal")
    shell.type("\x03")
    type_line(shell, "echo in''terrupted=$?")
    shell.wait_for("interrupted=130")
    type_line(shell, "sleep 601 & echo left > behind; exit 3")
    shell.wait_for("A  behind")
    shell.wait_for("outside> ", count=2)
    type_line(shell, "echo code=$?")
    shell.wait_for("code=3")


def test_an_ask_is_answered_from_elsewhere_while_a_full_screen_program_waits(yolofs: Program, shell: Terminal) -> None:
    (yolofs.project / "asked").write_text("the answer was yes\n")
    yolofs("rule", "ask", "asked")
    try:
        type_line(shell, f"{YOLOFS} run -- vim -u NONE -N asked")
        wait_until(lambda: yolofs("asks", "--json").json["asks"], "vim has asked")
        yolofs("answer", str(yolofs("asks", "--json").json["asks"][0]["id"]), "allow", "--session")
        shell.wait_for("the answer was yes")
        shell.type("\x1b:q!\r")
        shell.wait_for("outside> ", count=2)
    finally:
        yolofs("rule", "unset", "asked")


def test_a_signal_of_the_command_to_its_own_group_reaches_nobody_outside(yolofs: Program) -> None:
    script = f"trap 'echo hit' TERM USR1; {YOLOFS} run -- sh -c 'kill -USR1 0; kill -KILL 0'; echo code=$?"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=yolofs.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        start_new_session=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert b"hit" not in done.stdout
    assert b"code=" in done.stdout


def test_a_terminal_that_hangs_up_takes_the_command_along(yolofs: Program) -> None:
    script = f"echo $$ > {yolofs.project}/pid; exec sleep 605"
    (yolofs.project / "pid").write_text("")
    command = ["setsid", "--ctty", "--wait", *COMMAND]
    with Terminal(yolofs.project, ["run", "sh", "-c", f"echo rea''dy; {script}"], command=command) as terminal:
        terminal.wait_for("ready\n")
    wait_until(lambda: not _running(b"sleep\x00605\x00"), "the command has ended")


def _running(command: bytes) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if Path("/proc", name, "cmdline").read_bytes() == command:
                    found.append(name)
            except OSError:
                continue
    return found


def test_ignored_signals_stay_ignored(yolofs: Program) -> None:
    done = subprocess.run(
        [*COMMAND, "run", "sh", "-c", "kill -HUP $$; echo alive"],
        cwd=yolofs.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert done.stdout == b"alive\n"


@pytest.mark.parametrize("words", ["shell", "run -- /bin/sh", "run -- dash -i"])
def test_a_shell_that_gives_the_terminal_back_ends_as_it_was_told(shell: Terminal, words: str) -> None:
    """Dash does so at its end, and so do others: they cannot if they do not know to whom."""
    type_line(shell, f"SHELL=/bin/sh PS1='in''side> ' {YOLOFS} {words}; echo code=$?")
    shell.wait_for("inside> ")
    type_line(shell, "sh -c 'echo rea''dy; exec sleep 1000'")
    shell.wait_for("ready\n")
    shell.type("\x03")
    shell.wait_for("inside> ", count=2)
    type_line(shell, "exit 5")
    shell.wait_for("code=5")
    assert "process group" not in shell.text
    assert "job control" not in shell.text
    shell.wait_for("outside> ", count=2)
    type_line(shell, "echo the $((1 + 1))nd line is read")
    shell.wait_for("the 2nd line is read")
