"""The daemon's process, where its end has to be waited for or no connection leads to it."""

from __future__ import annotations

import contextlib
import select
import signal

from yolofs.daemon.rpc.daemon_files import read_daemon_file
from yolofs.session.opening.lock import has_open
from yolofs.system.processes import pidfd_of

_EXIT_TIMEOUT_S = 10.0


def is_daemon_alive(directory: bytes) -> bool:
    """Tell whether the daemon of the session in ``directory`` goes on, at whose socket nobody
    answers.

    One that is just ending has taken ``daemon.json`` away before its socket.
    """
    described = read_daemon_file(directory)
    return described is not None and has_open(described.pid, directory)


def end_unreachable(directory: bytes) -> bool:
    """Have the daemon of the session in ``directory`` end, to which no connection leads, and kill
    it if it does not; return whether there was one.

    The mount that it leaves then has to be taken away.
    """
    described = read_daemon_file(directory)
    if described is None:
        return False
    with pidfd_of(described.pid) as pidfd:
        if pidfd is None or not has_open(described.pid, directory):
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        if not has_ended(pidfd):
            kill(pidfd)
            has_ended(pidfd)
    return True


def kill(pidfd: int | None) -> None:
    """Kill a process, if there is one."""
    if pidfd is not None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def has_ended(pidfd: int | None) -> bool:
    """Wait for a process to end; False if it does not for long."""
    if pidfd is None:
        return True
    waiting = select.poll()
    waiting.register(pidfd, select.POLLIN)
    return bool(waiting.poll(_EXIT_TIMEOUT_S * 1000))
