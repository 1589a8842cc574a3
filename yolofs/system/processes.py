"""Process descriptors (pidfd), which stay right when a pid is used again; whether a process is
stopped, which ones it has started, and how one has ended, in words.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def pidfd_of(pid: int) -> Iterator[int | None]:
    """Give a descriptor that stands for exactly this process, None if it is gone or not in
    sight.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped (by SIGSTOP or Ctrl-Z, or by a debugger); False if it is
    gone or not in sight.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"T", b"t")
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that it has been left, the oldest
    first.
    """
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def session_members(session: int) -> list[int]:
    """Return the processes in a session of setsid(2): what its leader has started, unless that made
    a session of its own.
    """
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == session:
                    found.append(int(name))
    return found


def ending_text(code: int) -> str:
    """Return in words how a process has ended: by an exit code, or by the signal that a negative
    number stands for.
    """
    return f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"


def signal_name(number: int) -> str:
    """Return what a signal is called; those of real time have numbers alone."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
