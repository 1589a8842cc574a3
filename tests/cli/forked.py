"""Runs ``yolofs`` in a process that starts as a copy of one which has imported it already.

A command takes 100 to 250 ms of processor time, most of it for the start of Python and for imports,
and the tests give thousands.  So each process that runs tests keeps a server, which imports the
program once and then only forks.  All else is as it would be: a command has a process, directory,
environment, umask and streams of its own, and ends as that process ends.  A daemon that it starts,
which takes twice as long, is forked in the same way, and the daemon's watcher from it; what it
looks for in the machine's own directories is looked for once (tests/support/kept_survey.py).

Where a fork would not be what a start would have been, :meth:`Server.run` refuses.  That commands
work from a cold start as well is shown by ``tests/cli/test_cold_start.py``, and by all tests that
start ``COMMAND`` themselves.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

import trio

_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_")
"""Variables that Python, libc and the loader read when a process starts: a fork would have its
parent's.
"""
_INHERITED = ("Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Seccomp:", "SigBlk:", "SigIgn:", "CapEff:", "CapBnd:")
"""What a process has from its parent, as ``/proc/self/status`` names it."""
_LONGEST_REQUEST = 100_000
_MAX_FD = 1 << 20
_CHECKOUT = str(Path(__file__).parents[2])
_SURVEY = f"{_CHECKOUT}/tests/support/kept_survey.py"


class Server:
    """The process from which commands are forked, as the tests see it."""

    def __init__(self) -> None:
        self._inherited = _inherited(os.environ)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "error", __file__, str(theirs.fileno())],
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
        what |= {"script": script, "code": code, "leads": False}
        request = json.dumps(what).encode()
        if len(request) > _LONGEST_REQUEST or self._inherited != _inherited(env):
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
        request = json.dumps(what | {"script": "", "code": "", "leads": True}).encode()
        if len(request) > _LONGEST_REQUEST or self._inherited != _inherited(env):
            return None
        reading, writing = os.pipe()
        theirs = array.array("i", [streams[1], streams[2], writing, streams[0]])
        try:
            self._requests.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, theirs)])
        finally:
            os.close(writing)
        return Started(words, reading)


class Started:
    """A command that was started, as whoever started it sees it in ``subprocess.Popen``."""

    def __init__(self, words: Sequence[str], told: int) -> None:
        """``told``: where the server tells its pid and how it ended."""
        self.words = words
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
                raise subprocess.TimeoutExpired(self.words, timeout or 0)
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


# ---- in the server


def _serve(requests: socket.socket) -> None:
    """Fork a command for each request, and say of each how it ended, until nobody asks any more."""
    _import_program()
    gc.collect()
    gc.freeze()
    at_work: dict[int, tuple[int, int]] = {}  # by pidfd: the pid, and where its end is told
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not requests:
                    pid, telling = at_work.pop(key.fd)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _tell(telling, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
                    os.close(telling)
                    continue
                data, fds, _, _ = socket.recv_fds(requests, 2 * _LONGEST_REQUEST, 4)
                if not data:
                    return
                pid = os.fork()
                if pid == 0:
                    _become_command(json.loads(data), fds)
                for fd in (*fds[:2], *fds[3:]):
                    os.close(fd)
                _tell(fds[2], f"{pid} ")
                pidfd = os.pidfd_open(pid)
                at_work[pidfd] = pid, fds[2]
                selector.register(pidfd, selectors.EVENT_READ)


def _import_program() -> None:
    """Import all of it, and what it imports when it comes to that: else each command and daemon
    would.
    """
    import multiprocessing.popen_fork  # noqa: F401 - so that it is there
    import tempfile  # noqa: F401 - the same
    import termios  # noqa: F401 - the same

    import anyio._backends._trio  # noqa: F401 - the same
    import watchfiles  # noqa: F401 - the same

    import yolofs

    for module in pkgutil.walk_packages(yolofs.__path__, "yolofs."):
        importlib.import_module(module.name)


def _tell(fd: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked does not wait any more
        os.write(fd, text.encode())


def _become_command(request: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    """Be the process of a command; the streams of Python stay where they are the same: no
    terminals.
    """
    try:
        os.dup2(fds[0], 1)
        os.dup2(fds[1], 2)
        if fds[3:]:
            os.dup2(fds[3], 0)
            _open_streams()
        if request["leads"]:
            os.setsid()
        os.closerange(3, _MAX_FD)
        os.chdir(request["cwd"])
        os.umask(request["umask"])
        if request["most_memory"] is not None:
            resource.setrlimit(resource.RLIMIT_AS, (request["most_memory"],) * 2)
        os.environ.clear()
        os.environ.update(request["env"])
        if request["script"]:
            sys.path.append(_CHECKOUT)
            sys.argv = [request["script"], *request["words"]]
            runpy.run_path(request["script"], run_name="__main__")
            sys.stdout.flush()
            os._exit(0)
        from yolofs.cli import main
        from yolofs.daemon.rpc import launch

        # a class in the place of a module: what of it is used, it has
        launch.subprocess = _Subprocess  # type: ignore[assignment, attr-defined]
        if request["code"]:
            _run_code(request["code"], request["words"])
        sys.argv = [main.__file__, *request["words"]]
        main.program()
    except BaseException:  # noqa: BLE001 - the process must not go on as a server
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _open_streams() -> None:
    """Make the streams of Python as it does at its start: of a terminal they are written to line by
    line.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        how = {"encoding": old.encoding, "errors": old.errors, "newline": "\n", "closefd": False}
        stream = open(fd, "w" if fd else "r", buffering=1 if name == "stderr" else -1, **how)  # noqa: SIM115 - for good
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run_code(code: str, words: Sequence[str]) -> NoReturn:
    sys.argv = ["-c", *words]
    status: object = 0
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


class _Daemon:
    """A daemon that is started, as whoever started it sees it in ``subprocess.Popen``."""

    def __init__(self, command: Sequence[str], *, stdout: int, pass_fds: Sequence[int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _become_daemon(command, stdout, pass_fds[0])

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end."""
        if self.returncode is None:
            pidfd = os.pidfd_open(self.pid)
            ended, _, _ = select.select([pidfd], [], [], timeout_s)
            os.close(pidfd)
            if not ended:
                raise subprocess.TimeoutExpired("yolofs.daemon", timeout_s or 0)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)


class _Subprocess:
    """What :mod:`yolofs.daemon.rpc.launch` uses of ``subprocess``."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def Popen(command: Sequence[str], **options: Any) -> Any:  # noqa: N802 - its name
        """Start a daemon; one in the foreground really, as it shares more with us."""
        if options["start_new_session"]:
            return _Daemon(command, stdout=options["stdout"], pass_fds=options["pass_fds"])
        return subprocess.Popen(command, **options)


def _become_daemon(command: Sequence[str], log_fd: int, ready_fd: int) -> NoReturn:
    """Be the process of a daemon in a session of its own, with what a start would have given it."""
    status = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, ours in ((null, 0), (log_fd, 1), (log_fd, 2)):
            os.dup2(fd, ours)
        ready_fd = os.dup2(ready_fd, 3)
        os.closerange(4, _MAX_FD)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        gc.enable()
        from yolofs.daemon import main, native_binds
        from yolofs.daemon.follow import base_watch

        # an object in the place of a module, which passes on all but the one call that it replaces
        native_binds.native_survey = SimpleNamespace(__file__=_SURVEY)  # type: ignore[assignment, attr-defined]
        base_watch.trio = _Trio()  # type: ignore[assignment, attr-defined]
        words = list(command[command.index("--ready-fd") :])
        words[1] = str(ready_fd)
        sys.argv = [main.__file__, *words]
        status = main.main(words)
    except BaseException:  # noqa: BLE001 - the process must not go on as a command
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class _Trio:
    """What :mod:`yolofs.daemon.follow.base_watch` uses of ``trio``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(trio, name)

    @staticmethod
    async def run_process(command: Sequence[str], *, task_status: trio.TaskStatus[Any], **_: Any) -> None:
        """Start a watcher, and end it with the task."""
        ends, writing = os.pipe()
        reading, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become_watcher(command, ends, tells)
        os.close(ends)
        os.close(tells)
        pidfd = os.pidfd_open(pid)
        task_status.started(SimpleNamespace(stdout=trio.lowlevel.FdStream(reading)))  # who reads it may do so still
        try:
            await trio.lowlevel.wait_readable(pidfd)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pidfd)
            os.close(writing)


def _become_watcher(command: Sequence[str], stdin: int, stdout: int) -> NoReturn:
    """Be the process of a watcher."""
    try:
        signal.set_wakeup_fd(-1)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.closerange(3, _MAX_FD)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        from yolofs.daemon.follow import watcher

        os._exit(watcher.main(command[command.index(watcher.__name__) + 1 :]))
    except BaseException:  # noqa: BLE001 - the process must not go on as a daemon
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        _serve(requests)
