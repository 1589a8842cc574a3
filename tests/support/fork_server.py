"""The process from which commands are forked (:mod:`tests.support.forked`), started as a script;
its forks become commands, daemons and their watchers, and commands that a daemon runs for clients.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import secrets
import select
import selectors
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import msgspec
import trio

LONGEST_REQUEST = 100_000
_daemons_ask_at = ""
"""The socket at which daemons ask for commands; they have it from the server, whose forks they are.
"""
LIMITS = "YOLOFS_TEST_LIMITS"
"""The variable in which a test gives limits of the program that it does not want to wait for, as
``module:name=seconds``, separated by blanks.
"""
_MAX_FD = 1 << 20
_CHECKOUT = str(Path(__file__).parents[2])


def _serve(requests: socket.socket) -> None:
    """Fork a command for each request, and say of each how it ended, until nobody asks any more."""
    global _daemons_ask_at
    _import_program()
    _daemons_ask_at = f"\0yolofs-forks-{os.getpid()}-{secrets.token_hex(8)}"  # no file, which a test could remove
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemons:
        daemons.bind(_daemons_ask_at)
        daemons.listen()
        _answer(requests, daemons)


def _answer(requests: socket.socket, daemons: socket.socket) -> None:
    """Answer those that ask: the tests, and daemons, each of which comes for one command."""
    gc.collect()
    gc.freeze()
    _take_less()
    at_work: dict[int, tuple[int, int]] = {}  # by pidfd: the pid, and where its end is told
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(daemons, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is daemons:
                    asking = daemons.accept()[0]
                elif key.fileobj is requests:
                    asking = requests
                else:
                    pid, telling = at_work.pop(key.fd)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _tell(telling, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
                    os.close(telling)
                    continue
                data, fds, _, _ = socket.recv_fds(asking, 2 * LONGEST_REQUEST, 4)
                if asking is not requests:
                    asking.close()
                    if not data:
                        continue  # it was ended before it could ask
                elif not data:
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
    import termios  # noqa: F401 - the same
    import tomllib  # noqa: F401 - the same

    import anyio._backends._trio  # noqa: F401 - the same
    import prompt_toolkit.input.vt100
    import prompt_toolkit.key_binding.bindings.search
    import prompt_toolkit.patch_stdout  # noqa: F401 - the same
    import watchfiles  # noqa: F401 - the same

    import yolofs

    for module in pkgutil.walk_packages(yolofs.__path__, "yolofs."):
        importlib.import_module(module.name)
    _make_what_each_makes_once()


def _make_what_each_makes_once() -> None:
    """Make what every command or daemon would make anew, and what is the same for all."""
    import argparse

    import click

    from yolofs.cli.group import COMMANDS, cli
    from yolofs.hostcode import code_files
    from yolofs.sandbox import namespaces

    argparse.ArgumentParser()  # compiles its patterns
    context = click.Context(cli, **cli.context_settings)
    cli.get_help_option(context)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        command.get_help_option(click.Context(command, parent=context))
    _look_at_fields(msgspec.Struct)
    home = os.path.abspath(os.path.expanduser(b"~"))
    code_files.built_in(home, os.environ.get("XDG_CONFIG_HOME", ""))
    code_files.patterns_anywhere()
    with contextlib.suppress(OSError):
        namespaces.find_possible()  # a process whose kernel may answer otherwise is no fork of ours


def _look_at_fields(above: type) -> None:
    """Have msgspec find out what the fields of all structures are."""
    structure: type
    for structure in above.__subclasses__():
        with contextlib.suppress(TypeError, NameError):  # not one that is decoded
            msgspec.json.Decoder(structure)
        _look_at_fields(structure)


def _take_less() -> None:
    """Have each fork take less memory, and not wait for the disk; the checkout is no place of
    modules for the commands.
    """
    sys.path.append(_CHECKOUT)
    from tests.support import huge_pages, kept_survey, unsynced  # noqa: F401 - of the survey, so that it is there

    sys.path.remove(_CHECKOUT)
    unsynced.install()
    huge_pages.collapse()


def _tell(fd: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked does not wait any more
        os.write(fd, text.encode())


def _become_command(request: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    """Be the process of a command, or of a daemon; the streams of Python stay where they are the
    same: no terminals.

    ``fds``: its stdout, stderr and where its end is told, and its stdin if it has one.  Of a daemon
    the first is its log, and the second is where it says that it serves.
    """
    try:
        os.dup2(fds[0], 1)
        os.dup2(fds[0 if request["daemon"] else 1], 2)
        if fds[3:]:
            os.dup2(fds[3], 0)
            _open_streams()
        if request["leads"]:
            os.setsid()
        ready_fd = os.dup2(fds[1], 3) if request["daemon"] else 2
        os.closerange(ready_fd + 1, _MAX_FD)
        os.chdir(request["cwd"])
        os.umask(request["umask"])
        if request["most_memory"] is not None:
            resource.setrlimit(resource.RLIMIT_AS, (request["most_memory"],) * 2)
        _set_environment(request["env"])
        if request["daemon"]:
            _become_daemon(request["daemon"], 1, ready_fd)
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
        _set_limits()
        if request["code"]:
            _run_code(request["code"], request["words"])
        sys.argv = [main.__file__, *request["words"]]
        main.program()
    except BaseException:  # noqa: BLE001 - the process must not go on as a server
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _set_environment(wanted: Mapping[str, str]) -> None:
    """Have the environment be as wanted; what is so already takes no time."""
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _set_limits() -> None:
    """Have this process wait as long as the test says; a process that was not forked waits as the
    program does.
    """
    for limit in os.environ.get(LIMITS, "").split():
        place, _, seconds = limit.partition("=")
        module, _, name = place.partition(":")
        assert isinstance(getattr(sys.modules[module], name), float), f"{limit} is no limit in seconds"
        setattr(sys.modules[module], name, float(seconds))


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
        from yolofs.daemon import command_process, main, native_binds
        from yolofs.daemon.follow import base_watch

        # an object in the place of a module, which passes on all but the one call that it replaces
        native_binds.survey_process = SimpleNamespace(start=_start_survey)  # type: ignore[assignment, attr-defined]
        base_watch.trio = _Trio(_watch)  # type: ignore[assignment, attr-defined]
        command_process.trio = _Commands  # type: ignore[assignment, attr-defined]
        _set_limits()
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


class _Commands:
    """What :mod:`yolofs.daemon.command_process` uses of ``trio``: a class in the place of the
    module.
    """

    @staticmethod
    async def run_process(
        command: Sequence[str | bytes],
        *,
        stdin: bytes | int,
        stdout: int,
        stderr: int,
        check: bool,
        env: Mapping[str, str],
    ) -> SimpleNamespace | subprocess.CompletedProcess[bytes]:
        """Run a module of the program, and wait for its end; end it if this is cancelled."""
        module, *words = (os.fsdecode(word) for word in command[command.index("-m") + 1 :])
        code = f"import sys; from {module} import run; sys.exit(run(sys.argv[1:]))"
        what = {"words": words, "cwd": os.getcwd(), "env": dict(env), "umask": _umask(), "most_memory": None}
        what |= {"script": "", "code": "" if module == "yolofs.cli.main" else code, "leads": False, "daemon": []}
        request = json.dumps(what).encode()
        if len(request) > LONGEST_REQUEST:
            return await trio.run_process(command, stdin=stdin, stdout=stdout, stderr=stderr, check=check, env=env)
        reading, telling = os.pipe()
        given = os.memfd_create("input") if isinstance(stdin, bytes) else os.open(os.devnull, os.O_RDONLY)
        try:
            if isinstance(stdin, bytes):
                os.pwrite(given, stdin, 0)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
                asking.connect(_daemons_ask_at)
                socket.send_fds(asking, [request], [stdout, stderr, telling, given])
        finally:
            os.close(given)
            os.close(telling)
        return SimpleNamespace(returncode=await _end_of(reading))


def _umask() -> int:
    """Return this process's umask, which its other threads go by meanwhile."""
    return int(Path("/proc/self/status").read_text().partition("\nUmask:")[2].split()[0], 8)


async def _end_of(told: int) -> int:
    """Wait until the server has told how a command has ended; ask that to end if this is
    cancelled.
    """
    said = b""

    async def hear(until: bytes) -> None:
        nonlocal said
        while until not in said:
            await trio.lowlevel.wait_readable(told)
            heard = os.read(told, 100)
            assert heard, "the server of commands has ended"
            said += heard

    try:
        await hear(b"\n")
    except trio.Cancelled:
        with trio.CancelScope(shield=True):
            await hear(b" ")
            if b"\n" not in said:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(int(said.split()[0]), signal.SIGTERM)
            await hear(b"\n")
        raise
    finally:
        os.close(told)
    return int(said.split()[1])


class _Trio:
    """What :mod:`yolofs.daemon.follow.base_watch` uses of ``trio``."""

    def __init__(self, do: Callable[[Sequence[str]], object]) -> None:
        """``do``: what a process that is started with such a command does."""
        self._do = do

    def __getattr__(self, name: str) -> Any:
        return getattr(trio, name)

    async def run_process(self, command: Sequence[str], *, task_status: trio.TaskStatus[Any], **_: Any) -> None:
        """Start a process, and end it with the task."""
        ends, writing = os.pipe()
        reading, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become_helper(lambda: self._do(command), ends, tells, [])
        os.close(ends)
        os.close(tells)
        pidfd = os.pidfd_open(pid)
        task_status.started(SimpleNamespace(stdout=trio.lowlevel.FdStream(reading)))  # a reader may do so still
        try:
            await trio.lowlevel.wait_readable(pidfd)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pidfd)
            os.close(writing)


def _start_survey(state: int, *, is_first: bool) -> SimpleNamespace:
    """Do what :func:`yolofs.daemon.runs.survey_process.start` does."""
    reading, wanted = os.pipe()
    reports, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_helper(lambda: _survey(state, is_first=is_first), reading, writing, [state] if state >= 0 else [])
    os.close(reading)
    os.close(writing)
    process = SimpleNamespace(kill=lambda: os.kill(pid, signal.SIGKILL), wait=lambda: os.waitpid(pid, 0))
    return SimpleNamespace(process=process, wanted=wanted, reports=reports)


def _become_helper(do: Callable[[], object], stdin: int, stdout: int, keep: Sequence[int]) -> NoReturn:
    """Be a process that a daemon has started."""
    try:
        signal.set_wakeup_fd(-1)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        first = 3
        for fd in (*sorted(keep), _MAX_FD):
            os.closerange(first, fd)
            first = fd + 1
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        do()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the process must not go on as a daemon
        traceback.print_exc()
    finally:
        os._exit(1)


def _watch(command: Sequence[str]) -> None:
    from yolofs.daemon.follow import watcher

    os._exit(watcher.main(command[command.index(watcher.__name__) + 1 :]))


def _survey(state: int, *, is_first: bool) -> None:
    from tests.support import kept_survey
    from yolofs.daemon.runs.survey_process import haste

    os.chdir("/")
    kept_survey.main(state, haste(is_first=is_first))


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        _serve(requests)
