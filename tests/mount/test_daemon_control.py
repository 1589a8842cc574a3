"""The control socket of a real daemon: what clients may do to it, and to each other."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import DEADLINE_S, Program, connected, wait_until
from yolofs.daemon.rpc import endpoint
from yolofs.daemon.rpc.daemon_files import read_daemon_file, socket_path
from yolofs.daemon.rpc.protocol import Done, LoanKind, NoParams
from yolofs.errors import BusyFilesError, DaemonError, GenerationError, SessionBusyError, UsageError
from yolofs.session.commit import abort, commit
from yolofs.session.opening.lock import session_locked
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.mount

WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
print(flush=True)
input()
os.write(fd, b"late")
"""


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    program = Program(project)
    program.start_session()
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    """Mount the project and return the mountpoint."""
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def raw_connection(yolofs: Program) -> socket.socket:
    described = read_daemon_file(os.fsencode(yolofs.session))
    assert described is not None
    sock = socket.socket(fileno=endpoint.connect(socket_path(described), 10).detach())
    sock.settimeout(10)
    return sock


@contextlib.contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that has ``path`` open for writing; it writes once it gets a line."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        if process.poll() is None:
            process.communicate(b"\n")


def has_ended(pid: int) -> bool:
    """Tell whether a process holds nothing any more, no lock either: all of its threads have ended.

    Nobody may have taken note of its end, so that there still is one, of which nothing is left.
    """
    try:
        return not any(os.path.exists(f"/proc/{pid}/task/{thread}/fd/0") for thread in os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return True


def test_info_tells_process_mountpoint_root_project_and_generation(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client:
        info = client.info()
    assert info.pid == yolofs.daemon["pid"] == client.pid
    assert os.fsdecode(info.mountpoint) == str(view)
    assert info.root == info.project == str(yolofs.project)
    assert (info.generation, info.warnings) == (0, ())
    assert abs(info.started_ns / 1e9 - time.time()) < 60


def test_the_daemon_has_room_for_descriptors_from_its_start(yolofs: Program, view: Path) -> None:
    """Each time the kernel makes more it stops a process that has threads for milliseconds."""
    with connected(yolofs) as client:
        status = Path(f"/proc/{client.info().pid}/status").read_text()
    assert int(status.partition("\nFDSize:")[2].split()[0]) >= 1024


def test_nobody_else_can_reach_the_socket(yolofs: Program, view: Path) -> None:
    described = read_daemon_file(os.fsencode(yolofs.session))
    assert described is not None
    path = Path(os.fsdecode(socket_path(described)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not (view / ".yolofs").exists()


def test_a_snapshot_keeps_what_was_written_through_a_mapping(yolofs: Program, view: Path) -> None:
    with (view / "a.txt").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped, connected(yolofs) as client:
        mapped[:3] = b"two"
        assert client.snapshot(b"mapped", if_changed=False) == 1
        mapped[:3] = b"six"
        assert client.snapshot(b"", if_changed=True) == 2
    assert "+two" in yolofs("diff", "..mapped").out
    assert "+six" in yolofs("diff").out


def test_if_changed_makes_no_generation_of_nothing(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client:
        assert client.snapshot(b"", if_changed=True) is None
        assert client.snapshot(b"", if_changed=False) == 1


def test_running_programs_see_the_other_state_when_travel_returns(yolofs: Program, view: Path) -> None:
    path = view / "a.txt"
    with connected(yolofs) as client:
        for generation in range(1, 6):
            path.write_text(f"{generation}\n" * generation)
            (view / f"only-in-{generation}").touch()
            assert client.snapshot(b"", if_changed=False) == generation
            (view / f"only-in-{generation}").unlink()
        for target in (1, 4, 2, 5, 0, 3):
            client.travel(str(target), force=False)
            assert path.read_text() == (f"{target}\n" * target or "one\n")
            assert path.stat().st_size == (2 * target or 4)
            assert [name for name in os.listdir(view) if name.startswith("only")] == [f"only-in-{target}"][
                : target and 1
            ]


def test_travel_to_nowhere_says_so_and_changes_nothing(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client:
        with pytest.raises(GenerationError) as caught:
            client.travel("nowhere", force=False)
        assert caught.value.exit_code == 7
        assert client.info().generation == 0


def test_travel_names_the_process_that_has_a_file_open_for_writing(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("two\n")
    with writer(view / "a.txt") as process, connected(yolofs) as client:
        with pytest.raises(BusyFilesError) as caught:
            client.travel("0", force=False)
        assert caught.value.users == (f"{process.pid} {Path(sys.executable).name[:15]} {yolofs.project}/a.txt",)
        assert (view / "a.txt").read_text() == "two\n"
        assert client.travel("0", force=True) == (0, 2)
        assert (view / "a.txt").read_text() == "one\n"
        process.communicate(b"\n")
        assert (view / "a.txt").read_text() == "one\n"
        assert client.travel("1", force=False) == (1, 3)
        assert (view / "a.txt").read_text() == "two\n"


def test_travel_right_after_a_close_is_not_refused(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client:
        for _ in range(50):
            (view / "a.txt").write_text("two\n")
            client.travel("0", force=False)


def test_a_file_that_was_made_and_opened_for_reading_as_locks_are_does_not_hinder_travel(
    yolofs: Program, view: Path
) -> None:
    fd = os.open(view / "lock", os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        with connected(yolofs) as client:
            client.travel("0", force=False)
        assert not (view / "lock").exists()
    finally:
        os.close(fd)


def test_files_open_for_reading_do_not_hinder_travel_and_keep_their_content(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("two\n" * 100_000)
    with connected(yolofs) as client, (view / "a.txt").open() as file:
        assert file.read(4) == "two\n"
        client.travel("0", force=False)
        assert file.read() == "two\n" * 99_999
        assert (view / "a.txt").read_text() == "one\n"


def test_while_lent_the_mount_waits_and_then_goes_on(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("two\n")
    read: list[str] = []
    with connected(yolofs) as client:
        with client.lend(LoanKind.COMMIT), Session.open(os.fsencode(yolofs.project), SessionAccess.LENT) as session:
            reader = threading.Thread(target=lambda: read.append((view / "new").read_text()))
            reader.start()
            commit(session)
            (yolofs.project / "new").write_text("made by the host")
            assert not read
        reader.join(DEADLINE_S)
    assert read == ["made by the host"]
    assert (yolofs.project / "a.txt").read_text() == (view / "a.txt").read_text() == "two\n"


def test_a_file_open_over_a_commit_goes_on_being_the_same_file(yolofs: Program, view: Path) -> None:
    with (view / "new").open("w+") as file:
        file.write("1")
        file.flush()
        before = os.stat(view / "new").st_ino
        yolofs("commit", "--yes")
        assert (yolofs.project / "new").read_text() == "1"
        file.write("2")
        file.flush()
        assert (view / "new").read_text() == "12"
        assert os.stat(view / "new").st_ino == os.fstat(file.fileno()).st_ino == before
    assert (yolofs.project / "new").read_text() == "1"
    yolofs("commit", "--yes")
    assert (yolofs.project / "new").read_text() == "12"


def test_a_file_open_over_an_abort_keeps_its_content(yolofs: Program, view: Path) -> None:
    with (view / "a.txt").open("r+") as file:
        file.write("two\n")
        file.flush()
        yolofs("abort", "--yes")
        file.seek(0)
        assert file.read() == "two\n"
        assert (view / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("kind", [LoanKind.COMMIT, LoanKind.ABORT])
def test_a_borrower_that_dies_gives_everything_back(yolofs: Program, view: Path, kind: LoanKind) -> None:
    (view / "a.txt").write_text("two\n")
    script = """
import os, sys
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import LoanKind
client = Client.connect(os.fsencode(sys.argv[1]))
with client.lend(LoanKind(sys.argv[2])):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script, yolofs.session, kind.value], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (view / "a.txt").read_text() == "two\n"
    assert "M  a.txt" in yolofs("status").out


def test_a_borrower_that_dies_between_committing_and_saying_so_has_committed(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("two\n")
    script = """
import os, sys
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.session.session import Session, SessionAccess
from yolofs.session.commit import commit
project = os.fsencode(sys.argv[1])
Session.put_away = lambda *_: os.kill(os.getpid(), 9)
with Client.connect(project + b"/.yolofs").lend(LoanKind.COMMIT), Session.open(project, SessionAccess.LENT) as session:
    commit(session)
"""
    done = subprocess.run([sys.executable, "-c", script, yolofs.project], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (view / "a.txt").read_text() == (yolofs.project / "a.txt").read_text() == "two\n"
    (view / "later").touch()
    status = yolofs("status", "--json").json
    assert [change["path"] for change in status["changes"]] == [f"{yolofs.project}/later"]
    assert (yolofs.session / "commits/1/journal").exists()


def test_the_lock_outlives_the_daemon_as_long_as_the_session_is_lent(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client, contextlib.suppress(DaemonError), client.lend(LoanKind.ABORT):
        os.kill(client.pid, signal.SIGKILL)
        wait_until(lambda: has_ended(client.pid), "the daemon's end")
        with pytest.raises(SessionBusyError), session_locked(os.fsencode(yolofs.session)):
            pass
    with session_locked(os.fsencode(yolofs.session)):
        pass


def test_a_client_must_return_a_loan_before_it_calls_anything_else(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client, client.lend(LoanKind.ABORT):
        for forbidden in (client.flush, lambda: client.stop(force=False), lambda: client.travel("0", force=False)):
            with pytest.raises(UsageError, match="return it first"):
                forbidden()
    with connected(yolofs) as client, pytest.raises(UsageError, match="nothing has been lent"):
        client._call("return", NoParams(), Done)


def test_others_wait_while_the_session_is_lent(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("two\n")
    generations: list[int | None] = []

    def snapshot() -> None:
        with connected(yolofs) as other:
            generations.append(other.snapshot(b"", if_changed=True))

    with connected(yolofs) as client, client.lend(LoanKind.ABORT):
        waiting = threading.Thread(target=snapshot)
        waiting.start()
        assert client.info().generation == 0
        with Session.open(os.fsencode(yolofs.project), SessionAccess.LENT) as session:
            abort(session)
        assert generations == []
    waiting.join(DEADLINE_S)
    assert generations == [None]


def test_a_daemon_that_is_told_to_end_waits_for_the_loan(yolofs: Program) -> None:
    yolofs("mount", "--root", ".")
    with connected(yolofs) as client:
        with client.lend(LoanKind.ABORT):
            os.kill(client.pid, signal.SIGTERM)
            assert client.info().pid == client.pid
        wait_until(lambda: has_ended(client.pid), "the daemon's end")
    yolofs("snapshot", "the-lock-is-free")
    yolofs.check_log()


def test_a_client_that_hangs_or_talks_nonsense_harms_nobody(yolofs: Program, view: Path) -> None:
    with contextlib.ExitStack() as stack:
        for said in (b"", b"{", b"\n\n\0\xff\n", b"GET / HTTP/1.1\r\n\r\n", b'{"jsonrpc":"2.0","method":"snapshot",'):
            sock = stack.enter_context(raw_connection(yolofs))
            sock.sendall(said)
        (view / "a.txt").write_text("two\n")
        assert yolofs("snapshot").out == "1\n"
        assert (view / "a.txt").read_text() == "two\n"


def test_a_client_that_goes_before_its_answer_harms_nobody(yolofs: Program, view: Path) -> None:
    for method in ("info", "flush", "snapshot", "lend", "nonsense"):
        with raw_connection(yolofs) as sock:
            params = {"kind": "commit"} if method == "lend" else {}
            sock.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    assert yolofs("snapshot", "x").code == 0
    assert (view / "a.txt").read_text() == "one\n"


def test_a_state_that_cannot_be_shown_ends_the_mount_and_loses_nothing(yolofs: Program, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from yolofs.overlay.view import Overlay\n"
        "def broken(*_, **__): raise ZeroDivisionError('half-way')\n"
        "Overlay.reload = broken\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    mountpoint = Path(yolofs("mount", "--root", ".", PYTHONPATH=path).out.rstrip("\n"))
    (mountpoint / "a.txt").write_text("two\n")
    pid = yolofs.daemon["pid"]
    message = yolofs.refused("travel", "0", code=11)
    assert f"see {yolofs.session}/daemon.log" in message
    wait_until(lambda: has_ended(pid), "the daemon's end")
    assert "travel failed half-way: the mount ends; what is staged is safe" in yolofs.log
    (yolofs.session / "daemon.log").unlink()
    with yolofs.mounted():
        assert (mountpoint / "a.txt").read_text() == "one\n"
        yolofs("travel", "-")
        assert (mountpoint / "a.txt").read_text() == "two\n"


def test_the_program_works_through_a_hundred_snapshots_while_files_are_written(yolofs: Program, view: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        count = 0
        while not stop.is_set():
            (view / f"f{count % 7}").write_text(str(count))
            count += 1

    thread = threading.Thread(target=write)
    thread.start()
    with connected(yolofs) as client:
        for generation in range(1, 101):
            assert client.snapshot(b"", if_changed=False) == generation
    stop.set()
    thread.join()
    assert yolofs("timeline", "--json").json["present"] == 100
