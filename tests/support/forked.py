"""Runs ``yolofs`` in a process that starts as a copy of one which has imported it already.

A command takes 100 to 250 ms of processor time, most of it for the start of Python and for imports,
and the tests give thousands.  So each process that runs tests keeps a server, which imports the
program once and then only forks.  All else is as it would be: a command has a process, directory,
environment, umask and streams of its own, and ends as that process ends.  A daemon takes twice as
long to start; it is forked in the same way, and so is its watcher.  Its survey of the machine's own
directories is made once (tests/support/kept_survey.py).  A test that only wants a mount has the
daemon forked without a command (tests/support/forked_daemon.py).

Where a fork would not be what a start would have been, :meth:`Server.run` refuses.  That commands
work from a cold start as well is shown by ``tests/cli/test_cold_start.py``, and by all tests that
start ``COMMAND`` themselves.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from tests.support import fork_server
from tests.support.fork_server import LONGEST_REQUEST

_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_")
"""Variables that Python, libc and the loader read when a process starts: a fork would have its
parent's.
"""
_INHERITED = ("Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Seccomp:", "SigBlk:", "SigIgn:", "CapEff:", "CapBnd:")
"""What a process has from its parent, as ``/proc/self/status`` names it."""


class Server:
    """The process from which commands are forked, as the tests see it."""

    def __init__(self) -> None:
        self._inherited = _inherited(os.environ)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "error", fork_server.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # nobody reads them; Python's streams are made for what a command gets
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        self.pid = self._process.pid

    def stop(self) -> None:
        """End the server; commands that are still at work go on."""
        self._requests.shutdown(socket.SHUT_RDWR)  # a process that was forked from ours may hold it open
        self._requests.close()
        self._process.communicate()

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        most_memory: int | None = None,
        script: str = "",
        code: str = "",
        given: bytes | None = None,
    ) -> subprocess.CompletedProcess[bytes] | None:
        """Do what ``subprocess.run`` does of a command whose output is captured; None if it cannot.

        ``given``: its input, if it gets any, as much as a pipe holds.  ``most_memory`` limits its
        address space, in bytes.  ``script`` is run instead of the program: a Python file, which
        finds the checkout's modules; or ``code`` is, as by ``python -c``.
        """
        what = {"words": words, "cwd": cwd, "env": dict(env), "umask": _umask(), "most_memory": most_memory}
        what |= {"script": script, "code": code, "leads": False, "daemon": []}
        request = json.dumps(what).encode()
        if len(request) > LONGEST_REQUEST or self._inherited != _inherited(env):
            return None
        pipes = [os.pipe() for _ in range(3)]
        theirs = array.array("i", [writing for _, writing in pipes])
        if given is not None:
            theirs.append(_pipe_of(given))
        try:
            self._requests.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, theirs)])
        finally:
            for fd in theirs:
                os.close(fd)
        out, err, end = _read_all([reading for reading, _ in pipes], timeout_s)
        if b"\n" not in end:
            raise RuntimeError(f"the server of commands has ended: {self._process.communicate()[1].decode()}")
        return subprocess.CompletedProcess(words, int(end.split()[1]), out, err)

    def start(
        self, words: Sequence[str], *, cwd: str, env: Mapping[str, str], streams: tuple[int, int, int]
    ) -> Started | None:
        """Start a command with its stdin, stdout and stderr, in a session of its own; None if that
        cannot be done.
        """
        what = {"words": words, "cwd": cwd, "env": dict(env), "umask": _umask(), "most_memory": None}
        what |= {"script": "", "code": "", "leads": True, "daemon": []}
        return self._start(what, env, [streams[1], streams[2]], [streams[0]])

    def start_daemon(
        self, command: Sequence[str], *, cwd: str, env: Mapping[str, str], log: int, ready: int
    ) -> Started | None:
        """Start a daemon that writes to a log, and tells on ``ready`` that it serves; None if it
        cannot be forked.
        """
        what = {"words": [], "cwd": cwd, "env": dict(env), "umask": _umask(), "most_memory": None}
        what |= {"script": "", "code": "", "leads": False, "daemon": list(command)}
        return self._start(what, env, [log, ready], [])

    def _start(
        self, what: Mapping[str, object], env: Mapping[str, str], first: Sequence[int], last: Sequence[int]
    ) -> Started | None:
        request = json.dumps(what).encode()
        if len(request) > LONGEST_REQUEST or self._inherited != _inherited(env):
            return None
        reading, writing = os.pipe()
        theirs = array.array("i", [*first, writing, *last])
        try:
            self._requests.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, theirs)])
        finally:
            os.close(writing)
        return Started(reading)


class Started:
    """A command that was started, as whoever started it sees it in ``subprocess.Popen``."""

    def __init__(self, told: int) -> None:
        """``told``: where the server tells its pid and how it ended."""
        self.returncode: int | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._told = told
        self._said = b""
        while b" " not in self._said:
            self._hear()
        self.pid = int(self._said.split()[0])

    def poll(self) -> int | None:
        """Return how it ended, None if it has not."""
        while self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self._hear()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not select.select([self._told], [], [], left)[0]:
                raise subprocess.TimeoutExpired("yolofs", timeout or 0)
            self._hear()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def forget(self) -> None:
        """Let it go on without anybody who waits for it."""
        if self.returncode is None:
            os.close(self._told)

    def _hear(self) -> None:
        said = os.read(self._told, 100)
        assert said, "the server of commands has ended"
        self._said += said
        if said.endswith(b"\n"):
            self.returncode = int(self._said.split()[1])
            os.close(self._told)


@cache
def server() -> Server:
    """Start the server of this process, once."""
    return Server()


def is_server(pid: int) -> bool:
    """Tell whether a process is the server of this one."""
    return server.cache_info().currsize > 0 and server().pid == pid


def stop() -> None:
    """End the server of this process, if there is one."""
    if server.cache_info().currsize:
        server().stop()
        server.cache_clear()


def _pipe_of(given: bytes) -> int:
    """Return the end to read from of a pipe that holds something, and then ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    assert os.write(writing, given) == len(given), "it is more than a pipe holds"
    os.close(writing)
    return reading


def _read_all(fds: Sequence[int], timeout_s: float) -> list[bytes]:
    """Read pipes until all have ended, and close them; the last one says first which process it is
    about.
    """
    found = dict.fromkeys(fds, b"")
    deadline = time.monotonic() + timeout_s
    try:
        with selectors.DefaultSelector() as selector:
            for fd in fds:
                selector.register(fd, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0))
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    found[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
                if not ready:
                    os.kill(int(found[fds[-1]].split()[0]), signal.SIGKILL)
                    raise subprocess.TimeoutExpired("yolofs", timeout_s, *(found[fd] for fd in fds[:2]))
    finally:
        for fd in fds:
            os.close(fd)
    return [found[fd] for fd in fds]


def _inherited(env: Mapping[str, str]) -> tuple[object, ...]:
    """Return what a child would take over from this process, and what it would read of ``env`` at
    its start.
    """
    status = [line for line in _read("status").splitlines() if line.startswith(_INHERITED)]
    variables = {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}
    return status, _read("limits"), os.readlink("/proc/self/ns/mnt"), variables


def _read(name: str) -> str:
    return Path("/proc/self", name).read_text()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
