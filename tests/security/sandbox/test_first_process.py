"""The sandbox's first process belongs to bubblewrap: nothing inside can hold it up, and no run
depends on it to end.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.security.sandbox.going import HASTY, HASTY_S, PYTHON, going, wait_for_state
from tests.support.program import COMMAND, Program, wait_until
from tests.support.terminal import Terminal
from yolofs.sandbox import forced_end

pytestmark = pytest.mark.mount

HEAD = """
import ctypes, errno, os, resource, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long
x86 = os.uname().machine == "x86_64"
TRACEME, ATTACH, DETACH, SEIZE, INTERRUPT = 0, 16, 17, 0x4206, 0x4207
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def traced(request, pid):
    ctypes.set_errno(0)
    result = libc.ptrace(request, pid, None, None)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
"""

HIGH = 1 << 32
VECTOR = "vec = (ctypes.c_void_p * 2)(0, 0)\n"
STOP_IT = """
for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGKILL, signal.SIGTTIN, signal.SIGTERM):
    os.kill(1, number)
print('sent')
"""
MEMORY = """
inside = [name + "mem" for name in ("", "task/1/", "../1/", "../self/../1/", "../self/root/proc/1/")]
print([name for name in inside if os.path.exists("/proc/1/" + name)])
"""
REACHES = {
    "seize": ("print(traced(SEIZE, 1))", "EPERM"),
    "attach": ("print(traced(ATTACH, 1))", "EPERM"),
    "the number's upper half is not looked at": (f"print(traced(SEIZE, 1 | {HIGH}))", "EPERM"),
    "write to its memory": (VECTOR + "print(call(311 if x86 else 271, 1, vec, 0, vec, 0, 0))", "EPERM"),
    "read its memory": (VECTOR + "print(call(310 if x86 else 270, 1, vec, 0, vec, 0, 0))", "EPERM"),
    "its descriptors": ("print(call(434, 1, 0))", "EPERM"),
    "its memory as a file": (MEMORY, "[]"),
    "stopping it": (STOP_IT, "sent"),
}
"""What a program tries, and what it must be told."""


@pytest.mark.parametrize("name", REACHES)
def test_the_first_process_is_out_of_reach_and_the_run_ends_by_itself(yolofs: Program, name: str) -> None:
    script, told = REACHES[name]
    done = yolofs("run", "--no-review", PYTHON, "-c", HEAD + script)
    assert done.out == f"{told}\n"


HOLDS = {
    "seized and stopped": "traced(SEIZE, 1); traced(INTERRUPT, 1)",
    "attached": "traced(ATTACH, 1)",
    "attached and let go": "traced(ATTACH, 1); traced(DETACH, 1)",
}


@pytest.mark.parametrize("name", HOLDS)
def test_a_command_that_tries_to_hold_up_the_first_process_ends_like_any_other(yolofs: Program, name: str) -> None:
    """It stays behind to hold what it has got, as a child of the command."""
    held = f"{HOLDS[name]}\nif not os.fork():\n    {HOLDS[name]}\n    time.sleep(603)\nprint('ready', flush=True)\n"
    with going(yolofs, PYTHON, "-c", f"{HEAD}{held}sys.stdin.read()\n", fd=subprocess.PIPE) as run:
        code, _, _ = run.end(timeout_s=30)
        assert code == 0
        run.check_gone()


ENDING = {
    signal.SIGTERM: 128 + signal.SIGTERM,
    signal.SIGINT: 128 + signal.SIGINT,
    signal.SIGHUP: 128 + signal.SIGHUP,
}


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_run_whose_first_process_has_been_stopped(yolofs: Program, number: signal.Signals) -> None:
    """From outside it can be stopped: so this holds for whatever may hold it up."""
    with going(yolofs, "sh", "-c", "echo ready; exec sleep 604") as run:
        os.kill(run.init, signal.SIGSTOP)
        wait_for_state(run.init, "T")
        run.process.send_signal(number)
        code, _, err = run.end(timeout_s=30)
        assert code == ENDING[number], err
        run.check_gone()


def test_a_run_ends_with_its_command_although_its_first_process_has_been_stopped(yolofs: Program) -> None:
    with going(yolofs, "sh", "-c", "echo ready; while [ ! -e end ]; do sleep 0.05; done; exit 7") as run:
        os.kill(run.init, signal.SIGSTOP)
        wait_for_state(run.init, "T")
        yolofs("run", "--no-review", "touch", "end")
        code, _, err = run.end(timeout_s=30)
        assert code == 7
        assert "did not notice" in err
        run.check_gone()


DEAF = "import signal, time\n{}\nprint('ready', flush=True)\nwhile True: time.sleep(1)\n"
IGNORING = "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)"
HANDLING = "for number in (1, 2, 15): signal.signal(number, lambda *_: None)"
BLOCKING = "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"
STOPPED = "import os\nprint('ready', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)"


@pytest.mark.parametrize(
    ("deafness", "number"),
    [
        (IGNORING, signal.SIGINT),
        (IGNORING, signal.SIGHUP),
        (HANDLING, signal.SIGTERM),
        (HANDLING, signal.SIGHUP),
        (BLOCKING, signal.SIGTERM),
        (BLOCKING, signal.SIGINT),
    ],
)
@pytest.mark.some(2)
def test_a_command_that_does_not_end_is_killed_some_time_after_the_signal(
    yolofs: Program, deafness: str, number: signal.Signals
) -> None:
    with going(yolofs, PYTHON, "-c", DEAF.format(deafness), program=HASTY) as run:
        run.process.send_signal(number)
        code, _, err = run.end(timeout_s=40)
        assert code == 128 + signal.SIGKILL
        assert f"{HASTY_S} s after {number.name}" in err
        run.check_gone()


def test_a_command_has_ten_seconds_to_end(yolofs: Program) -> None:
    assert forced_end.GRACE_S == 10
    with going(yolofs, PYTHON, "-c", DEAF.format(IGNORING), program=HASTY) as run:
        started = time.monotonic()
        run.process.send_signal(signal.SIGTERM)
        code, _, err = run.end(timeout_s=40)
        assert code == 128 + signal.SIGKILL
        assert time.monotonic() - started > HASTY_S * 0.9
        assert f"{HASTY_S} s after SIGTERM" in err
        run.check_gone()


def test_a_command_that_has_stopped_itself_ends_with_the_signal(yolofs: Program) -> None:
    with going(yolofs, PYTHON, "-c", DEAF.format(STOPPED)) as run:
        wait_for_state(run.command, "T")
        run.process.send_signal(signal.SIGTERM)
        assert run.end(timeout_s=30)[0] == 128 + signal.SIGTERM


def test_a_command_that_another_one_holds_is_killed_after_ctrl_c(yolofs: Program) -> None:
    script = (
        "parent = os.getpid()\n"
        "if not os.fork():\n"
        "    libc.ptrace(SEIZE, parent, None, None); libc.ptrace(INTERRUPT, parent, None, None)\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(605)\n"
        "os.wait()\n"
    )
    with going(yolofs, PYTHON, "-c", HEAD + script, program=HASTY) as run:
        wait_for_state(run.command, "t")
        run.process.send_signal(signal.SIGINT)
        assert run.end(timeout_s=40)[0] == 128 + signal.SIGKILL
        run.check_gone()


def test_a_command_that_handles_ctrl_c_goes_on_after_it(yolofs: Program) -> None:
    """An interpreter that interrupts what it is doing, for example: SIGINT is no order to end."""
    script = (
        "import signal, time\n"
        "caught = []\n"
        "signal.signal(signal.SIGINT, lambda *_: caught.append(1))\n"
        "print('ready', flush=True)\n"
        "until = time.monotonic() + 60\n"
        "while not caught and time.monotonic() < until: time.sleep(0.01)\n"
        "until = time.monotonic() + 3\n"  # longer than others are given
        "while time.monotonic() < until: time.sleep(0.1)\n"
        "print('went on')\n"
    )
    with going(yolofs, PYTHON, "-c", script, program=HASTY) as run:
        run.process.send_signal(signal.SIGINT)
        assert run.end()[:2] == (0, "went on\n")


@pytest.mark.parametrize("is_stopped", [False, True])
def test_nothing_is_left_of_a_run_that_was_killed(yolofs: Program, is_stopped: bool) -> None:
    script = f"{HEAD}\n{IGNORING}\ntraced(SEIZE, 1); os.fork()\nprint('ready', flush=True)\ntime.sleep(606)\n"
    with going(yolofs, PYTHON, "-c", script.replace("print('ready'", "os.getpid() == 2 and print('ready'")) as run:
        if is_stopped:
            os.kill(run.init, signal.SIGSTOP)
            wait_for_state(run.init, "T")
        run.process.kill()
        run.check_gone()


@pytest.mark.parametrize("name", ["STOP", "TSTP", "TTIN"])
def test_a_command_that_stops_its_group_stops_no_run_that_has_no_terminal(yolofs: Program, name: str) -> None:
    """There is no shell that would let it go on."""
    with going(yolofs, "sh", "-c", f"echo ready; kill -{name} 0; sleep 0.2; kill -{name} 0; exec sleep 607") as run:
        wait_until(lambda: b"607" in Path(f"/proc/{run.command}/cmdline").read_bytes(), "it goes on by itself")
        run.process.send_signal(signal.SIGTERM)
        assert run.end(timeout_s=30)[0] == 128 + signal.SIGTERM
        run.check_gone()


def test_a_command_that_stops_its_group_all_the_time_is_killed_after_the_signal(yolofs: Program) -> None:
    stop = "while True: os.kill(0, signal.SIGSTOP)"
    script = f"import os, signal\n{IGNORING}\nprint('ready', flush=True)\n{stop}\n"
    with going(yolofs, PYTHON, "-c", script, program=HASTY) as run:
        run.process.send_signal(signal.SIGTERM)
        assert run.end(timeout_s=40)[0] == 128 + signal.SIGKILL
        run.check_gone()


def test_nobody_in_the_callers_group_is_stopped_by_a_command(yolofs: Program) -> None:
    """A script in a session of its own, whose parent is another group: one that could be
    stopped.
    """
    around = "import os, subprocess, sys\nraise SystemExit(subprocess.call(sys.argv[1:], process_group=0))"
    script = 'sleep 608 & "$@" run --no-review sh -c "kill -TSTP 0; sleep 0.2; echo on"; kill %1 $! ; echo script'
    done = subprocess.run(
        [PYTHON.replace("/usr/bin/python3", COMMAND[0]), "-c", around, "bash", "-c", script, "x", *COMMAND],
        cwd=yolofs.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        start_new_session=True,
        timeout=60,
    )
    assert done.stdout.split() == [b"on", b"script"]


def test_the_terminal_is_as_it_was_after_a_command_that_had_to_be_killed(yolofs: Program) -> None:
    script = f"import signal, sys, time, tty\n{IGNORING}\ntty.setraw(0)\nprint('rea' 'dy', flush=True)\ntime.sleep(609)"
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, PS1="outside> ", HISTFILE="") as terminal:
        terminal.wait_for("outside> ")
        (yolofs.project / "raw.py").write_text(script)
        run = f"{shlex.join(HASTY)} run --no-review {PYTHON} raw.py"
        (yolofs.project / "run.sh").write_text(f"echo pid=$$ > pid\nexec {run}\n")
        terminal.type("sh run.sh\n")
        terminal.wait_for("ready")
        os.kill(int((yolofs.project / "pid").read_text().partition("=")[2]), signal.SIGTERM)
        terminal.wait_for("outside> ", count=2)
        terminal.type("echo code=$?; stty -a | grep -o -e '-*icanon' -e '-*isig' | tr '\\n' ' '; echo\n")
        terminal.wait_for("code=137")
        terminal.wait_for("isig icanon")
        terminal.type("exit\n")
        terminal.wait()


@pytest.mark.parametrize(
    "command",
    [
        ["strace", "-f", "-o", "/dev/null", "sh", "-c", "true; echo traced"],
        ["gdb", "-q", "-batch", "-ex", "run", "-ex", "print 40 + 2", "--args", "/bin/echo", "traced"],
        ["gdb", "-q", "-batch", "-ex", "print 40 + 2", "-p", "PID"],
    ],
    ids=["strace", "gdb", "gdb-attaches"],
)
def test_debuggers_of_other_processes_work(yolofs: Program, command: list[str]) -> None:
    script = 'sleep 610 & pid=$!; for word; do shift; [ "$word" = PID ] && word=$pid; set -- "$@" "$word"; done; "$@"'
    done = yolofs("run", "--no-review", "sh", "-c", script, "x", *command)
    assert "traced" in done.out or "= 42" in done.out
