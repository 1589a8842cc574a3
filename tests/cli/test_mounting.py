"""mount and unmount: the real daemon, real FUSE."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import yolofs.errors
from tests.support.fork_server import LIMITS
from tests.support.program import COMMAND, DEADLINE_S, Program, kill, stop, wait_until
from tests.support.second_disk import mounted_disk
from tests.support.terminal import start
from yolofs.errors import MountError
from yolofs.fuse.trace import Trace
from yolofs.system.mounts import mounts_at

pytestmark = pytest.mark.mount


def is_mounted(mountpoint: Path) -> bool:
    return bool(mounts_at(os.fsencode(mountpoint)))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_mount_prints_the_mountpoint_and_nothing_else(yolofs: Program) -> None:
    done = yolofs("mount", "--root", ".")
    mountpoint = Path(done.out.rstrip("\n"))
    assert (done.out, done.err) == (f"{mountpoint}\n", "")
    assert is_mounted(mountpoint)
    assert (mountpoint / "a.txt").read_text() == "one\ntwo\n"
    assert (yolofs.session / "mnt").resolve() == mountpoint
    assert (yolofs.session / "daemon.json").stat().st_mode & 0o777 == 0o600
    yolofs("unmount")


def test_unmount_leaves_no_process_no_mount_no_lock_and_no_file(yolofs: Program) -> None:
    before = {path.name for path in yolofs.session.iterdir()} | {
        "daemon.log",
        "journal.length",
        "lock",
        "session.json",
    }
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    pid = yolofs.daemon["pid"]
    done = yolofs("unmount")
    assert (done.out, done.err) == ("", "")
    assert not is_alive(pid)
    assert not is_mounted(mountpoint)
    assert not mountpoint.parent.exists()
    assert {path.name for path in yolofs.session.iterdir()} == before
    yolofs("snapshot", "x")  # which needs the lock
    yolofs.check_log()


def test_mounting_again_says_where_it_is_mounted_already(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        done = yolofs("mount")
        assert done.out == f"{mountpoint}\n"
        assert "mounted already" in done.err
        message = yolofs.refused("mount", "--root", "/usr", code=2)
        assert "mounted already, with the root" in message


def test_unmounting_twice_is_no_error(yolofs: Program) -> None:
    with yolofs.mounted():
        pass
    assert yolofs("unmount").err == "not mounted; nothing to do\n"


def test_unmount_names_the_processes_inside_and_leaves_them_alone(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint, subprocess.Popen(["sleep", "60"], cwd=mountpoint / "dir") as inside:
        try:
            message = yolofs.refused("unmount", code=8)
            assert f"  {inside.pid} sleep {yolofs.project}/dir\n" in message
            assert "yolofs unmount --force" in message
            assert (mountpoint / "a.txt").exists()
            yolofs("unmount", "--force")
            assert not is_mounted(mountpoint)
        finally:
            inside.kill()


def test_unmount_names_a_process_that_has_a_file_mapped_and_closed(yolofs: Program) -> None:
    script = """
import mmap, sys
with open(sys.argv[1]) as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(flush=True)
input()
"""
    with yolofs.mounted() as mountpoint:
        command = [sys.executable, "-c", script, str(mountpoint / "a.txt")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            assert f"  {process.pid} python" in yolofs.refused("unmount", code=8)
            process.stdin.write(b"\n")


def test_a_killed_daemon_loses_nothing_and_the_next_mount_cleans_up(yolofs: Program) -> None:
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    (mountpoint / "new").write_text("staged")
    (mountpoint / "dir").rename(mountpoint / "moved")
    kill(yolofs.daemon["pid"])
    assert is_mounted(mountpoint)
    assert "the daemon has died" in yolofs("status").out
    with yolofs.mounted() as again:
        assert again == mountpoint
        assert len(mounts_at(os.fsencode(mountpoint))) == 1
        assert (mountpoint / "new").read_text() == "staged"
        assert (mountpoint / "moved/b.txt").read_text() == "b\n"


def test_unmount_cleans_up_after_a_killed_daemon(yolofs: Program) -> None:
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    kill(yolofs.daemon["pid"])
    assert "had died" in yolofs("unmount").err
    assert not is_mounted(mountpoint)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_daemon_cleanly(yolofs: Program, number: signal.Signals) -> None:
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    pid = yolofs.daemon["pid"]
    os.kill(pid, number)
    wait_until(lambda: not is_alive(pid), "the daemon's end")
    assert not is_mounted(mountpoint)
    assert not (yolofs.session / "daemon.json").exists()
    yolofs.check_log()


def test_a_umount_from_outside_ends_the_daemon_cleanly(yolofs: Program) -> None:
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    pid = yolofs.daemon["pid"]
    command = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    subprocess.run([*command, mountpoint], check=True)
    wait_until(lambda: not is_alive(pid), "the daemon's end")
    assert not (yolofs.session / "daemon.json").exists()
    yolofs.check_log()


def test_unmount_force_kills_a_daemon_that_hangs(yolofs: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    pid = yolofs.daemon["pid"]
    stop(pid)
    monkeypatch.setenv(LIMITS, "yolofs.daemon.rpc.client:_INFO_TIMEOUT_S=1")
    done = yolofs("unmount", "--force")
    assert "killed" in done.err
    assert not is_alive(pid)
    assert not is_mounted(mountpoint)


def test_a_mount_in_the_foreground_stays_until_ctrl_c(yolofs: Program) -> None:
    command = [*COMMAND, "mount", "--root", ".", "--foreground"]
    with subprocess.Popen(
        command, cwd=yolofs.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        mountpoint = Path(process.stdout.readline().decode().rstrip("\n"))
        assert (mountpoint / "a.txt").exists()
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
        assert b"ending on SIGINT" in process.stderr.read()
    assert not is_mounted(mountpoint)


def test_a_second_mount_of_the_same_session_is_refused_by_the_lock(yolofs: Program) -> None:
    with yolofs.mounted(expected_in_log=("(yolofs mount) is at work on this session",)):
        described = (yolofs.session / "daemon.json").read_bytes()
        (yolofs.session / "daemon.json").unlink()  # so that the command does not find the daemon
        message = yolofs.refused("mount", code=5)
        assert f"process {json.loads(described)['pid']} (yolofs mount) is at work on this session" in message
        (yolofs.session / "daemon.json").write_bytes(described)


def test_the_root_cannot_change_while_something_is_staged(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "new").touch()
    assert "yolofs abort drops the rest" in yolofs.refused("mount", "--root", "/usr", code=2)


def test_a_refusal_by_the_daemon_reaches_the_user_word_by_word(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("roots = 1\n")
    assert yolofs.refused("mount", code=3).startswith("yolofs: .yolofs.toml:1: roots: unknown key")


def test_a_daemon_that_dies_at_start_is_reported_with_the_end_of_its_log(yolofs: Program, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "trio").mkdir(parents=True)
    (broken / "trio/__init__.py").write_text("raise RuntimeError('no trio today')")
    done = yolofs("mount", code=11, PYTHONPATH=str(broken))
    assert "ended with exit code 1" in done.err
    assert "RuntimeError: no trio today" in done.err
    assert "daemon.log" in done.err


def test_the_daemon_counts_its_requests_where_its_environment_says(yolofs: Program, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    mountpoint = Path(yolofs("mount", "--root", ".", YOLOFS_TRACE=str(trace)).out.rstrip("\n"))
    try:
        before = Trace.open(bytes(trace)).counts().get("mkdir", 0)
        (mountpoint / "new").mkdir()
        assert Trace.open(bytes(trace)).counts()["mkdir"] == before + 1
    finally:
        yolofs("unmount")
    yolofs.check_log()


def test_a_file_for_the_counts_that_cannot_be_written_is_refused_with_its_name(yolofs: Program) -> None:
    done = yolofs("mount", "--root", ".", code=MountError.exit_code, YOLOFS_TRACE="/no/such/directory")
    assert "YOLOFS_TRACE" in done.err
    assert "/no/such/directory" in done.err
    assert "unset" in done.err


def test_code_in_the_current_directory_is_not_run(yolofs: Program) -> None:
    (yolofs.project / "trio.py").write_text("raise RuntimeError('picked up from the current directory')")
    with yolofs.mounted():
        pass


def test_a_mount_obeys_the_rules_of_the_project(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text(
        '[rules]\n"." = "allow"\nsecret = "deny"\nkept = "read-only"\ngone = "hidden"\n'
    )
    for name in ("secret", "kept", "gone"):
        (yolofs.project / name).write_text(name)
    with yolofs.mounted() as view:
        assert {path.name for path in view.iterdir()} >= {".yolofs.toml", "kept", "secret"}
        assert "gone" not in os.listdir(view)
        with pytest.raises(PermissionError):
            (view / "secret").read_text()
        assert (view / "kept").read_text() == "kept"
        with pytest.raises(PermissionError):
            (view / "kept").write_text("changed")
        with pytest.raises(FileNotFoundError):
            (view / "gone").stat()


def test_a_path_too_long_for_a_socket_address_works(yolofs: Program, tmp_path: Path) -> None:
    runtime = tmp_path / ("long" * 40)
    runtime.mkdir(mode=0o700)
    mountpoint = Path(yolofs("mount", "--root", ".", XDG_RUNTIME_DIR=str(runtime)).out.rstrip("\n"))
    assert mountpoint.is_relative_to(runtime)
    yolofs("unmount")  # finds it without the variable
    assert not is_mounted(mountpoint)


def test_a_runtime_directory_behind_a_link_is_hidden_from_the_view(yolofs: Program, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    yolofs("mount", "--root", tmp_path, XDG_RUNTIME_DIR=str(tmp_path / "link"))
    assert os.listdir(yolofs.session / "mnt/real/yolofs") == []
    yolofs("unmount")


def test_a_project_name_that_is_not_utf8_works(tmp_path: Path) -> None:
    project = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p \xff\n'"))
    project.mkdir()
    (project / "a").write_text("a")
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted() as mountpoint:
        (mountpoint / os.fsdecode(b"\xfe\n")).write_text("b")
        assert 'A  "\\376\\n"\n' in yolofs("status").out
        status = yolofs("status", "--json").json
        assert status["project_bytes"].endswith("/p%20%FF%0A%27")
    yolofs("commit", "--yes")
    assert (project / os.fsdecode(b"\xfe\n")).read_text() == "b"


def test_two_mounts_of_the_whole_root_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    programs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        programs.append(Program(tmp_path / name))
        programs[-1]("init")
    one, two = programs
    with one.mounted("--root", "/") as left, two.mounted("--root", "/") as right:
        for view, other in ((left, right), (right, left)):
            for name in ("one", "two"):
                path = view / str(tmp_path / name)[1:]
                assert (path / "file").read_text() == name
            assert os.listdir(view / str(left.parent.parent)[1:]) == []
            assert not (view / str(other)[1:]).exists()
            command = ["find", str(view / str(left.parent.parent.parent)[1:]), "-maxdepth", "6"]
            subprocess.run(command, check=True, timeout=DEADLINE_S, stdout=subprocess.DEVNULL)
        (left / str(tmp_path / "two/file")[1:]).write_text("from one")
        assert (right / str(tmp_path / "two/file")[1:]).read_text() == "two"
        for view in (left, right):  # neither its own session nor the other can be reached
            for name in ("one", "two"):
                assert not (view / str(tmp_path / name)[1:] / ".yolofs").exists()
        assert f"M  {tmp_path}/two/file" in one("status", "--scratch").out
        assert "no changes" in two("status", "--scratch").out


def test_mount_says_where_the_project_is_in_a_larger_view(yolofs: Program) -> None:
    done = yolofs("mount")
    mountpoint = done.out.rstrip("\n")
    assert done.err == f"the project in it: {mountpoint}{yolofs.project}\n"
    assert Path(done.err.rstrip("\n").partition(": ")[2], "a.txt").exists()
    yolofs("unmount")


def test_the_view_of_the_whole_root_shows_pseudo_filesystems_as_empty(yolofs: Program) -> None:
    with yolofs.mounted("--root", "/") as mountpoint:
        for name in ("proc", "sys", "dev"):
            assert os.listdir(mountpoint / name) == []
        listed = subprocess.run(["ls", "-la", mountpoint, mountpoint / "dev"], capture_output=True, check=True)
        assert listed.stderr == b""


def test_a_command_inside_the_mount_says_that_it_is_inside(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        assert "is inside a mount" in yolofs.refused("status", code=4, cwd=mountpoint)


@pytest.mark.root_only
def test_a_mount_is_known_by_its_name_whatever_that_holds(yolofs: Program, tmp_path: Path) -> None:
    """With mounts of its own: others read the table of mounts line by line."""
    runtime = tmp_path / "a\rb c\\d"
    runtime.mkdir(0o700)
    code = (
        "import sys; from yolofs.system.mounts import is_inside_mount; "
        "print(is_inside_mount(sys.stdin.buffer.read().rstrip(b'\\n') + b'/dir'))"
    )
    command = shlex.join(COMMAND)
    script = f"{command} mount --root . >at && {sys.executable} -c {shlex.quote(code)} <at; {command} unmount"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=yolofs.project,
        env=os.environ | {"XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


def test_every_error_class_keeps_its_exit_code() -> None:
    found = {
        name: value.exit_code
        for name, value in vars(yolofs.errors).items()
        if isinstance(value, type) and issubclass(value, yolofs.errors.YolofsError)
    }
    assert len(set(found.values())) == len(found)


def test_a_staged_file_that_is_open_at_an_abort_is_freed_when_it_is_closed(yolofs: Program) -> None:
    files = yolofs.session / "files"

    def staged() -> list[bytes]:
        found = []
        for path in files.rglob("*"):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # it may go meanwhile
                found.append(path.read_bytes())
        return found

    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        (view / "new").write_text("new\n")
        with open(view / "new", "rb") as new, open(view / "a.txt", "r+b", buffering=0) as changed:
            yolofs("abort", "--yes")
            assert sorted(staged()) == [b"changed\n", b"new\n"]
            assert new.read() == b"new\n"
            changed.write(b"CHANGED\n")
        wait_until(lambda: staged() == [], "the files of the old journal are removed")


def test_findmnt_takes_the_source_of_a_mount_for_no_path(yolofs: Program) -> None:
    (yolofs.project / "yolofs").mkdir()
    with yolofs.mounted() as mountpoint:
        words = ["findmnt", "--noheadings", "--output", "SOURCE,FSTYPE", str(mountpoint)]
        shown = subprocess.run(words, cwd=yolofs.project, capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["yolofs:view", "fuse.yolofs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts anything in a mount")
def test_unmount_waits_for_a_moment_for_another_mount_inside(yolofs: Program) -> None:
    (yolofs.project / "d").mkdir()
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    with mounted_disk(mountpoint / "d"):
        assert "at work inside the mount" in yolofs("unmount", code=8).err
        null = os.open(os.devnull, os.O_RDWR)
        ending = start(["unmount"], yolofs.project, dict(os.environ), (null, null, null))
        os.close(null)
        time.sleep(0.3)  # that it goes on waiting shows by time alone; it ends in less if it does not wait
        assert ending.poll() is None
    ending.wait(DEADLINE_S)
    assert ending.returncode == 0
    assert not is_mounted(mountpoint)
