"""Whoever holds connections to the daemon without using them, however many, keeps nobody's command
waiting.

The control socket and the one for programs in a sandbox, each against one process with many
connections and against many processes with a few each, which say nothing, half a line, a line
without end, or never read an answer.
"""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import Reader, asked_project
from tests.support.fork_server import LIMITS
from tests.support.program import COMMAND, DEADLINE_S, Program, connected, wait_until
from tests.support.seed import dice
from tests.support.watching import alone
from yolofs.daemon.rpc import endpoint
from yolofs.daemon.rpc.admission import MAX_CONNECTIONS, PEER_SHARE
from yolofs.daemon.rpc.daemon_files import read_daemon_file, socket_path
from yolofs.daemon.rpc.protocol import NO_ROOM

pytestmark = pytest.mark.mount

_LOGGED = ("hung up on process",)

HOLD = """
import os, resource, socket, sys, time
path, processes, each, manner = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
INFO = b'{"jsonrpc":"2.0","method":"info","id":1}\\n'
WATCH = INFO.replace(b"info", b"watch")
SAID = {"silent": b"", "half": b'{"jsonrpc":"2.0",', "endless": b"x" * (1 << 19), "unread": INFO * 2000,
        "idle": INFO, "watch": WATCH}[manner]
ready, told = os.pipe()

def hold():
    held = []
    while True:
        while len(held) < each:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(0.2)
            try:
                sock.connect(path)
                sock.send(SAID)
                held.append(sock)
            except OSError:
                sock.close()
            if len(held) == each:
                os.write(told, b"x")
        if manner in ("endless", "unread"):
            for sock in held[:]:
                sock.settimeout(0)
                try:
                    sock.send(SAID)
                except BlockingIOError:
                    pass
                except OSError:
                    held.remove(sock)
                    sock.close()
        time.sleep(0.1)

children = []
for _ in range(processes):
    pid = os.fork()
    if not pid:
        os.close(ready)
        try:
            hold()
        finally:
            os._exit(1)
    children.append(pid)
seen = 0
while seen < processes:
    seen += len(os.read(ready, 4096))
print("held", flush=True)
try:
    if len(sys.argv) > 5:
        sys.exit(os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", sys.argv[5]]))
    sys.stdin.read()
finally:
    for pid in children:
        os.kill(pid, 9)
    for pid in children:
        os.waitpid(pid, 0)
"""
CROWDS = [(1, 1000), (146, 1), (100, 10)]
TALKATIVE = ("endless", "unread")
"""Manners that keep the daemon at work for as long as the crowd is there."""


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    return asked_project(tmp_path)


@contextlib.contextmanager
def crowd(path: str, processes: int, each: int, manner: str) -> Iterator[None]:
    """Have processes hold connections, each as many as it can get of those it wants."""
    words = [sys.executable, "-c", HOLD, path, str(processes), str(each), manner]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"held\n"
            yield
        finally:
            process.stdin.close()
            process.wait(DEADLINE_S)


def control_socket(yolofs: Program) -> str:
    described = read_daemon_file(os.fsencode(yolofs.session))
    assert described is not None
    return os.fsdecode(socket_path(described))


MANNERS = ("silent", "half", "endless", "unread", "idle", "watch")
FEWEST = (146, 1)
"""Of the crowds that say much the one for any run.  A thousand connections, of which each has a
daemon answer two thousand questions or read a line without end, take minutes of two CPUs."""
SHIFT = dice("crowds").randrange(2)
FLOOD = dice("floods").choice(TALKATIVE)
"""Of the two manners that say much the one for any run."""
IS_FLOOD_INSIDE = dice("floods inside").choice((False, True))
"""Whether it is tried in a sandbox, else outside."""
QUIET_INSIDE = dice("crowds inside").choice(("silent", "half"))
"""Of the manners of many processes in a sandbox that say little the one for any run."""


def is_drawn(crowd: tuple[int, int], manner: str) -> bool:
    """Tell whether a crowd is for any run: each manner that says little is, once, in sizes that
    change; a run by night has all.
    """
    if manner in TALKATIVE:
        return crowd == FEWEST and manner == FLOOD and not IS_FLOOD_INSIDE
    return crowd == CROWDS[(MANNERS.index(manner) + SHIFT) % len(CROWDS)]


@pytest.mark.parametrize(
    ("processes", "each", "manner"),
    [
        pytest.param(*crowd, manner, marks=[] if is_drawn(crowd, manner) else [pytest.mark.nightly])
        for crowd in CROWDS
        for manner in MANNERS
    ],
)
def test_commands_of_the_user_work_beside_a_crowd(yolofs: Program, processes: int, each: int, manner: str) -> None:
    view = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: yolofs("unmount", "--force") if os.path.ismount(view) else None)
        stack.enter_context(crowd(control_socket(yolofs), processes, each, manner))
        (view / "free").write_text("changed\n")
        for _ in range(3):
            assert "M  free" in yolofs("status").out
        yolofs("snapshot", "kept")
        yolofs("unmount")
        assert not os.path.ismount(view)
    yolofs.check_log(*(_LOGGED if any(text in yolofs.log for text in _LOGGED) else ()))


@pytest.mark.parametrize(("processes", "each"), [(1, 1000), (200, 1)])
def test_an_ask_is_answered_by_a_watch_that_was_there_before_the_crowd_and_by_one_that_comes_later(
    yolofs: Program, processes: int, each: int
) -> None:
    with yolofs.mounted(expected_in_log=_LOGGED if processes == 1 else ()) as view, contextlib.ExitStack() as stack:
        with alone(yolofs, "--allow-all"):
            with connected(yolofs) as client:
                wait_until(lambda: watchers(client.pid) >= 2, "the watch has its connections")
            stack.enter_context(crowd(control_socket(yolofs), processes, each, "silent"))
            assert Reader(view / "secret/a").end() == ("a\n", "")
        with alone(yolofs, "--allow-all"):
            assert Reader(view / "secret/deep/1").end() == ("1\n", "")


def watchers(daemon: int) -> int:
    """Return how many connections a daemon has besides ours."""
    return sum("socket:" in os.readlink(fd) for fd in Path(f"/proc/{daemon}/fd").iterdir() if fd.is_symlink()) - 3


def fill(path: str, stack: contextlib.ExitStack) -> None:
    """Have as many connections wait at a socket as the kernel lets."""
    with contextlib.suppress(BlockingIOError):
        while True:
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.setblocking(False)
            sock.connect(path)


def test_a_command_waits_for_its_turn_where_as_many_as_may_wait_already(tmp_path: Path) -> None:
    """And does not take it that there is no daemon: it would show what is not true any more, or
    refuse to work.
    """
    path = tmp_path / "s"
    with contextlib.ExitStack() as stack, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        fill(str(path), stack)
        with pytest.raises(TimeoutError):
            endpoint.connect(os.fsencode(path), 0.05)
        connected: list[_socket.socket] = []
        client = threading.Thread(target=lambda: connected.append(endpoint.connect(os.fsencode(path), DEADLINE_S)))
        client.start()
        listener.settimeout(0.05)
        while client.is_alive():
            with contextlib.suppress(TimeoutError):
                listener.accept()[0].close()
        assert connected
        connected[0].close()


def test_a_connection_that_finishes_no_line_is_hung_up_on_in_time(
    yolofs: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMITS, "yolofs.daemon.rpc.server:_LINE_TIMEOUT_S=1")
    with yolofs.mounted(), socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as half:
        for sock, said in ((silent, b""), (half, b'{"jsonrpc"')):
            sock.connect(control_socket(yolofs))
            sock.sendall(said)
        for sock in (silent, half):
            sock.settimeout(DEADLINE_S)
            assert sock.recv(1) == b""


def test_one_process_gets_its_share_and_no_more(yolofs: Program) -> None:
    with yolofs.mounted(expected_in_log=_LOGGED), contextlib.ExitStack() as stack:
        held = []
        for _ in range(PEER_SHARE + 5):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.settimeout(DEADLINE_S)
            sock.connect(control_socket(yolofs))
            held.append(sock)
        for sock in held[:5]:  # the oldest make room
            assert json.loads(sock.recv(65536))["error"]["code"] == NO_ROOM
            assert sock.recv(1) == b""
        for sock in held[5:]:
            sock.sendall(b'{"jsonrpc":"2.0","method":"info","id":1}\n')
            assert sock.recv(65536).startswith(b'{"jsonrpc":"2.0","id":1,"result"')
    assert MAX_CONNECTIONS > PEER_SHARE


@pytest.mark.parametrize(
    ("processes", "each", "manner"),
    [
        (1, 1000, "silent"),
        pytest.param(150, 1, FLOOD, marks=[] if IS_FLOOD_INSIDE else [pytest.mark.nightly]),
        *(
            pytest.param(150, 4, manner, marks=[] if manner == QUIET_INSIDE else [pytest.mark.nightly])
            for manner in ("silent", "half", "unread", "endless")
        ),
    ],
)
def test_a_crowd_in_a_sandbox_holds_up_neither_the_user_nor_commands_inside(
    tmp_path: Path, processes: int, each: int, manner: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    yolofs.start_session()
    (project / ".yolofs.toml").write_text("scratch = []\n")
    yolofs.trust()
    yolofs("mount", "--root", "/")
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: yolofs("unmount", "--force"))
        (project / "hold.py").write_text(HOLD)
        status = "$0 status || $0 status || $0 status"  # on a busy machine the queue may be long
        wait = f"echo x > new; {status}; echo ready; read line"
        words = [*COMMAND, "run", "--no-review", "sh", "-c"]
        script = (
            f'python3=/usr/bin/python3; exec $python3 {project}/hold.py "$YOLOFS_SOCKET" {processes} {each} {manner} '
            + shlex.quote(wait.replace("$0", shlex.join(COMMAND)))
        )
        process = stack.enter_context(
            subprocess.Popen([*words, script], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        stack.callback(process.send_signal, signal.SIGTERM)
        assert process.stdout is not None
        lines = [process.stdout.readline().decode()]
        while lines[-1] not in ("ready\n", ""):
            lines.append(process.stdout.readline().decode())
        assert "A  new\n" in lines, (lines, yolofs.log)
        assert lines[-1] == "ready\n", (lines, yolofs.log)
        assert "A  new" in yolofs("status").out
        assert yolofs("run", "--no-review", "--", "cat", "new").out == "x\n"
        process.communicate(b"\n", timeout=DEADLINE_S)
    log = [line for line in yolofs.log.splitlines() if line and " INFO " not in line]
    assert all("hung up on process" in line for line in log), log
