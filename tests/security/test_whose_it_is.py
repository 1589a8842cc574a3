"""A session is for the user who made it: others' preparations above a directory, or in it, are not
looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ordinary_user import UID, USER, run_beside_ordinary_user
from tests.support.program import Program

OTHER = 54321
only_root = pytest.mark.root_only


@pytest.fixture
def room(tmp_path: Path, state: Path, home: Path) -> Path:
    path = tmp_path / "room"
    path.mkdir()
    return path


def give_away(path: Path) -> None:
    for place in (path, *path.rglob("*")):
        os.chown(place, OTHER, OTHER, follow_symlinks=False)


@only_root
def test_in_another_users_directory_root_is_refused_with_one_line(room: Path) -> None:
    theirs = room / "theirs"
    (theirs / "sub").mkdir(parents=True)
    give_away(theirs)
    for words in (("status",), ("init",), ("run", "--", "true"), ("doctor", "--repair")):
        said = Program(theirs).refused(*words, code=15)
        assert f"{theirs} belongs to user {OTHER}, and only the user who made a session may use it" in said
        assert f"yolofs --as-owner -C {theirs}" in said
        assert len(said.splitlines()) == 2
    assert f"{theirs / 'sub'} belongs to user {OTHER}" in Program(theirs / "sub").refused("status", code=15)
    assert os.listdir(theirs) == ["sub"]


@only_root
def test_a_project_that_another_user_prepared_above_is_not_looked_at(room: Path) -> None:
    theirs = room / "theirs"
    mine = theirs / "mine"
    mine.mkdir(parents=True)
    planted = theirs / ".yolofs"
    (planted / "commits/1").mkdir(parents=True)
    (planted / "journal").write_text("yolofs-journal 1\n")
    (planted / "commits/1/plan.json").write_text('{"root":"Lw==","steps":[],"version":1}')
    planted.chmod(0o700)
    give_away(theirs)
    os.chown(mine, 0, 0)
    said = Program(mine).refused("run", "--", "true", code=4)
    assert f"the search stops at {theirs}, which belongs to user {OTHER}" in said
    Program(mine)("init")
    assert Program(mine)("status", "--json").json["project"] == str(mine)


@only_root
def test_a_session_of_roots_above_is_not_found_through_another_users_directory(room: Path) -> None:
    Program(room)("init")
    theirs = room / "theirs"
    mine = theirs / "mine"
    mine.mkdir(parents=True)
    os.chown(theirs, OTHER, OTHER)
    assert "the search stops at" in Program(mine).refused("status", code=4)


@only_root
def test_the_user_may_name_directories_as_safe(room: Path, home: Path) -> None:
    theirs = room / "theirs"
    theirs.mkdir()
    give_away(theirs)
    settings = home / ".config/yolofs/config.toml"
    settings.parent.mkdir(parents=True)
    for safe in (room, theirs, "*"):
        settings.write_text(f'safe_directories = ["/nowhere", "{safe}"]\n')
        Program(theirs)("init")
        assert Program(theirs)("status", "--json").json["project"] == str(theirs)
    settings.write_text(f'safe_directories = ["{theirs}-and-more"]\n')
    Program(theirs).refused("status", code=15)


@only_root
@pytest.mark.mount
def test_the_search_stops_at_mount_points(room: Path) -> None:
    Program(room)("init")
    script = (
        "mkdir disk; mount -t tmpfs none disk; mkdir disk/sub; cd disk/sub; "
        f"{sys.executable} -P -m yolofs.cli.main status"
    )
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(command, cwd=room, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 4
    assert f"the search stops at the mount point {room / 'disk'}" in done.stderr


def test_the_search_stops_at_home(room: Path, tmp_path: Path, home: Path) -> None:
    below = home / "work/sub"
    below.mkdir(parents=True)
    Program(tmp_path)("init")
    Program(below).refused("status", code=4)
    Program(home)("init")
    assert Program(below)("status", "--json").json["project"] == str(home)


def test_a_project_below_home_is_found_from_within(room: Path, home: Path) -> None:
    project = home / "project"
    (project / "a/b/c").mkdir(parents=True)
    Program(project)("init")
    assert Program(project / "a/b/c")("status", "--json").json["project"] == str(project)


@only_root
@pytest.mark.mount
def test_as_owner_root_has_the_owners_session_and_rights() -> None:
    yolofs = f'yolofs() {{ {sys.executable} -P -m yolofs.cli.main --as-owner "$@"; }}; '
    script = (
        f"umask 022; {yolofs} cd $YOLOFS_TEST_HOME; mkdir p; echo a > p/a; chown -R {USER} p; cd p; "
        "yolofs init; yolofs run -- sh -c 'id -un; echo b > b; cat /etc/shadow'; "
        f"ls -d /run/yolofs-{UID}/*; yolofs unmount; yolofs commit --yes; "
        "stat -Lc '%U %n' .yolofs .yolofs.toml b $HOME_OF/.local/state/yolofs; yolofs --version; "
    )
    script = script.replace("$HOME_OF", "$YOLOFS_TEST_HOME")
    done = run_beside_ordinary_user(["sh", "-c", script], timeout_s=60)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert USER in lines, done.stdout
    # Nothing of theirs is left on the machine: without a directory for runtime it would be in /tmp.
    assert any(line.startswith(f"/run/yolofs-{UID}/") for line in lines), done.stdout
    assert any("shadow" in line and "ermission denied" in line for line in lines), done.stdout
    owners = [line.split(" ")[0] for line in lines if line.endswith((" .yolofs", ".yolofs.toml", " b", "/yolofs"))]
    assert owners[-4:] == [USER] * 4, done.stdout


_OF_ROOT = r"""
import contextlib, os, pathlib, shutil, subprocess, sys, tempfile
home = pathlib.Path(os.environ["YOLOFS_TEST_HOME"])
project = home / "p"
project.mkdir()
shutil.chown(project, sys.argv[1])
closed = pathlib.Path(tempfile.mkdtemp())
(closed / "secret").write_text("of root")
(closed / "secret").chmod(0o644)
os.chdir(closed)
os.umask(0)
held = os.open("secret", os.O_RDWR)
os.set_inheritable(held, True)
yolofs = [sys.executable, "-P", "-m", "yolofs.cli.main", "--as-owner", "-C", os.path.relpath(project)]
subprocess.run([*yolofs, "init"], check=True, pass_fds=[held])
there = {*os.listdir("/proc")}
process = subprocess.Popen([*yolofs, "run", "--no-review", "--", "sh", "-c", "echo ready; read line"], pass_fds=[held],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(process.stdout.readline().strip())
for pid in {name for name in os.listdir("/proc") if name.isdigit()} - there:
    place = pathlib.Path("/proc", pid)
    held_there = []
    for fd in (place / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            held_there.append(os.readlink(fd))
    status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines() if ":\t" in line)
    print("process", status["Name"], status["Umask"], status["CapPrm"], status["CapEff"], status["CapAmb"],
          str(closed) in os.readlink(place / "cwd"), any(str(closed) in name for name in held_there))
process.communicate("\n")
subprocess.run([*yolofs, "unmount"], check=True)
print("toml", oct((project / ".yolofs.toml").stat().st_mode & 0o777))
shutil.rmtree(closed)
"""


@only_root
@pytest.mark.mount
def test_as_owner_leaves_all_that_is_roots_behind() -> None:
    """Open files, the current directory, which is a way around closed ones above it, a umask that
    lets all write.
    """
    done = run_beside_ordinary_user([sys.executable, "-P", "-c", _OF_ROOT, USER], timeout_s=60)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert "ready" in lines, done.stdout
    processes = [line.split(" ") for line in lines if line.startswith("process ")]
    assert len(processes) >= 2, done.stdout
    assert {word.strip("0") for line in processes for word in line[3:6]} == {""}, done.stdout
    assert {tuple(line[6:]) for line in processes} == {("False", "False")}, done.stdout
    assert {line[2] for line in processes if line[1] == "sh"} == {"0022"}, done.stdout
    assert "toml 0o644" in lines


@only_root
def test_as_owner_needs_an_owner_with_a_name(room: Path) -> None:
    give_away(room)
    said = Program(room).refused("--as-owner", "status", code=15)
    assert f"belongs to user {OTHER}, whom /etc/passwd does not know" in said


@pytest.mark.ordinary_only
def test_only_root_may_work_as_an_owner(room: Path) -> None:
    assert "only root can" in Program(Path("/")).refused("--as-owner", "status", code=2)


def test_as_owner_of_ones_own_directory_is_as_without_it(room: Path) -> None:
    Program(room)("init")
    assert Program(room)("--as-owner", "status", "--json").json["project"] == str(room)
