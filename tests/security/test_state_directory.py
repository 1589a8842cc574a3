"""The state directory: each of its components is the user's or root's, closed to others, and no
link.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.every_kind_of_step import prepare
from tests.support.looks import tree_of
from tests.support.planting import STEP, interrupt_commit
from tests.support.program import Program
from yolofs.daemon.rpc import daemon_files as files
from yolofs.registry.start import servers_of

OTHER = 54321
"""A user who is neither root nor whoever runs this."""

only_root = pytest.mark.root_only


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def session_of(program: Program) -> Path:
    return Path(os.readlink(program.project / ".yolofs"))


def test_the_state_directory_is_made_for_the_user_alone(project: Path, state: Path) -> None:
    old = os.umask(0)
    try:
        Program(project)("init")
    finally:
        os.umask(old)
    (session,) = (state / "sessions").iterdir()
    for path in (state.parent, state, state / "sessions", state / "registry", session, session / "files"):
        assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o700, os.getuid()), path
    (entry,) = (state / "registry").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600
    assert entry.name == f"{project.stat().st_ino}-{session.name}"


def spoil(project: Path, path: Path, how: str) -> str:
    """Make a component unsafe; return what has to be said about it."""
    match how:
        case "all may write":
            path.chmod(0o777)
            return f"others may write to {path} (mode 0777)"
        case "a group may write":
            path.chmod(0o775)
            if os.getuid() == 0:
                os.chown(path, -1, OTHER)
            return f"others may write to {path} (mode 0775)"
        case "a link":
            real = path.with_name("real")
            path.rename(real)
            path.symlink_to(real)
            return f"{path} is a symbolic link"
        case _:
            os.chown(path, OTHER, -1)
            return f"{path} belongs to user {OTHER}"


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(
    "how",
    [
        "all may write",
        pytest.param("a group may write", marks=only_root),  # a group of the user's own may
        "a link",
        pytest.param("given away", marks=only_root),
    ],
)
def test_a_component_that_others_could_use_is_refused_with_its_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int, how: str
) -> None:
    top = tmp_path / "one"
    state = top / "two/yolofs"
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    program = Program(project)
    program("init")
    session = session_of(program)
    parts = [top, state.parent, state]
    if how == "a group may write" and depth == 2:
        said = f"others may look into {state}"
        spoil(project, parts[depth], how)
        said = f"others may write to {state}"
    else:
        said = spoil(project, parts[depth], how)
    before = sorted(path for path in tmp_path.rglob("*"))
    for words in (("status",), ("run", "--", "true"), ("commit", "--yes"), ("init",), ("sessions",)):
        assert said in program.refused(*words, code=15)
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert session.is_dir()


def test_others_may_not_look_into_the_state_directory(project: Path, state: Path) -> None:
    program = Program(project)
    program("init")
    state.chmod(0o755)
    said = program.refused("status", code=15)
    assert f"others may look into {state} (mode 0755)" in said
    assert f"chmod 700 {state}" in said


@only_root
@pytest.mark.parametrize("part", ["registry", "session"])
def test_a_session_or_entry_of_another_user_in_the_state_directory_is_not_used(
    project: Path, state: Path, part: str
) -> None:
    program = Program(project)
    program("init")
    if part == "registry":
        (entry,) = (state / "registry").iterdir()
        os.chown(entry, OTHER, OTHER)
        program.refused("status", code=4)
    else:
        os.chown(session_of(program), OTHER, OTHER)
        assert f"belongs to user {OTHER}" in program.refused("status", code=15)


def test_a_registry_entry_that_makes_no_sense_hides_no_other(project: Path, state: Path) -> None:
    program = Program(project)
    program("init")
    inode = project.stat().st_ino
    for number, content in enumerate(("", "{}", "[]", '{"session":"/etc"}', "\0" * 100)):
        (state / f"registry/{inode}-{number}").write_text(content)
    os.symlink("/etc/passwd", state / f"registry/{inode}-link")
    os.mkfifo(state / f"registry/{inode}-fifo")
    assert program("status", "--json").json["project"] == str(project)
    assert len(program("sessions", "--json").json["sessions"]) == 1


@pytest.mark.mount
def test_a_session_whose_entry_is_damaged_is_said_and_comes_back(project: Path, state: Path) -> None:
    program = Program(project)
    program("init")
    program("mount", "--root", ".")
    (project / ".yolofs/mnt/new").write_text("staged")
    program("unmount")
    lose_entry(state)
    session = session_of(program).name
    said = program.refused("status", code=4)
    assert f"the registry's entry of {session} cannot be read" in said
    assert f"yolofs sessions --rebase {project} {session}" in program.refused("init", code=2)
    assert "unlisted" in program("sessions").out
    program("sessions", "--rebase", ".", session)
    assert [change["kind"] for change in program("status", "--json").json["changes"]] == ["A"]


def lose_entry(state: Path) -> None:
    (entry,) = (state / "registry").iterdir()
    entry.write_text("")


@pytest.mark.mount
def test_a_session_that_nothing_tells_the_project_of_goes_on_with_its_base_as_it_was(
    project: Path, state: Path
) -> None:
    """As one that an earlier version has made: its ``session.json`` does not say where the project
    was.
    """
    program = Program(project)
    program("init")
    program("run", "--", "sh", "-c", "echo staged > new")
    program("unmount")
    session = session_of(program)
    described = json.loads((session / "session.json").read_text())
    del described["project"]
    (session / "session.json").write_text(json.dumps(described))
    lose_entry(state)
    said = program("sessions").out
    assert "(not known)\n" in said
    assert f"yolofs sessions --rebase PATH {session.name}" in said
    program("sessions", "--rebase", ".", session.name)
    status = program("status", "--json").json
    assert status["root"] == "/"
    assert [change["path"] for change in status["changes"]] == [str(project / "new")]


def test_a_session_whose_entry_is_damaged_comes_back_to_finish_a_commit_that_was_interrupted(
    project: Path, state: Path
) -> None:
    project.rmdir()
    expected = prepare(project)
    interrupt_commit(project, STEP)
    lose_entry(state)
    program = Program(project)
    program("sessions", "--rebase", ".", session_of(program).name)
    program("commit", "--continue")
    assert tree_of(project) == expected


@only_root
def test_a_daemon_of_another_user_is_not_talked_to(project: Path, tmp_path: Path, state: Path) -> None:
    program = Program(project)
    program("init")
    session = session_of(program)
    path = tmp_path / "s"
    code = (
        "import os, socket, sys\n"
        f"os.setuid({OTHER})\n"
        "s = socket.socket(fileno=int(sys.argv[1])); s.listen(); print('ready', flush=True); s.accept()\n"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        command = [sys.executable, "-c", code, str(listener.fileno())]
        other = subprocess.Popen(command, pass_fds=[listener.fileno()], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        described = files.describe(1, 1, os.fsencode(path), b"/", b"/")
        (session / "daemon.json").write_bytes(msgspec.json.encode(described))
        (session / "daemon.json").chmod(0o600)
        said = program.refused("mount", code=11)
        assert f"of user {OTHER} answers at the session's socket, not a daemon of yours" in said
    finally:
        other.kill()
        other.communicate()


def test_a_session_that_is_not_there_is_told(project: Path, state: Path) -> None:
    program = Program(project)
    program("init")
    session = session_of(program)
    session.rename(state / "away")
    said = program.refused("status", code=4)
    assert f"{session} does not exist" in said
    assert f"yolofs sessions --forget {session.name}" in said
    assert "unreachable" in program("sessions").out
    program("sessions", "--forget", "--yes", session.name)
    assert program("sessions", "--json").json["sessions"] == []


# ---- where it is


def test_yolofs_state_names_the_state_directory(project: Path, tmp_path: Path, state: Path) -> None:
    chosen = tmp_path / "volume"
    program = Program(project)
    program("init", YOLOFS_STATE=str(chosen))
    assert session_of(program).parent == chosen / "sessions"
    program.refused("status", code=4)
    assert program("status", "--json", YOLOFS_STATE=str(chosen)).json["project"] == str(project)
    assert not state.exists()


def test_the_users_own_settings_name_the_state_directory(
    project: Path, tmp_path: Path, home: Path, state: Path
) -> None:
    (home / ".config/yolofs").mkdir(parents=True)
    (home / ".config/yolofs/config.toml").write_text('state = "~/kept"\n')
    program = Program(project)
    program("init")
    assert session_of(program).parent == home / "kept/sessions"
    assert program("status", "--json").json["project"] == str(project)
    assert not state.exists()


@pytest.mark.parametrize("value", ["relative", "../up"])
def test_a_relative_state_directory_is_refused(project: Path, state: Path, value: str) -> None:
    said = Program(project).refused("init", code=3, YOLOFS_STATE=value)
    assert f"YOLOFS_STATE: expected an absolute path or one below ~, got {value}" in said


def test_init_names_the_state_directory_of_one_session(project: Path, tmp_path: Path, state: Path) -> None:
    chosen = tmp_path / "volume"
    program = Program(project)
    program("init", "--state", "../volume")
    assert session_of(program).parent == chosen / "sessions"
    assert program("status", "--json").json["project"] == str(project)
    assert program("status", "--json", YOLOFS_STATE=str(chosen)).json["project"] == str(project)  # the home may be lost
    assert [entry["id"] for entry in program("sessions", "--json").json["sessions"]] == [session_of(program).name]


def test_a_place_in_the_project_is_refused(project: Path, state: Path) -> None:
    for place in (".", "inside", "a/../inside"):
        assert "lies in the project" in Program(project).refused("init", "--state", place, code=2)
    assert os.listdir(project) == []


def test_a_place_in_the_project_that_the_variable_names_is_refused(project: Path, state: Path, home: Path) -> None:
    said = Program(project).refused("init", code=2, YOLOFS_STATE=str(project / ".st"))
    assert "lies in the project" in said
    assert os.listdir(project) == []


def test_a_home_that_is_the_project_holds_its_own_state(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    Program(home)("init")
    assert session_of(Program(home)).parent == home / ".local/state/yolofs/sessions"


def test_two_that_start_at_once_do_not_get_into_each_others_way(tmp_path: Path, state: Path) -> None:
    projects = [tmp_path / f"p{number}" for number in range(8)]
    for path in projects:
        path.mkdir()
    started = [
        subprocess.Popen([*Program(path).command, "init"], cwd=path, stderr=subprocess.PIPE, text=True)
        for path in projects
    ]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert [code for _, code in ended] == [0] * 8, ended


def test_leftovers_of_a_killed_start_keep_no_other_start_out(project: Path, state: Path) -> None:
    state.mkdir(mode=0o700, parents=True)
    state.parent.chmod(0o700)
    (state / ".4711..yolofs-state.new").touch()
    Program(project)("init")


def test_a_state_directory_with_other_things_in_it_is_refused(project: Path, tmp_path: Path, state: Path) -> None:
    full = tmp_path / "full"
    full.mkdir(mode=0o700)
    (full / "letter").write_text("dear")
    said = Program(project).refused("init", "--state", full, code=2)
    assert f"{full} holds other things" in said
    assert os.listdir(full) == ["letter"]


# ---- on another disk


def in_namespace(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script as root in a mount namespace of its own."""
    yolofs = f'yolofs() {{ {sys.executable} -P -W error -m yolofs.cli.main "$@"; }}\n'
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", yolofs + script]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


@only_root
@pytest.mark.mount
def test_on_another_disk_the_session_lies_at_its_top(tmp_path: Path, state: Path) -> None:
    done = in_namespace(
        """
        mkdir disk; mount -t tmpfs -o mode=755 none disk; mkdir disk/p; cd disk/p; echo a > a
        yolofs init; readlink .yolofs; stat -c %a ../.yolofs-0
        yolofs run -- sh -c 'echo b > b; echo more >> a; ls -A ..'
        yolofs unmount; yolofs commit --yes . ; cat a b; find ../.yolofs-0 -path '*replaced*' -type f -exec cat {} +
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    link, mode, *rest = done.stdout.splitlines()
    assert Path(link).parent == tmp_path / "disk/.yolofs-0/sessions"
    assert mode == "700"
    assert rest[0] == "p"
    assert rest[-4:] == ["a", "more", "b", "a"]
    assert "another disk" not in done.stderr
    assert not list(state.glob("sessions/*"))


@only_root
@pytest.mark.mount
@pytest.mark.parametrize(
    "spoilt",
    [
        "mkdir -m 755 .yolofs-0",
        "ln -s /tmp .yolofs-0",
        "touch .yolofs-0",
        "chmod 777 .",
        "mkdir -m 700 .yolofs-0; touch .yolofs-0/.yolofs-state; ln -s /tmp .yolofs-0/sessions",
        "mkdir -m 700 .yolofs-0; touch .yolofs-0/.yolofs-state; mkfifo .yolofs-0/registry",
        "mkdir -m 700 .yolofs-0; touch .yolofs-0/.yolofs-state; mkdir -m 777 .yolofs-0/sessions",
        "git init -q .",
    ],
)
def test_where_the_top_of_the_disk_cannot_be_used_a_directory_of_the_users_is(
    tmp_path: Path, state: Path, spoilt: str
) -> None:
    done = in_namespace(
        f"""
        mkdir disk; mount -t tmpfs -o mode=755 none disk; cd disk; {spoilt}
        mkdir -p top/below/p; cd top/below/p; yolofs init; readlink .yolofs
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    place = Path(done.stdout.strip())
    if spoilt == "chmod 777 .":  # nothing below it is safe
        assert place.parent == state / "sessions"
        assert f"{state} is on another disk than the project, so files are copied instead of renamed" in done.stderr
    else:
        assert place.parent == tmp_path / "disk/top/.yolofs-0/sessions"


@only_root
@pytest.mark.mount
@pytest.mark.parametrize("marker", ["mkdir .git", "echo 'gitdir: /elsewhere' > .git"])
def test_a_work_tree_of_git_above_the_project_is_no_place_for_a_session(
    tmp_path: Path, state: Path, marker: str
) -> None:
    """``git clean -fdx`` there would take it away, and an archive or a branch could have put it
    there.
    """
    done = in_namespace(
        f"""
        mkdir disk; mount -t tmpfs -o mode=755 none disk; cd disk; chown {OTHER} .
        mkdir -p clone/p; cd clone; {marker}; cd p; yolofs init; readlink .yolofs
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == state / "sessions"


@pytest.mark.parametrize("part", ["registry", "sessions"])
@pytest.mark.parametrize("how", ["link", "fifo", "open"])
def test_a_part_of_the_state_directory_that_is_not_the_users_is_named(
    project: Path, tmp_path: Path, state: Path, part: str, how: str
) -> None:
    Program(project)("init")
    place = state / part
    match how:
        case "open":
            place.chmod(0o777)
        case "link":
            place.rename(tmp_path / "elsewhere")
            place.symlink_to(tmp_path / "elsewhere")
        case "fifo":
            place.rename(tmp_path / "elsewhere")
            os.mkfifo(place)
    other = tmp_path / "other"
    other.mkdir()
    assert str(place) in Program(other).refused("init", code=15)


def test_who_serves_a_disk_is_read_from_the_table_of_mounts() -> None:
    lines = [
        b"29 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,user_id=7\n",
        b"54 29 0:48 / /mnt/his rw,nosuid,nodev - fuse.sshfs host:/ rw,user_id=1001,group_id=1001,allow_other\n",
        b"55 29 0:49 / /mnt/mine rw,nosuid - fuse rw rw,user_id=0,group_id=0\n",
    ]
    assert servers_of(os.makedev(0, 48), lines) == {1001}
    assert servers_of(os.makedev(0, 49), lines) == {0}
    assert servers_of(os.makedev(8, 1), lines) == set()


@only_root
@pytest.mark.mount
def test_a_project_that_is_the_top_of_its_disk_has_its_session_elsewhere(tmp_path: Path, state: Path) -> None:
    done = in_namespace(
        """
        mkdir disk; mount -t tmpfs -o mode=755 none disk; cd disk; echo a > a; yolofs init; readlink .yolofs
        ls -A; yolofs run -- sh -c 'echo b > b; echo more >> a'; yolofs unmount
        yolofs commit --yes .; cat a b
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    link, *rest = done.stdout.splitlines()
    assert Path(link).parent == state / "sessions"
    assert sorted(rest[:3]) == [".yolofs", ".yolofs.toml", "a"]
    assert rest[-3:] == ["a", "more", "b"]
    assert done.stderr.count("is on another disk than the project") == 1
