"""Job control for the sandbox, as a shell does it for its jobs: a process group of its own, the
terminal on loan.

The sandbox must not share a process group with anything outside, as every process may signal its
own group.  So it gets one, and with it the terminal: at once if the command has the terminal for
itself, else (in a pipeline with commands outside) when it reads from it or sets its modes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from yolofs.sandbox.forced_end import LOOKS_S, ForcedEnd
from yolofs.system.processes import children

FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""What is passed on to the command; bubblewrap itself has to ignore these, as it would take the
sandbox with it.
"""
_WANTS_TERMINAL = (signal.SIGTTIN, signal.SIGTTOU)
_STOPS_WITHIN_S = 2.0
"""What a busy machine may take until every process of a job has stopped; the job's end is not
waited for.
"""

_MASKS = (b"SigPnd", b"ShdPnd", b"SigBlk")
"""Signals in /proc/PID/status: for one thread and for all of them, which wait, and which are held
back.
"""


class Terminal:
    """The controlling terminal, if there is one."""

    def __init__(self) -> None:
        self._fd = -1
        with contextlib.suppress(OSError):
            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        self._own_group = os.getpgrp()
        self._is_lent = False
        self._modes: list[Any] | None = None
        if self._fd >= 0:
            with contextlib.suppress(termios.error):
                self._modes = termios.tcgetattr(self._fd)

    def close(self) -> None:
        """Let go of the terminal; it belongs again to whom it belonged before."""
        self.take()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def is_there(self) -> bool:
        """Whether there is one, and with it perhaps a shell that lets stopped jobs go on."""
        return self._fd >= 0

    @property
    def is_ours(self) -> bool:
        """Whether we are in the foreground."""
        try:
            return self._fd >= 0 and os.tcgetpgrp(self._fd) == self._own_group
        except OSError:  # the terminal has gone away
            return False

    @property
    def is_lent(self) -> bool:
        """Whether the job has been given it."""
        return self._is_lent

    def lend(self, group: int) -> bool:
        """Put a process group into the foreground, if we are there ourselves; return whether."""
        if not self.is_ours:
            return False
        self._is_lent = self._set(group)
        return self._is_lent

    def take(self) -> None:
        """Put ourselves into the foreground again, whichever group of the job has got there
        meanwhile.
        """
        if self._is_lent:
            self._set(self._own_group)
            self._is_lent = False

    def restore(self) -> None:
        """Set the modes that there were, for a job that could not do so any more, if it has the
        terminal from us.
        """
        self.take()
        if self._modes is not None and self.is_ours:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)

    def _set(self, group: int) -> bool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        try:
            os.tcsetpgrp(self._fd, group)
        except OSError:  # the group has ended, or the terminal has gone away
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return True


@contextlib.contextmanager
def ignoring_signals() -> Iterator[tuple[int, ...]]:
    """Start processes that ignore :data:`FORWARDED` in this block; gives the signals that were
    ignored already.
    """
    before = {number: signal.getsignal(number) for number in FORWARDED}
    try:
        for number in FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        yield tuple(number for number, handler in before.items() if handler is signal.SIG_IGN)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class SandboxJob:
    """A process that leads a group of its own, and everything that it starts in it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        init: int,
        terminal: Terminal,
        *,
        kill: Callable[[], None],
        each_look: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        """``init`` is the pid of the sandbox's first process, as we see it.

        ``kill`` ends it, and the job's process; ``each_look`` is called about once in
        :data:`LOOKS_S`, ``tell`` with the reason if it has to be ended.
        """
        self._process = process
        self._group = process.pid
        self._init = init
        self._terminal = terminal
        self._kill = kill
        self._each_look = each_look
        self._tell = tell
        self._next_look_s = time.monotonic() + LOOKS_S
        self._forced_end = ForcedEnd(init)
        self.was_killed = False
        """Whether it did not end by itself when it should have."""

    def wait(self) -> int:
        """Wait for the end, passing signals on and stopping and going on together; return the exit
        code.

        Where the job has not been lent the terminal, it gets it when it asks for it.
        """
        with _woken_by_signals() as woken, self._passing_on():
            while True:
                pid, status = os.waitpid(self._group, os.WUNTRACED | os.WNOHANG)
                if pid and not os.WIFSTOPPED(status):
                    break
                if pid:
                    self._stopped(os.WSTOPSIG(status))
                elif select.select([woken], [], [], LOOKS_S)[0]:
                    os.read(woken, 4096)
                if time.monotonic() >= self._next_look_s:
                    self._look()
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        if self._forced_end.status is not None:  # what the command ended with: nobody was there to pass it on
            code = os.waitstatus_to_exitcode(self._forced_end.status)
        return code if code >= 0 else 128 - code

    def _look(self) -> None:
        self._next_look_s = time.monotonic() + LOOKS_S
        self._each_look()
        reason = self._forced_end.why_now() if not self.was_killed else ""
        if reason:
            self.was_killed = True
            self._kill()
            self._tell(reason)

    def _stopped(self, number: int) -> None:
        """Stop as the job has, until somebody lets us go on; then let the job go on.

        Without a terminal nobody would, and no signal would end us: there the job just goes on.
        """
        if number in _WANTS_TERMINAL and self._terminal.is_ours:
            self._terminal.lend(self._group)
        elif self._terminal.is_there:
            had_terminal = self._terminal.is_lent
            self._wait_until_all_stop(number)
            self._terminal.take()
            self._stop_ourselves(number)
            if had_terminal or number in _WANTS_TERMINAL:
                self._terminal.lend(self._group)
        self._signal_group(signal.SIGCONT)

    def _wait_until_all_stop(self, number: int) -> None:
        """Wait while processes of the job have not yet noticed that they are to stop.

        On a busy machine its first one stops long before others.  What waits for a line of the
        terminal would still take what is typed at the shell's prompt.
        """
        deadline = time.monotonic() + _STOPS_WITHIN_S
        for pid in _members(self._group):
            while _is_waiting_for(pid, number) and time.monotonic() < deadline:
                time.sleep(0.001)  # between two looks, with a deadline: nothing tells when a signal is delivered

    @staticmethod
    def _stop_ourselves(number: int) -> None:
        """Stop like the job, with the other processes of our group: a pipeline is stopped as one.

        Never by SIGSTOP, which also stops those whom no shell could let go on.
        """
        if number == signal.SIGSTOP:
            os.kill(os.getpid(), signal.SIGTSTP)
            return
        os.kill(0, number)

    @contextlib.contextmanager
    def _passing_on(self) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in (*FORWARDED, signal.SIGWINCH)}
        try:
            for number, handler in before.items():
                if handler is not signal.SIG_IGN:
                    signal.signal(number, lambda number, _: self._pass_on(number))
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _pass_on(self, number: int) -> None:
        self._forced_end.note_signal(number)
        self._signal_all(number)
        if number in (signal.SIGTERM, signal.SIGHUP):  # what is stopped would end only when it goes on
            self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        self._signal_group(number)
        for pid in self._started():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self._group:  # a shell that does job control of its own
                    os.kill(pid, number)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)

    def _started(self) -> list[int]:
        """Return the processes that the sandbox's first one has started: the command, and
        orphans.
        """
        return children(self._init)


@contextlib.contextmanager
def _woken_by_signals() -> Iterator[int]:
    """Give a descriptor that can be read from once a signal has been handled, also that a child
    stopped or ended.
    """
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        before = signal.signal(signal.SIGCHLD, lambda *_: None)
        woken_before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        blocked_before = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        try:
            yield read
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
            signal.set_wakeup_fd(woken_before)
            signal.signal(signal.SIGCHLD, before)
    finally:
        os.close(read)
        os.close(write)


def start_without_signals(thread: threading.Thread) -> None:
    """Start a thread to which no signal is delivered: the thread that waits for the command has to
    notice each.
    """
    before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _members(group: int) -> list[int]:
    """Return the processes of a group."""
    members = []
    for entry in os.scandir("/proc"):
        with contextlib.suppress(ValueError, OSError):
            if os.getpgid(int(entry.name)) == group:
                members.append(int(entry.name))
    return members


def _is_waiting_for(pid: int, number: int) -> bool:
    """Tell whether a signal has been sent to a process that will get it as soon as it has time."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            lines = status.read().splitlines()
    except OSError:  # it has ended
        return False
    fields = {name: value for name, _, value in (line.partition(b":") for line in lines)}
    if fields.get(b"State", b"").split()[:1] in ([b"T"], [b"Z"]):  # it was stopped before, or has ended
        return False
    pending, shared, blocked = (int(fields.get(name, b"0"), 16) for name in _MASKS)
    return bool((pending | shared) & ~blocked & 1 << number - 1)
