"""The private /tmp lies on the session's disk, and programs may do there what they like: tries to
get out of it, and to mislead yolofs by it.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.model_steps import how_many
from tests.support.program import Program, kill, wait_until
from tests.support.stepped import stepped
from yolofs.system.mounts import unmount

pytestmark = [pytest.mark.mount, pytest.mark.disk]


@pytest.fixture
def yolofs(tmp_path: Path, home: Path) -> Iterator[Program]:
    """Return the program in a project in /tmp, with the view of / mounted; all has a private
    /tmp.
    """
    project = tmp_path / "above/project"
    project.mkdir(parents=True)
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        yield program


def attempt(yolofs: Program, code: str) -> str:
    """Run Python code in a sandbox, and return what it prints."""
    return yolofs("run", "--no-review", "python3", "-c", f"import os\n{code}").out


def private(yolofs: Program) -> Path:
    return yolofs.session / "run-tmp/tmp"


def test_no_file_of_another_mount_can_be_linked_or_moved_into_it(yolofs: Program) -> None:
    (yolofs.project / "file").write_text("file\n")
    code = f"""
def refused(call, source, target):
    try:
        call(source, target)
    except OSError as error:
        return error.errno
for source in ({str(yolofs.project / "file")!r}, '/usr/bin/env', '/etc/passwd'):
    print([refused(call, source, '/tmp/got') for call in (os.link, os.rename)])
open('/tmp/own', 'w')
print([refused(call, '/tmp/own', '/var/tmp/got') for call in (os.link, os.rename)])
"""
    exdev_or_denied = {"[18, 18]", "[18, 13]", "[1, 18]", "[18, 16]"}
    assert set(attempt(yolofs, code).splitlines()) <= exdev_or_denied
    assert not (private(yolofs) / "got").exists()


def test_nothing_of_the_session_is_to_be_had_by_way_of_tmp(yolofs: Program) -> None:
    """Not even by the path that /proc tells."""
    code = """
place = next(line.split()[3] for line in open('/proc/self/mountinfo') if line.split()[4] == '/tmp')
print(os.path.basename(os.path.dirname(place)))
fd = os.open('/tmp', os.O_RDONLY)
for path in ('..', '../..', '../var-tmp', '../ways', '../../journal'):
    try:
        print(sorted(os.listdir(os.open(path, os.O_RDONLY, dir_fd=fd))) == sorted(os.listdir('/')))
    except OSError as error:
        print(error.strerror)
print(os.path.lexists(place))
"""
    said = attempt(yolofs, code).splitlines()
    assert said[0] == "run-tmp"
    assert said[1] == "True"
    assert said[2] == "True"
    assert said[3:6] == ["No such file or directory"] * 3
    assert said[6] == "False"


def test_tmp_is_mounted_without_setuid_and_devices(yolofs: Program) -> None:
    code = """
print([set('nosuid nodev'.split()) <= set(line.split()[5].split(','))
       for line in open('/proc/self/mountinfo') if line.split()[4] in ('/tmp', '/var/tmp')])
for make in (lambda: os.mknod('/tmp/device', 0o020666, os.makedev(1, 1)), lambda: os.chown('/tmp', 12345, -1)):
    try:
        print(make())
    except OSError as error:
        print(error.errno in (1, 22))
"""
    assert attempt(yolofs, code) == "[True, True]\nTrue\nTrue\n"


def test_nobody_else_can_enter_tmp(yolofs: Program) -> None:
    attempt(yolofs, "import shutil; shutil.copy('/bin/true', '/tmp/program'); os.chmod('/tmp/program', 0o4755)")
    assert stat.S_IMODE((private(yolofs) / "program").stat().st_mode) == 0o4755
    for directory in (yolofs.session, private(yolofs).parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert directory.stat().st_uid == os.geteuid()


LINKS = {
    "to a directory of base": "{tmp_path}/victim",
    "to a directory that could be made in base": "{tmp_path}/victim/new",
    "to the root of the process that mounts": "/proc/self/root",
}


@pytest.mark.parametrize("link", LINKS)
def test_a_link_on_the_way_to_the_project_leads_the_next_run_nowhere(
    yolofs: Program, link: str, tmp_path: Path, victim: Path
) -> None:
    """By bubblewrap's own bind, directories would be made where it leads."""
    way = private(yolofs)
    first = os.path.relpath(yolofs.project, "/tmp").split("/")[0]
    target = LINKS[link].format(tmp_path=tmp_path)
    attempt(yolofs, f"os.rename('/tmp/{first}', '/tmp/aside'); os.symlink({target!r}, '/tmp/{first}')")
    assert (way / first).is_symlink()
    before = sorted(path.name for path in tmp_path.rglob("*") if "run-tmp" not in str(path))
    assert attempt(yolofs, f"print(os.getcwd(), os.path.islink('/tmp/{first}'))") == f"{yolofs.project} False\n"
    assert sorted(path.name for path in tmp_path.rglob("*") if "run-tmp" not in str(path)) == before
    assert [path.name for path in victim.iterdir()] == ["precious"]


def test_runs_start_while_another_exchanges_the_way_to_the_project(yolofs: Program, victim: Path) -> None:
    first = os.path.relpath(yolofs.project, "/tmp").split("/")[0]
    code = f"""
import itertools
for number in itertools.count():
    try:
        os.rename('/tmp/{first}', f'/tmp/aside{{number}}')
    except OSError:
        pass
    try:
        os.symlink({str(victim)!r}, '/tmp/{first}')
        os.unlink('/tmp/{first}')
    except OSError:
        pass
"""
    with stepped(yolofs, "--no-review") as attacker:
        attacker.do(f"python3 -c {_quoted('import os' + chr(10) + code)} & echo $! > pid")
        for _ in range(10):
            done = yolofs("run", "--no-review", "cat", "pid", code=None)
            assert done.code in (0, 14, 126), done.err  # it starts, or says why not
        attacker.do("kill $(cat pid)")
        attacker.end()
    assert [path.name for path in victim.iterdir()] == ["precious"]
    assert yolofs("run", "--no-review", "pwd").out == f"{yolofs.project}\n"


def test_status_and_abort_follow_no_link_while_a_run_exchanges_directories(yolofs: Program, victim: Path) -> None:
    for number in range(200):
        (victim / f"file{number}").write_text("x")
    code = f"""
import itertools, shutil
for number in itertools.count():
    old = f'/tmp/old{{number % 500}}'
    shutil.rmtree(old, ignore_errors=True)  # a million of them would take the abort minutes
    try:
        os.makedirs('/tmp/d/e', exist_ok=True)
        os.rename('/tmp/d', old)
        os.symlink({str(victim)!r}, '/tmp/d')
        os.unlink('/tmp/d')
    except OSError:
        pass
"""
    with stepped(yolofs, "--no-review") as attacker:
        attacker.do(f"python3 -c {_quoted('import os' + chr(10) + code)} & echo $! > /var/tmp/pid; cp /var/tmp/pid pid")
        for _ in range(how_many(ci=3, nightly=5)):
            yolofs("status", "--json")
            yolofs("abort", "--yes")
        attacker.do("kill %1")
        attacker.end()
    assert len(list(victim.iterdir())) == 201
    yolofs("abort", "--yes")


def test_a_session_is_forgotten_while_a_run_without_a_daemon_writes_there(tmp_path: Path, victim: Path) -> None:
    project = tmp_path / "other"
    project.mkdir()
    yolofs = Program(project)
    yolofs.start_session()
    yolofs("mount", "--root", "/")
    code = f"""
import itertools
for number in itertools.count():
    try:
        os.mkdir(f'/tmp/{{number}}')
        os.symlink({str(victim)!r}, f'/tmp/{{number}}/link')
    except OSError:
        break
"""
    with stepped(yolofs, "--no-review") as attacker:
        attacker.do(f"python3 -c {_quoted('import os' + chr(10) + code)} &")
        session, mountpoint = yolofs.session, yolofs.daemon["mountpoint"]
        kill(yolofs.daemon["pid"])
        wait_until(lambda: yolofs("sessions", "--forget", "--yes", session.name, code=None).code == 0, "it is gone")
        attacker.stop()
    unmount(os.fsencode(mountpoint), lazy=True)
    assert not session.exists()
    assert [path.name for path in victim.iterdir()] == ["precious"]


def test_a_fifo_holds_up_neither_status_nor_abort(yolofs: Program) -> None:
    attempt(yolofs, "os.mkfifo('/tmp/fifo'); os.mkdir('/tmp/closed'); os.chmod('/tmp/closed', 0)")
    assert yolofs("status", "--json").json["run_tmp"]["size_bytes"] > 0
    yolofs("abort", "--yes")
    assert not os.path.lexists(private(yolofs) / "fifo")
    assert not (private(yolofs) / "closed").exists()


def test_directories_deeper_than_any_path_are_measured_and_removed(yolofs: Program) -> None:
    attempt(yolofs, "os.chdir('/tmp')\nfor _ in range(1000):\n os.mkdir('a' * 100)\n os.chdir('a' * 100)")
    found = yolofs("status", "--json").json["run_tmp"]
    assert found["is_more"]
    assert "the private /tmp of runs takes more than " in yolofs("status").out
    yolofs("abort", "--yes")
    assert not (private(yolofs) / ("a" * 100)).exists()


def test_a_link_in_the_place_of_the_restricted_socket_leads_nowhere(
    yolofs: Program, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime directory of these tests lies in /tmp, so that a run can put a link on the way to
    it.
    """
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    assert runtime.is_relative_to("/tmp")
    first = os.path.relpath(runtime, "/tmp").split("/")[0]
    attempt(yolofs, f"os.rename('/tmp/{first}', '/tmp/aside'); os.symlink({str(victim)!r}, '/tmp/{first}')")
    code = "print(os.listdir(os.path.dirname(os.environ['YOLOFS_SOCKET'])))"
    assert attempt(yolofs, code) == "['agent.sock']\n"
    assert attempt(
        yolofs, "import subprocess; print(os.access(os.path.dirname(os.environ['YOLOFS_SOCKET']), os.W_OK))"
    ) == ("False\n")
    assert [path.name for path in victim.iterdir()] == ["precious"]


def test_a_tree_cannot_have_a_run_see_what_the_host_has_there(yolofs: Program, tmp_path: Path) -> None:
    """By a rule that only tightens, and so holds at once."""
    other = tmp_path / "of-the-host"
    other.write_text("secret\n")
    for text in (
        f'[rules]\n"{other}" = "read-only"\n',
        '[rules]\n"/tmp" = "read-only"\n',
        '[rules]\n"/tmp/x" = "deny"\n',
        '[run]\ntmp = "view"\n',
    ):
        (yolofs.project / ".yolofs.toml").write_text(text)
        assert attempt(yolofs, f"print(os.path.exists({str(other)!r}))") == "False\n"


def _quoted(text: str) -> str:
    return shlex.quote(text)
