"""When a run has to be ended from outside, with real processes in a pid namespace of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from yolofs.sandbox import forced_end
from yolofs.sandbox.forced_end import ForcedEnd
from yolofs.system.processes import children

pytestmark = pytest.mark.timeout(120)
IS_ROOT = os.geteuid() == 0
NAMESPACE = ("unshare", *(() if IS_ROOT else ("--user", "--map-root-user")), "--pid", "--fork", "--kill-child")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced_end, "_NOTICED_WITHIN_S", 0.2)
    monkeypatch.setattr(forced_end, "GRACE_S", 0.2)


@contextlib.contextmanager
def namespace(command: str, *, waits: bool = True) -> Iterator[tuple[int, int]]:
    """Run a command as the second process of a pid namespace, whose first one waits for it or never
    does.

    Gives the pids of both, as we see them, once the command has said that it is there.
    """
    first = f"({command}) & " + ("wait; exec sleep 1000" if waits else "exec sleep 1000")
    with subprocess.Popen([*NAMESPACE, "sh", "-c", first], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said and not IS_ROOT:
                pytest.skip("this machine forbids namespaces to this user")
            assert said == b"there\n"
            (init,) = children(process.pid)
            second = children(init)[0]
            yield init, second
        finally:
            process.kill()


def until_due(end: ForcedEnd, *, at_most_s: float = 60) -> str:
    deadline_s = time.monotonic() + at_most_s
    while time.monotonic() < deadline_s:
        if why := end.why_now():
            return why
        time.sleep(0.02)
    return ""


def test_a_command_that_goes_on_is_left_alone() -> None:
    with namespace("echo there; exec sleep 1000") as (init, _):
        assert until_due(ForcedEnd(init), at_most_s=0.6) == ""


def test_that_the_command_has_ended_is_noticed_though_the_first_process_does_not() -> None:
    with namespace("echo there; exec sleep 1000", waits=False) as (init, command):
        end = ForcedEnd(init)
        assert end.why_now() == ""
        os.kill(command, signal.SIGUSR1)
        assert "has ended" in until_due(end)
        assert end.status is not None
        assert os.waitstatus_to_exitcode(end.status) == -signal.SIGUSR1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_ignores_the_signal_to_end_is_killed_when_its_time_is_up(number: signal.Signals) -> None:
    with namespace("trap '' TERM HUP INT; echo there; exec sleep 1000") as (init, command):
        end = ForcedEnd(init)
        assert end.why_now() == ""
        os.kill(command, number)
        end.note_signal(number)
        assert f"after {number.name}" in until_due(end)


def test_whoever_handles_ctrl_c_decides_unless_it_is_stopped() -> None:
    handles = "echo there; exec python3 -c 'import signal, time; signal.signal(2, print); print(); time.sleep(1000)'"
    with namespace(handles) as (init, command):
        end = ForcedEnd(init)
        deadline_s = time.monotonic() + 60
        while not _catches_ctrl_c(command):
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        end.note_signal(signal.SIGINT)
        assert until_due(end, at_most_s=0.6) == ""
        os.kill(command, signal.SIGSTOP)
        end.note_signal(signal.SIGINT)
        assert "after SIGINT" in until_due(end)


def test_other_signals_tell_nobody_to_end() -> None:
    with namespace("echo there; exec sleep 1000") as (init, _):
        end = ForcedEnd(init)
        end.note_signal(signal.SIGUSR1)
        assert until_due(end, at_most_s=0.6) == ""


def _catches_ctrl_c(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().startswith("python") and bool(caught & 2)
