"""The private /tmp and /var/tmp of runs, in real sandboxes.

The project of these tests lies in /tmp, as those of most tests do.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.ordinary_user import run_as_ordinary_user
from tests.support.program import COMMAND, Program
from tests.support.repositories import git
from tests.support.required import do_without
from tests.support.stepped import stepped

pytestmark = pytest.mark.mount
AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@example.org")


@pytest.fixture
def on_host() -> Iterator[Path]:
    """Return a file that the host has in /tmp."""
    with tempfile.NamedTemporaryFile(prefix="yolofs-on-host.", dir="/tmp") as file:
        file.write(b"of the host\n")
        file.flush()
        yield Path(file.name)


@pytest.fixture
def emptied(yolofs: Program) -> Iterator[Program]:
    """Return the program in its project, with nothing in the private directories at the end."""
    yield yolofs
    yolofs("abort", "--yes")


def sh(yolofs: Program, script: str) -> str:
    """Run a script, and return what it prints."""
    return yolofs("run", "--no-review", "sh", "-euc", script).out


def name() -> str:
    """Return a name that nothing on this machine has."""
    return f"test-{uuid.uuid4().hex}"


@pytest.mark.parametrize("top", ["/tmp", "/var/tmp"])
def test_files_in_tmp_are_there_for_the_next_run_and_neither_on_the_host_nor_in_the_view(
    emptied: Program, top: str
) -> None:
    path = f"{top}/{name()}"
    sh(emptied, f"echo kept > {path}")
    assert sh(emptied, f"cat {path}") == "kept\n"
    assert not os.path.lexists(path)
    assert not os.path.lexists(emptied.daemon["mountpoint"] + path)
    status = emptied("status", "--scratch", "--json").json
    assert status["changes"] == []
    assert status["run_tmp"]["size_bytes"] >= 4096
    assert not status["run_tmp"]["is_more"]
    found = Path(status["run_tmp"]["path"]) / top[1:].replace("/", "-") / os.path.basename(path)
    assert found.read_text() == "kept\n"
    assert (
        f"the private /tmp of runs takes {status['run_tmp']['size_bytes'] / 1024:.1f} KiB, in " in emptied("status").out
    )
    assert emptied("diff", "--scratch").out == ""


def test_work_in_tmp_makes_no_request_and_no_generation(emptied: Program) -> None:
    sh(emptied, "true")
    before = emptied("status", "--json").json
    done = emptied("run", "sh", "-c", "for n in 1 2 3; do echo $n > /tmp/$n; done; rm /tmp/2")
    assert done.err == ""
    after = emptied("status", "--json").json
    assert [after[key] for key in ("generation", "records_since")] == [before["generation"], before["records_since"]]


def test_files_of_the_host_in_tmp_are_not_visible_in_a_run_but_the_project_is(emptied: Program, on_host: Path) -> None:
    (emptied.project / "here").write_text("here\n")
    script = f"cat here; test ! -e {on_host}; ls -d {emptied.project}; echo made > made; mktemp > /dev/null"
    assert sh(emptied, script) == f"here\n{emptied.project}\n"
    assert [change["path"] for change in emptied("status", "--json").json["changes"]] == [f"{emptied.project}/made"]
    above = os.path.relpath(emptied.project, "/tmp").split("/")[0]
    assert above in sh(emptied, "ls /tmp").split()


def test_modes_are_those_of_the_usual_directories(emptied: Program) -> None:
    assert sh(emptied, "stat -c %a /tmp /var/tmp; umask 077; mktemp -d /tmp/d.XXXXXX > /dev/null") == "1777\n1777\n"


def test_runs_at_the_same_time_share_tmp(emptied: Program) -> None:
    path = f"/tmp/{name()}"
    with stepped(emptied, "--no-review") as one, stepped(emptied, "--no-review") as two:
        one.do(f"echo from-one > {path}")
        assert two.do(f"cat {path}; rm {path}") == "from-one\n"
        assert one.do(f"test ! -e {path} && echo gone") == "gone\n"
        one.end()
        two.end()


def test_abort_empties_tmp_and_says_how_much_there_was(emptied: Program) -> None:
    sh(emptied, "mkdir -p /tmp/a/b; chmod 0 /tmp/a; echo x > /var/tmp/f; mkfifo /tmp/fifo; ln -s /etc /tmp/link")
    (emptied.project / "kept").write_text("kept\n")
    emptied("abort", "--yes")
    assert emptied("status", "--json").json["run_tmp"]["size_bytes"] < 64 << 10  # the ways to the project stay
    assert (
        sh(emptied, "cd /tmp; ls -d a f fifo link 2> /dev/null | wc -l; ls /var/tmp; cat $OLDPWD/kept") == "0\nkept\n"
    )


def test_an_abort_beside_a_run_leaves_the_run_its_project(emptied: Program) -> None:
    directory = f"/tmp/{name()}"
    (emptied.project / "kept").write_text("kept\n")
    with stepped(emptied, "--no-review") as run:
        run.do(f"mkdir {directory}; cd {directory}; echo x > file")
        emptied("abort", "--yes")
        assert (
            run.do(f"cat {emptied.project}/kept; ls /tmp/{directory}; test ! -e {directory} && echo gone")
            == "kept\ngone\n"
        )
        assert run.do(f"cd {emptied.project} && echo more > by-the-run && cat kept && mktemp -u | wc -l") == "kept\n1\n"
        run.end()
    assert emptied("cat", ":by-the-run").out == "more\n"


def test_of_many_empty_files_status_says_that_there_are_more(emptied: Program) -> None:
    sh(emptied, "seq 4000 | (cd /tmp && xargs touch)")
    assert "the private /tmp of runs takes more than " in emptied("status").out
    assert emptied("status", "--json").json["run_tmp"]["is_more"]


def test_a_travel_leaves_tmp_alone(emptied: Program) -> None:
    path = f"/tmp/{name()}"
    sh(emptied, f"echo 1 > {path}; echo 1 > staged")
    emptied("travel", "base", "--force")
    assert sh(emptied, f"cat {path}; ls staged 2> /dev/null || echo gone") == "1\ngone\n"


def test_forgetting_a_session_removes_its_tmp(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted("--root", "/"):
        sh(yolofs, "mkdir -p /tmp/a/b/c; echo x > /tmp/a/f; chmod 0 /tmp/a/b")
        session = yolofs.session
    assert (session / "run-tmp/tmp/a").is_dir()
    yolofs("sessions", "--forget", "--yes", session.name)
    assert not session.exists()


# ---- what programs do there

PROGRAMS = {
    "mktemp": "f=$(mktemp); d=$(mktemp -d); echo x > $f; mv $f $d/g; cat $d/g",
    "a file without a name": """python3 -c "
import os
fd = os.open('/tmp', os.O_TMPFILE | os.O_RDWR)
os.write(fd, b'x\\n')
tmp = os.open('/tmp', os.O_RDONLY)  # so that Python takes linkat(2)
os.link(f'/proc/self/fd/{fd}', 'named', dst_dir_fd=tmp, follow_symlinks=True)
print(open('/tmp/named').read(), end='')"
""",
    "a socket": """python3 -c "
import os, socket
here, there = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
here.bind('/tmp/socket'); here.listen(); there.connect('/tmp/socket')
there.send(b'x\\n'); print(here.accept()[0].recv(9).decode(), end='')"
""",
    "a fifo": "mkfifo /tmp/fifo; echo x > /tmp/fifo & cat /tmp/fifo",
    "sort": "seq 200000 -1 1 | sort -n -S 100K -T /tmp | head -1 | sed s/1/x/",
    "a hard link and a rename": "echo x > /tmp/a; ln /tmp/a /tmp/b; mv /tmp/b /tmp/c; cat /tmp/c",
    "a rename into the project": "echo x > /tmp/moved; mv /tmp/moved moved; cat moved",
    "extended attributes": """
touch /tmp/f
setfacl -m u:$(id -u):r /tmp/f
getfacl -cn /tmp/f | grep -q user:$(id -u) && echo x
""",
    "sqlite": "sqlite3 /tmp/db 'pragma journal_mode=wal; create table t(c); insert into t values(1);' > /dev/null;"
    " sqlite3 /tmp/db 'pragma temp_store=1; select replace(c, 1, \"x\") from t order by c'",
    "a worktree of git": """
git init -q r; cd r; git config user.name u; git config user.email e; git commit -q --allow-empty -m one
git worktree add -q /tmp/worktree; cd /tmp/worktree; echo x > f; git add f; git commit -q -m two
git log --format=%s | head -1 | sed s/two/x/
""",
    "a build": "echo 'int main(void) { return 0; }' > m.c; gcc -o m m.c; ./m && echo x",
    "a lock": "flock /tmp/lock echo x",
    "pytest": f"""
echo 'def test_it(tmp_path): assert str(tmp_path).startswith("/tmp/")' > test_it.py
PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q | grep -c '1 passed' | sed s/1/x/
""",
    "tmux": "tmux new-session -d 'sleep 100'; tmux list-sessions | grep -c windows | sed s/1/x/",
}


@pytest.mark.parametrize("what", points(list(PROGRAMS), "programs with a private tmp", some=3))
def test_programs_work_in_tmp(emptied: Program, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    program = {"sqlite": "sqlite3", "a build": "gcc", "extended attributes": "setfacl"}.get(what, what)
    if program in ("sqlite3", "gcc", "setfacl", "tmux") and shutil.which(program) is None:
        do_without(f"{program} is not installed")
    assert sh(emptied, PROGRAMS[what]) == "x\n"


@pytest.mark.parametrize("variable", ["TMPDIR", "TEMP", "TMP"])
def test_a_directory_for_temporary_files_is_made_there(
    emptied: Program, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = f"{tmp_path}/user/1000"
    os.makedirs(directory)
    os.chmod(directory, 0o700)
    monkeypatch.setenv(variable, directory)
    assert sh(emptied, f"stat -c %a ${variable}; mktemp ${variable}/XXXXXX | wc -l") == "700\n1\n"
    assert os.listdir(directory) == []


def test_a_directory_for_temporary_files_elsewhere_is_the_views(
    emptied: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = emptied.project / "t"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    sh(emptied, "mktemp > /dev/null")
    changes = [Path(change["path"]) for change in emptied("status", "--json").json["changes"]]
    assert [path.parent for path in changes] == [directory]


# ---- what is said


def test_an_argument_that_only_the_host_has_is_told_of(emptied: Program, on_host: Path) -> None:
    own_file = os.path.expanduser("~/.config/yolofs/config.toml")
    said = (
        f"warning: not in this run, whose /tmp is its own: {on_host}; put it into the project, or show the run what the"
        f' host has: run.tmp = "view" in {own_file}\n'
    )
    for words in (["cat", str(on_host)], ["sh", "-c", f"cat <{on_host};"], ["cat", f"../../../../../../../{on_host}"]):
        assert said in emptied("run", *words, code=None).err
    assert emptied("run", "true", XAUTHORITY=str(on_host)).err == said.replace(str(on_host), f"{on_host} ($XAUTHORITY)")


def test_arguments_that_a_run_has_or_nobody_has_are_no_reason_for_a_note(emptied: Program, on_host: Path) -> None:
    sh(emptied, f"echo own > {on_host}")
    for words in (
        ["cat", str(on_host)],
        ["ls", "/tmp", "/tmp/", str(emptied.project), str(emptied.project.parent)],
        ["touch", f"/tmp/{name()}"],
        ["true", f"--file={emptied.project}/x"],
    ):
        assert emptied("run", "--no-review", *words).err == "", words
    with socket.socket(socket.AF_UNIX) as one:
        path = f"/tmp/{name()}"
        one.bind(path)
        try:
            assert emptied("run", "true", DBUS_SOCKET=path).err == ""
        finally:
            os.unlink(path)


def test_a_program_that_only_the_host_has_on_path_is_told_of(emptied: Program, tmp_path: Path) -> None:
    (tmp_path / "only-here").write_text("#!/bin/sh\n")
    (tmp_path / "only-here").chmod(0o755)
    done = emptied("run", "only-here", code=127, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert f"not in this run, whose /tmp is its own: {tmp_path}/only-here;" in done.err
    done = emptied("run", tmp_path / "only-here", code=127)
    assert f"{tmp_path}/only-here: there is no such command in the view\n" in done.err


# ---- what decides


def test_a_rule_of_the_users_own_has_the_view_there_and_that_is_said(tmp_path: Path, on_host: Path) -> None:
    yolofs = _other(tmp_path)
    with yolofs.mounted("--root", "/"):
        assert yolofs("run", "--no-review", "cat", on_host, code=1).out == ""
        yolofs("rule", "read-only", on_host)
        done = yolofs("run", "--no-review", "cat", on_host)
        assert done.out == "of the host\n"
        assert (
            f"warning: /tmp of this run is staged as the view has it, because of your rule for {on_host} (" in done.err
        )
        assert "/var/tmp" not in done.err
        assert yolofs("run", "--no-review", "findmnt", "-no", "FSTYPE", "-T", "/tmp").out == "fuse.yolofs\n"
        assert yolofs("run", "--no-review", "findmnt", "-no", "FSTYPE", "-T", "/var/tmp").out != "fuse.yolofs\n"
        yolofs("rule", "unset", on_host)
        assert yolofs("run", "--no-review", "cat", on_host, code=1).out == ""


def test_settings_switch_the_private_tmp_off_and_on_and_those_of_a_tree_wait(
    tmp_path: Path, on_host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yolofs = _other(tmp_path)
    config = tmp_path / "config/yolofs/config.toml"
    config.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def is_private() -> bool:
        return yolofs("run", "--no-review", "sh", "-c", f"test -e {on_host}", code=None).code == 1

    with yolofs.mounted("--root", "/"):
        assert is_private()
        (yolofs.project / ".yolofs.toml").write_text('[run]\ntmp = "view"\n')
        assert is_private()
        yolofs.trust()
        assert not is_private()
        (yolofs.project / ".yolofs.toml").write_text("")
    config.write_text('[run]\ntmp = "view"\n')
    with yolofs.mounted("--root", "/"):
        assert not is_private()
        (yolofs.project / ".yolofs.toml").write_text('[run]\ntmp = "private"\n')
        assert is_private()


def test_with_tmp_in_the_view_a_file_in_tmp_is_staged_and_travels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yolofs = _other(tmp_path)
    (yolofs.project / ".yolofs.toml").write_text('[run]\ntmp = "view"\n')
    yolofs.trust()
    path = f"/tmp/{name()}"
    with yolofs.mounted("--root", "/"):
        sh(yolofs, f"echo x > {path}")
        assert [change["path"] for change in yolofs("status", "--scratch", "--json").json["changes"]] == [path]
        yolofs("travel", "base", "--force")
        assert sh(yolofs, f"test ! -e {path} && echo gone") == "gone\n"
        assert not (yolofs.session / "run-tmp").exists()


@pytest.mark.parametrize("bare", [(), ("--bare",)], ids=["main", "bare"])
def test_git_works_in_a_linked_work_tree_whose_repository_lies_in_tmp_too(
    tmp_path: Path, bare: tuple[str, ...]
) -> None:
    """The repository alone is shown, not the other work tree."""
    first, second = tmp_path / "first", tmp_path / "second"
    git(tmp_path, "init", "-q", "first")
    (first / "a").write_text("a\n")
    git(first, "add", "a")
    git(first, *AUTHOR, "commit", "-q", "-m", "first")
    if bare:
        git(tmp_path, "clone", "-q", "--bare", "first", "bare")
        first = tmp_path / "bare"
    git(first, "worktree", "add", "-q", str(second), "-b", "side")
    repository = first if bare else first / ".git"
    commit = (repository / "refs/heads/side").read_text()
    yolofs = Program(second)
    yolofs.start_session()
    with yolofs.mounted("--root", "/"):
        author = " ".join(AUTHOR)
        script = f"echo more >> a; git {author} commit -q -a -m second; git log --format=%s -2; test ! -e {first}/a"
        assert sh(yolofs, script) == "second\nfirst\n"
        view = Path(yolofs.daemon["mountpoint"] + str(repository))
        shutil.rmtree(view)
        assert sh(yolofs, "cat a; git status 2> /dev/null || echo no repository") == "a\nmore\nno repository\n"
    assert (repository / "refs/heads/side").read_text() == commit


def test_a_work_tree_that_its_repository_does_not_know_shows_nothing_of_it(tmp_path: Path) -> None:
    """As anybody may have written the file ``.git`` that leads there."""
    repository = tmp_path / "first/.git"
    git(tmp_path, "init", "-q", "first")
    git(tmp_path / "first", *AUTHOR, "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path / "first", "worktree", "add", "-q", str(tmp_path / "second"), "-b", "side")
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(tmp_path / "second/.git", project)
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted("--root", "/"):
        assert sh(yolofs, f"test ! -e {repository} && echo not there") == "not there\n"


def test_a_home_in_tmp_is_shown_as_the_view_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (home / "notes").write_text("notes\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    yolofs = Program(home / "project")
    yolofs.start_session()
    with yolofs.mounted("--root", "/"):
        yolofs("rule", "allow", "~/notes")
        assert sh(yolofs, "cat ~/notes; echo more >> ~/notes; echo x > made; mktemp | cut -c1-5") == "notes\n/tmp/\n"
        changes = yolofs("status", "--scratch", "--json").json["changes"]
        assert {change["path"] for change in changes} == {f"{home}/notes", f"{home}/project/made"}
    assert (home / "notes").read_text() == "notes\n"


def test_with_tmp_as_the_home_directory_the_view_is_there(
    tmp_path: Path, on_host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in many containers."""
    monkeypatch.setenv("HOME", "/tmp")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yolofs = _other(tmp_path)
    with yolofs.mounted("--root", "/"):
        done = yolofs("run", "--no-review", "sh", "-c", f"cat {on_host}; findmnt -no FSTYPE -T /var/tmp")
        assert (done.out.split("\n")[0], done.err) == ("of the host", "")
        assert not done.out.endswith("fuse.yolofs\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_an_ordinary_user_has_a_private_tmp_too() -> None:
    yolofs = " ".join(COMMAND)
    script = f"""
        mkdir "$HOME/project" && cd "$HOME/project" && {yolofs} init && {yolofs} mount
        {yolofs} run --no-review sh -c 'd=$(mktemp -d); mkdir $d/e; echo kept > /tmp/f; stat -c %U /tmp/f; chmod 0 $d'
        {yolofs} run --no-review sh -c 'cat /tmp/f; findmnt -no OPTIONS /tmp; ls -d ~/project'
        {yolofs} status; {yolofs} abort --yes; {yolofs} run --no-review ls /tmp; {yolofs} unmount
    """
    done = run_as_ordinary_user(["sh", "-c", script], timeout_s=100)
    lines = done.stdout.splitlines()
    assert "yolofs-test" in lines
    assert "kept" in lines
    assert any(line.startswith("rw,nosuid,nodev") for line in lines)
    assert any(line.startswith("the private /tmp of runs takes ") for line in lines)
    assert not any(line.startswith("warning: the private /tmp") for line in lines), done.stdout


def _other(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    yolofs.start_session()
    return yolofs
