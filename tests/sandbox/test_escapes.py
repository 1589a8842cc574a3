"""Ways out of the sandbox: each is closed, and open where what closes it is missing."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pty
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.attempts import ATTEMPTS, EACH, HEAD, HOST_FILES, NATIVE_BINDS, Attempt
from tests.support.binds import native_binds
from tests.support.fault_points import points
from tests.support.program import COMMAND, Program, wait_until
from yolofs.registry.runtime import AGENT_SOCKET_NAME
from yolofs.sandbox.bubblewrap import Sandbox, agent_socket_inside
from yolofs.sandbox.host_files import make_read_only, own_host_files
from yolofs.sandbox.namespaces import leave_mounts
from yolofs.sandbox.native_mounts import mount_over
from yolofs.sandbox.seccomp import compile_filter

pytestmark = pytest.mark.mount

IPC_RMID = 0
REPLACED = ("--bind",)
"""In the place of these options come those that are added, as what comes later lies on top."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What an attempt is after."""

    program: Program
    victim: int
    other_session: Path
    shm_key: str

    @property
    def mountpoint(self) -> bytes:
        return os.fsencode(self.program.daemon["mountpoint"])

    @property
    def static(self) -> Path:
        """A directory that comes straight from base."""
        return self.program.project.parent / "static"

    @property
    def live(self) -> Path:
        """A directory like it, but for what the programs in it could reach."""
        return self.program.project.parent / "live"

    @property
    def arguments(self) -> list[str]:
        """The arguments of an attempt's script."""
        sessions = [str(self.program.session), str(self.other_session)]
        return [str(self.program.project), str(self.victim), self.program.daemon["socket"], *sessions, self.shm_key]

    def bubblewrap(self, without: Sequence[str], extra: Sequence[str], start: Sequence[str]) -> str:
        """Run something in a sandbox that lacks some options, and return its stdout."""
        runtime_root = os.path.dirname(os.path.dirname(self.mountpoint))
        fd = os.memfd_create("filter", 0)
        os.write(fd, compile_filter(os.uname().machine))
        os.lseek(fd, 0, os.SEEK_SET)
        null_fd, info_fd = os.open("/dev/zero", os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
        sandbox = Sandbox(
            view=self.mountpoint,
            runtime_root=runtime_root,
            agent_socket=os.path.join(os.path.dirname(self.mountpoint), AGENT_SOCKET_NAME),
            covered=(),
            has_network=True,
            has_user_namespace=True,
            is_root=os.geteuid() == 0,
            seccomp_fd=fd,
            info_fd=info_fd,
            block_fd=null_fd,
        )
        names = {
            "VIEW": self.mountpoint,
            "RUNTIME": runtime_root,
            "CONTROL": self.program.daemon["socket"].encode(),
            "STATIC": bytes(self.static),
            "LIVE": bytes(self.live),
            "AGENT": sandbox.agent_socket,
            "AGENT_INSIDE": agent_socket_inside(runtime_root),
        }
        command = sandbox.command([])[:-1]
        added = [names.get(word, word.encode()) for word in extra]
        for option in without:
            if option in (HOST_FILES, NATIVE_BINDS):
                continue
            wanted = [names.get(word, word.encode()) for word in option.split()]
            wanted += [b"%d" % fd] if option == "--seccomp" else []
            at = next(at for at in range(len(command)) if command[at : at + len(wanted)] == wanted)
            command[at : at + len(wanted)] = added if option.startswith(REPLACED) else []
        if not any(option.startswith(REPLACED) for option in without):
            command += added
        try:
            done = subprocess.run(
                [*command, b"--", *map(os.fsencode, start)],
                preexec_fn=partial(self._mount, without),
                pass_fds=(fd, null_fd, info_fd),
                capture_output=True,
                check=False,
                timeout=60,
            )
        finally:
            for other in (fd, null_fd, info_fd):
                os.close(other)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def _mount(self, without: Sequence[str]) -> None:
        leave_mounts()
        if NATIVE_BINDS not in without:
            mount_over(self.mountpoint, {os.fsencode(self.static): [os.fsencode(self.static)]})
        if HOST_FILES not in without:
            make_read_only(own_host_files(os.environ["PATH"]))


@pytest.fixture(scope="module")
def scene(shared: Program) -> Iterator[Scene]:
    """Return a session with a process outside, shared memory, another session, device nodes, and so
    on.
    """
    project = shared.project
    (project / "real").write_text("real")
    (project / "link").symlink_to(".yolofs")
    static, live = project.parent / "static", project.parent / "live"
    static.mkdir()
    (static / "file").write_text("static")
    for directory in (project, static):
        with contextlib.suppress(PermissionError):
            os.mknod(directory / "node", stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero's
    for name in ("socket", "fifo", "session/.yolofs"):
        (live / name).mkdir(parents=True)
    (live / "session/.yolofs/journal").touch()
    os.mkfifo(live / "fifo/fifo")
    reader = os.open(live / "fifo/fifo", os.O_RDONLY | os.O_NONBLOCK)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(os.path.relpath(live), "socket/socket"))
    listener.listen()
    # The whole of `live` is not bound because of any of them, and each of its parts because of its
    # own.
    for path in (static, live / "socket", live / "fifo", live / "session"):
        shared("rule", "read-only", f"{path}/**")
    wait_until(lambda: str(static) in native_binds(shared), "a directory with nothing but files is bound")
    assert not [path for path in native_binds(shared) if path.startswith(str(live))]
    other = Program(project.parent / "other")
    other.project.mkdir()
    other.start_session()
    assert os.listdir("/sys")  # of the host; else nothing of it could show
    key = 0x79000000 + os.getpid()  # another process of this run removes its own at its end
    shm = ctypes.CDLL(None).shmget(key, 4096, 0o1600)
    victim = subprocess.Popen(["sleep", "606"], cwd="/")
    try:
        yield Scene(shared, victim.pid, other.session, str(key))
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
        os.close(reader)
        listener.close()
        ctypes.CDLL(None).shmctl(shm, IPC_RMID, None)


def _script(attempt: Attempt) -> str:
    return HEAD + attempt.script


@pytest.fixture(scope="module")
def tried(scene: Scene) -> dict[str, list[object]]:
    """Return what each attempt said, and how it ended: ten in one sandbox, each in a process of its
    own.
    """
    found: dict[str, list[object]] = {}
    for first in range(0, len(ATTEMPTS), 10):
        scripts = {name: _script(ATTEMPTS[name]) for name in list(ATTEMPTS)[first : first + 10]}
        words = ["/usr/bin/python3", "-c", EACH, json.dumps(scripts), *scene.arguments]
        found |= json.loads(scene.program("run", "--no-review", *words).out)
    return found


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_sandbox_keeps_each_attempt_in(scene: Scene, tried: dict[str, list[object]], name: str) -> None:
    assert tried[name] == ["kept in\n", "", 0]
    assert (scene.program.project / "real").read_text() == "real"


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root can the sandbox be made weaker in each of these ways")
@pytest.mark.parametrize("name", points(list(ATTEMPTS), "a weaker sandbox", some=8))
def test_a_weaker_sandbox_lets_each_attempt_out(scene: Scene, name: str) -> None:
    attempt = ATTEMPTS[name]
    start = ["/usr/bin/python3", "-c", _script(attempt), *scene.arguments]
    try:
        assert scene.bubblewrap(attempt.without, attempt.extra, start) == "out\n"
    finally:
        (scene.program.project / "real").write_text("real")


TYPE = "import fcntl, termios\nfor c in b'typed\\n': fcntl.ioctl(0, termios.TIOCSTI, bytes([c]))"
TYPE_HIGH = (
    "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "number = {'x86_64': 16}.get(__import__('os').uname().machine, 29)\n"
    "ok = libc.syscall(number, 0, ctypes.c_ulong(0x5412 | 1 << 32), b'x')\n"
    "raise SystemExit(ok == 0)"
)


def _in_terminal(command: Sequence[str | bytes], **options: Any) -> int:
    """Run a command with a terminal of its own as stdin; return its exit code."""
    master, slave = pty.openpty()
    try:
        wrapped = ["setsid", "--ctty", "--wait", *map(os.fsdecode, command)]
        done = subprocess.run(wrapped, stdin=slave, capture_output=True, check=False, timeout=60, **options)
    finally:
        os.close(master)
        os.close(slave)
    return int(done.returncode)


@pytest.mark.parametrize("script", [TYPE, TYPE_HIGH])
def test_nothing_is_typed_into_the_users_terminal(scene: Scene, script: str) -> None:
    program = [*COMMAND, "run", "/usr/bin/python3", "-c"]
    assert _in_terminal([*program, "pass"], cwd=scene.program.project) == 0
    assert _in_terminal([*program, script], cwd=scene.program.project) == int(script is TYPE)


@pytest.mark.skipif(
    os.geteuid() != 0 and Path("/proc/sys/dev/tty/legacy_tiocsti").read_text() == "0\n",
    reason="this kernel lets nobody but root type into a terminal",
)
def test_without_the_filter_something_is_typed_into_the_users_terminal(scene: Scene) -> None:
    plain = ["bwrap", "--dev-bind", "/", "/", "/usr/bin/python3", "-c", TYPE]
    assert _in_terminal(plain) == 0


def test_descriptors_from_outside_do_not_get_in(scene: Scene) -> None:
    list_them = (
        "import os\n"
        "for name in os.listdir('/proc/self/fd'):\n"
        "    if int(name) > 2 and os.path.exists(f'/proc/self/fd/{name}'):\n"
        "        print(os.readlink(f'/proc/self/fd/{name}'))"
    )
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        inside = [*COMMAND, "run", "/usr/bin/python3", "-c", list_them]
        options: dict[str, Any] = {
            "cwd": scene.program.project,
            "pass_fds": (root,),
            "capture_output": True,
            "check": False,
        }
        done = subprocess.run(["bash", "-c", 'exec "$@"', "x", *inside], stdin=subprocess.DEVNULL, **options)
        with_it = subprocess.run(["bwrap", "--dev-bind", "/", "/", "/usr/bin/python3", "-c", list_them], **options)
    finally:
        os.close(root)
    assert with_it.stdout.decode() == "/\n"
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_directory_is_refused_as_a_standard_stream(scene: Scene, number: int) -> None:
    command = f'"$@" {number}< /'
    done = subprocess.run(
        ["bash", "-c", command, "x", *COMMAND, "run", "touch", "made"],
        cwd=scene.program.project,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert scene.program("run", "sh", "-c", "[ ! -e made ]").code == 0


def test_a_file_that_is_read_cannot_be_written_through_its_descriptor(scene: Scene, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("given\n")
    script = "cat; echo changed > /proc/self/fd/0"
    for command, after in (
        ([*COMMAND, "run", "--no-review", "sh", "-c", script], "given\n"),
        (["bwrap", "--dev-bind", "/", "/", "sh", "-c", script], "changed\n"),
    ):
        with given.open("rb") as stdin:
            done = subprocess.run(
                command, cwd=scene.program.project, stdin=stdin, capture_output=True, check=False, timeout=60
            )
        assert done.stdout == b"given\n"
        assert given.read_text() == after


def test_a_hook_that_is_replaced_inside_is_not_replaced_outside_and_is_told(scene: Scene) -> None:
    hooks = scene.program.project / ".git/hooks"
    hooks.mkdir(parents=True, exist_ok=True)
    hook = hooks / "post-commit"
    hook.write_text("#!/bin/sh\necho mine\n")
    hook.chmod(0o755)
    done = scene.program("run", "sh", "-c", "echo 'echo theirs' > .git/hooks/post-commit")
    assert "  M  .git/hooks/post-commit" in done.err
    assert subprocess.run([hook], capture_output=True, check=True).stdout == b"mine\n"


CARRIED_OUT = [
    "ln secret/key open/key && cat open/key",
    "mv secret/key open/key && cat open/key",
    "mv secret open/ && cat open/secret/key",
    "cp secret/key open/key && cat open/key",
    "python3 -c \"import os; os.rename('secret', 'gone')\" && cat gone/key",
    "ln -s ../secret/key open/link && cat open/link",
]


@pytest.mark.parametrize("script", points(CARRIED_OUT, "carried out", some=3))
def test_nothing_is_carried_out_from_under_a_rule(scene: Scene, tmp_path: Path, script: str) -> None:
    for rules, code in (('"secret" = "deny"\n', 1), ("", 0)):
        project = tmp_path / f"project{code}"
        (project / "secret").mkdir(parents=True)
        (project / "open").mkdir()
        (project / "secret/key").write_text("the key\n")
        (project / ".yolofs.toml").write_text(f"[rules]\n{rules}")
        program = Program(project)
        program.start_session()
        with program.mounted("--root", "/"):
            done = program("run", "--no-review", "sh", "-c", script, code=code)
        assert ("the key" in done.out) == (code == 0)


def test_root_has_no_capabilities_and_nobody_may_get_new_ones(scene: Scene) -> None:
    status = scene.program("run", "cat", "/proc/self/status").out
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"


def test_the_devices_are_the_few_that_every_program_wants(scene: Scene) -> None:
    shown = set(scene.program("run", "ls", "/dev").out.split())
    assert shown <= {
        "console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
        "urandom", "zero",
    }  # fmt: skip


def test_every_program_inside_runs_as_the_user(scene: Scene) -> None:
    assert scene.program("run", sys.executable, "-c", "import os; print(os.getresuid())").out == f"{os.getresuid()}\n"
