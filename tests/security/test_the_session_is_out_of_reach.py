"""Whatever comes into the tree, by git, tar or rsync: the session lies elsewhere, and no link is
read through.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program

pytestmark = pytest.mark.mount

_GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
_HOSTILE_RULES = '[rules]\n"/" = "allow"\n'


def git(project: Path, *words: str) -> str:
    done = subprocess.run([*_GIT, *words], cwd=project, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(yolofs: Program) -> Path:
    """The project as a git repository with one commit."""
    project = yolofs.project
    git(project, "init", "-q")
    git(project, "add", "a.txt", "dir")
    git(project, "commit", "-q", "-m", "first")
    return project


def stage(yolofs: Program) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt; rm dir/b.txt; echo more >> a.txt")


def check_staged(yolofs: Program) -> None:
    changes = {(change["kind"], change["path"]) for change in yolofs("status", "--json").json["changes"]}
    assert {("A", "new.txt"), ("D", "dir/b.txt"), ("M", "a.txt")} <= {
        (kind, os.path.relpath(path, yolofs.project)) for kind, path in changes
    }
    assert yolofs("run", "--", "cat", "new.txt", "a.txt").out == "staged\none\ntwo\nmore\n"


def clean(project: Path) -> None:
    git(project, "clean", "-fdx", "-e", "new.txt")
    assert not os.path.lexists(project / ".yolofs")


def remove(project: Path) -> None:
    subprocess.run(["rm", "-rf", ".yolofs"], cwd=project, check=True)


def check_out(project: Path) -> None:
    """Check out a branch that an agent has filled with a session of its own."""
    link = os.readlink(project / ".yolofs")
    (project / ".yolofs").unlink()
    git(project, "checkout", "-q", "-b", "agents")
    planted = project / ".yolofs"
    planted.mkdir()
    (planted / "journal").write_text("yolofs-journal 1\n")
    (planted / "rules.toml").write_text(_HOSTILE_RULES)
    (planted / "session.json").write_text('{"root":"/tmp","configured":"/tmp","version":1}')
    git(project, "add", "-f", ".yolofs")
    git(project, "commit", "-q", "-m", "theirs")
    git(project, "checkout", "-q", "main")
    (project / ".yolofs").symlink_to(link)
    git(project, "checkout", "-q", "-f", "agents")
    assert (project / ".yolofs/rules.toml").read_text() == _HOSTILE_RULES


def extract(project: Path) -> None:
    """Extract an archive that has a session in it, and a link that leads elsewhere."""
    source = project.parent / "archive"
    (source / ".yolofs/commits/1").mkdir(parents=True)
    (source / ".yolofs/rules.toml").write_text(_HOSTILE_RULES)
    (source / ".yolofs/journal").write_text("yolofs-journal 1\n")
    (source / ".yolofs").chmod(0o700)
    subprocess.run(["tar", "cf", "../archive.tar", "."], cwd=source, check=True)
    subprocess.run(["tar", "xf", "../archive.tar"], cwd=project, check=True)
    assert (project / ".yolofs/rules.toml").is_file()


def synchronise(project: Path) -> None:
    source = project.parent / "upstream"
    shutil.copytree(project, source, symlinks=True, ignore=shutil.ignore_patterns(".yolofs"))
    (source / ".yolofs").mkdir()
    (source / ".yolofs/rules.toml").write_text(_HOSTILE_RULES)
    command = ["rsync", "-a", "--delete", "--force", f"{source}/", f"{project}/"]
    subprocess.run(command, check=True)
    assert (project / ".yolofs/rules.toml").is_file()


EVENTS = [clean, remove, check_out, extract, synchronise]


@pytest.mark.parametrize(
    ("happen", "is_mounted"), points(list(itertools.product(EVENTS, [True, False])), "what happens to the link", some=3)
)
def test_staged_work_and_rules_are_there_whatever_happens_to_the_link(
    yolofs: Program, repository: Path, happen: Callable[[Path], None], is_mounted: bool
) -> None:
    yolofs("rule", "deny", "dir/secret")
    stage(yolofs)
    if not is_mounted:
        yolofs("unmount")
    happen(repository)
    check_staged(yolofs)
    assert "dir/secret" in yolofs("rule", "list").out
    assert "/ " not in yolofs("rule", "list").out.replace("# ", "")
    yolofs("unmount")
    yolofs("commit", "--yes", repository / "new.txt")
    assert (repository / "new.txt").read_text() == "staged\n"


@pytest.mark.parametrize("happen", [clean, remove])
def test_the_link_is_made_again_by_the_next_mount(
    yolofs: Program, repository: Path, happen: Callable[[Path], None]
) -> None:
    session = os.readlink(repository / ".yolofs")
    happen(repository)
    yolofs("mount")
    assert os.readlink(repository / ".yolofs") == session


def test_a_file_in_the_place_of_the_link_stays_as_it_is(yolofs: Program) -> None:
    link = yolofs.project / ".yolofs"
    link.unlink()
    link.write_text("mine\n")
    yolofs("run", "--", "true")
    assert link.read_text() == "mine\n"


def test_a_link_that_leads_elsewhere_leads_nobody_astray(yolofs: Program, tmp_path: Path) -> None:
    stage(yolofs)
    yolofs("unmount")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "rules.toml").write_text(_HOSTILE_RULES)
    (elsewhere / "journal").write_text("yolofs-journal 1\n")
    (yolofs.project / ".yolofs").unlink()
    (yolofs.project / ".yolofs").symlink_to(elsewhere)
    before = sorted(os.listdir(elsewhere))
    check_staged(yolofs)
    assert sorted(os.listdir(elsewhere)) == before
    assert "/ " not in yolofs("rule", "list").out.replace("# ", "")


def test_git_passes_over_the_link(repository: Path, yolofs: Program) -> None:
    yolofs("mount")
    assert ".yolofs\n" not in git(repository, "status", "--porcelain", "--untracked-files=all") + "\n"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    """Make a file that is all hole: 4 TiB, which take no room in an archive."""
    path.touch()
    os.truncate(path, 4 << 40)


@pytest.mark.parametrize("make", [make_fifo, make_endless, os.mkdir])
def test_a_repository_whose_exclude_file_is_no_file_is_left_alone(
    tmp_path: Path, state: Path, make: Callable[[Path], None]
) -> None:
    project = tmp_path / "clone"
    exclude = project / ".git/info/exclude"
    exclude.parent.mkdir(parents=True)
    make(exclude)
    before = exclude.lstat()
    Program(project)("init")
    assert (exclude.lstat().st_mode, exclude.lstat().st_size) == (before.st_mode, before.st_size)


def test_a_repository_whose_exclude_file_is_a_link_is_left_alone(tmp_path: Path, state: Path) -> None:
    project, target = tmp_path / "clone", tmp_path / "profile"
    project.mkdir()
    target.write_text("mine\n")
    git(project, "init", "-q")
    exclude = project / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.unlink(missing_ok=True)
    exclude.symlink_to(target)
    Program(project)("init")
    assert target.read_text() == "mine\n"
