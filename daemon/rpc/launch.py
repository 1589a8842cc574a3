"""Starting a daemon, and waiting until it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import msgspec

from yolofs.daemon.rpc.daemon_files import log_path, open_log
from yolofs.daemon.rpc.protocol import INTERNAL_ERROR, Info, Readiness, error_from
from yolofs.errors import DaemonError, MountError, TrustError
from yolofs.paths import display
from yolofs.registry.state_directory import open_state, state_of
from yolofs.system.processes import ending_text

_LOG_TAIL_LINES = 5


class StartedDaemon(NamedTuple):
    """A daemon that serves."""

    process: subprocess.Popen[bytes]
    info: Info


def launch(project: bytes, directory: bytes, *, root: bytes | None, in_foreground: bool) -> StartedDaemon:
    """Start the daemon of ``project``, whose session is in ``directory``, and wait until it serves.

    In the foreground it stays in our process group and its log goes to our stderr.  When this
    raises, no process is left.

    Raises:
        MountError: its log cannot be written.
        YolofsError: what the daemon reported.
        DaemonError: it died without a word; the message ends with the last lines of its log.
    """
    try:
        log_fd = os.dup(2) if in_foreground else open_log(directory)
    except OSError as error:
        raise MountError(
            f"cannot write {display(log_path(directory))}: {error.strerror}",
            hint="make that writable, or make room there; then try again",
        ) from error
    log_start = os.fstat(log_fd).st_size
    read_fd, write_fd = os.pipe()
    state_fd = _open_state(directory)
    command = [sys.executable, "-P", "-m", "yolofs.daemon"]
    command += ["--state-fd", str(state_fd)] if state_fd is not None else []
    command += ["--ready-fd", str(write_fd), "--project", os.fsdecode(project)]
    if root is not None:
        command += ["--root", os.fsdecode(root)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            pass_fds=[write_fd] if state_fd is None else [write_fd, state_fd],
            start_new_session=not in_foreground,
        )
    except BaseException:
        os.close(read_fd)
        raise
    finally:
        for fd in (write_fd, log_fd, *([] if state_fd is None else [state_fd])):
            os.close(fd)
    try:
        with open(read_fd, "rb") as pipe:
            line = pipe.read()
        return StartedDaemon(process, _ready_info(line, process, directory, log_start))
    except BaseException:
        _end(process)
        raise


def _open_state(session: bytes) -> int | None:
    """Open the state directory of a session for the daemon's first survey; None if that cannot be:
    it says so later.
    """
    try:
        return open_state(state_of(session))
    except (OSError, TrustError):
        return None


def _ready_info(line: bytes, process: subprocess.Popen[bytes], directory: bytes, log_start: int) -> Info:
    try:
        readiness = msgspec.json.decode(line, type=Readiness)
    except msgspec.DecodeError:
        readiness = Readiness()
    if readiness.ready is not None:
        return readiness.ready
    if readiness.error is not None and readiness.error.code != INTERNAL_ERROR:
        raise error_from(readiness.error)
    how = ending_text(process.wait())
    raise DaemonError(
        f"the daemon {how} before it served; its log ends with:\n{_log_tail(directory, log_start)}",
        hint=f"the whole log is {display(log_path(directory))}",
    )


def _log_tail(directory: bytes, start: int) -> str:
    try:
        with open(log_path(directory), "rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return "\n".join(f"  {line}" for line in lines[-_LOG_TAIL_LINES:]) or "  (nothing)"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
