"""The real program, run as a user runs it."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import forked, forked_daemon, may_mount
from yolofs.cli.project import connection
from yolofs.cli.rules.untrusted_settings import lines_to_agree_to
from yolofs.cli.sessions import starting
from yolofs.config.load import FILE_NAME
from yolofs.daemon.rpc.client import Client
from yolofs.session.session import Session

COMMAND = (sys.executable, "-P", "-W", "error", "-m", "yolofs.cli.main")
DEADLINE_S = 60.0
"""So long what is waited for may take; a test that passes does not wait for it."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout as a JSON document."""
        return json.loads(self.out)


def run_program(words: Sequence[str], cwd: Path, *, most_memory: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``yolofs`` without a terminal, whatever comes of it, with so many bytes of address
    space.
    """
    done = _run_forked(words, cwd, dict(os.environ), most_memory)
    out, err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def run_with_input(words: Sequence[str], cwd: Path, given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run ``yolofs`` with something short to read, whatever comes of it."""
    env = dict(os.environ)
    done = forked.server().run(words, cwd=str(cwd), env=env, timeout_s=DEADLINE_S, given=given)
    if done is not None:
        return done
    return subprocess.run(
        [*COMMAND, *words], cwd=cwd, env=env, input=given, capture_output=True, check=False, timeout=DEADLINE_S
    )


def run_code(code: str, words: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python code, as by ``python -c``, that changes something of the program before it runs
    it.
    """
    env = dict(os.environ)
    done = forked.server().run(words, cwd=str(cwd), env=env, timeout_s=DEADLINE_S, code=code)
    if done is None:
        done = _run_cold([*COMMAND[: COMMAND.index("-m")], "-c", code, *words], cwd, env)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


_KILLED = """
import os, signal, sys
import yolofs.{module} as module
from yolofs.cli import main

def killed(*words, **options):
    if {after}:
        real(*words, **options)
    os.kill(os.getpid(), signal.SIGKILL)

real = module.{name}
module.{name} = killed
sys.argv[0] = "yolofs"
main.program()
"""


def run_killed(
    words: Sequence[str], cwd: Path, *, module: str, name: str, after: bool
) -> subprocess.CompletedProcess[str]:
    """Run a command that is killed when it calls a function of a module of yolofs, or right after
    that.
    """
    return run_code(_KILLED.format(module=module, name=name, after=after), words, cwd)


def _run_forked(
    words: Sequence[str], cwd: Path, env: dict[str, str], most_memory: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a fork of a process with the program imported, if a fork is as good as a
    start.
    """
    done = forked.server().run(words, cwd=str(cwd), env=env, timeout_s=DEADLINE_S, most_memory=most_memory)
    return done if done is not None else _run_cold([*COMMAND, *words], cwd, env, most_memory)


def _run_cold(
    command: Sequence[str], cwd: Path, env: dict[str, str], most_memory: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    def limit() -> None:
        assert most_memory is not None
        resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))

    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
        preexec_fn=None if most_memory is None else limit,
    )


@dataclass(frozen=True, slots=True)
class Program:
    """``yolofs`` in a project; :meth:`__call__` runs a command there."""

    project: Path
    command: tuple[str, ...] = COMMAND
    starts_cold: bool = False
    """Whether Python is started for each command; else it is a fork of one that was
    (:mod:`tests.support.forked`).
    """
    daemon_starts_cold: bool = False
    """Whether it is for ``mount``, and so for the daemon."""

    def __call__(self, *words: str | bytes | Path, code: int | None = 0, cwd: Path | None = None, **env: str) -> Done:
        """Run a command that has to end with ``code`` (None: any), without a terminal."""
        done = self._run([*map(os.fsdecode, words)], cwd or self.project, os.environ | env)
        out, err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
        assert code in (done.returncode, None), f"exit code {done.returncode} and not {code}:\n{out}\n{err}"
        return Done(done.returncode, out, err)

    def _run(self, words: list[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
        is_cold = self.starts_cold or (self.daemon_starts_cold and words[0] == "mount")
        may_begin_mount = words[:1] in (["mount"], ["run"], ["shell"]) and not self._has_daemon_file()
        is_forked = self.command == COMMAND and not is_cold
        done = _run_forked(words, cwd, env) if is_forked else _run_cold([*self.command, *words], cwd, env)
        if may_begin_mount and self._has_daemon_file():
            may_mount.check()
        return done

    def _has_daemon_file(self) -> bool:
        """Tell whether a daemon serves the project, or a test has put such a file there."""
        return (self.session / "daemon.json").exists()

    def refused(self, *words: str | bytes | Path, code: int, cwd: Path | None = None, **env: str) -> str:
        """Run a command that has to be refused: nothing on stdout; return what it says."""
        done = self(*words, code=code, cwd=cwd, **env)
        assert done.out == ""
        assert done.err.startswith("yolofs: ")
        return done.err

    def start_session(self) -> None:
        """Do what ``yolofs init`` does, in this process: that is a fifth of the work."""
        Session.create(os.fsencode(self.project))
        starting.write_settings(os.fsencode(self.project / FILE_NAME))

    def trust(self) -> None:
        """Do what ``yolofs trust`` does, in this process: agree to all that the project's
        ``.yolofs.toml`` says, as it is now.
        """
        project = os.path.realpath(os.fsencode(self.project))
        files, waiting = lines_to_agree_to(project)
        files.agree(waiting)
        with connection.connected(project) as client:
            if client is not None:
                client.reload_rules()

    @property
    def session(self) -> Path:
        """The directory of the project's session; ``.yolofs`` in the project as long as it has
        none.
        """
        return Path(os.path.realpath(self.project / ".yolofs"))

    @property
    def log(self) -> str:
        """The daemon's log so far."""
        path = self.session / "daemon.log"
        return path.read_text() if path.exists() else ""

    @property
    def daemon(self) -> dict[str, Any]:
        """What ``daemon.json`` says."""
        document: dict[str, Any] = json.loads((self.session / "daemon.json").read_text())
        return document

    @contextmanager
    def mounted(self, *options: str | Path, expected_in_log: tuple[str, ...] = ()) -> Iterator[Path]:
        """Mount the project's own directory (or as ``options`` say); give the mountpoint; unmount
        at the end.

        The log must hold no warning but those ``expected_in_log``.
        """
        mountpoint = self._mount(*(options or ("--root", ".")))
        pid = self.daemon["pid"]
        try:
            yield mountpoint
        finally:
            if not os.path.ismount(mountpoint):  # the daemon has ended, or is about to and holds the session still
                wait_for_end(pid)
            if self._is_forked:
                forked_daemon.take_away(self.project)
            else:
                self("unmount", "--force")
        self.check_log(*expected_in_log)

    @property
    def _is_forked(self) -> bool:
        return self.command == COMMAND and not self.starts_cold and not self.daemon_starts_cold

    def _mount(self, *options: str | Path) -> Path:
        """Mount, without a command if the daemon can be forked and nothing but a root is given."""
        may_mount.check()
        if self._is_forked and options[:1] == ("--root",) and len(options) == 2:
            mountpoint = forked_daemon.mount(self.project, Path(options[1]))
            if mountpoint is not None:
                return mountpoint
        return Path(self("mount", *options).out.rstrip("\n"))

    def wait_for_watcher(self) -> None:
        """Wait until the daemon has started its watcher, else a test that shares the mount sees it
        come.
        """
        wait_until(lambda: "is watched" in self.log, "the daemon has started its watcher")

    def check_log(self, *expected: str) -> None:
        """Fail if the daemon logged anything to worry about, or not what is ``expected``."""
        worries = [line for line in self.log.splitlines() if line and " INFO " not in line]
        for text in expected:
            assert any(text in line for line in worries), f"not logged: {text}\n{self.log}"
        worries = [line for line in worries if not any(text in line for text in expected)]
        assert not worries, "\n".join(worries)


@contextmanager
def connected(yolofs: Program) -> Iterator[Client]:
    """Connect to the daemon of a program's project."""
    client = Client.connect(os.fsencode(yolofs.session))
    assert client is not None
    with client:
        yield client


def with_few_files(project: Path) -> Program:
    """Make a project with a session and a few files, and return the program in it."""
    project.mkdir()
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "dir").mkdir()
    (project / "dir/b.txt").write_text("b\n")
    program = Program(project)
    program.start_session()
    return program


def can_read(path: Path) -> bool:
    """Tell whether a file can be opened and read."""
    try:
        path.read_text()
    except OSError:
        return False
    return True


def can_append(path: Path) -> bool:
    """Tell whether a file can be opened to append to it."""
    try:
        path.open("ab").close()
    except PermissionError:
        return False
    return True


def replace_text(path: Path, text: str) -> None:
    """Write a file in one step, as a daemon that reads it may find it empty between the two that
    writing takes.
    """
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.rename(path)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a process a signal that ends it and wait until all its threads are gone, and what they
    held open.
    """
    os.kill(pid, number)
    wait_for_end(pid)


def stop(pid: int) -> None:
    """Stop a process and wait until none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    wait_until(lambda: all((task / "stat").read_text().rpartition(") ")[2][0] == "T" for task in tasks), "stopped")


def wait_for_end(pid: int) -> None:
    """Wait until all threads of a process are gone, if it is there."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], DEADLINE_S)[0], f"process {pid} has not ended"
    finally:
        os.close(fd)


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll until a condition holds; fail after :data:`DEADLINE_S`."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.01)
