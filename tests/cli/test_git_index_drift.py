"""An agent commits to git in the view, and the user works with git on the host meanwhile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


def git(directory: Path, *words: str) -> str:
    environment = {**os.environ, "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "n", f"GIT_{role}_EMAIL": "n@example.org"}
    done = subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


@pytest.fixture
def repository(yolofs: Program) -> Program:
    """Return the program in a project that is a repository, with nothing to be committed to it."""
    git(yolofs.project, "init")
    (yolofs.project / ".git/info/exclude").write_text(".yolofs*\n")
    git(yolofs.project, "add", ".")
    git(yolofs.project, "commit", "-m", "one")
    return yolofs


def commit_in(view: Path, *texts: str) -> None:
    """Commit, mostly twice, as agents do: the second index takes the place of a staged one, the
    first that of base's.
    """
    for text in texts or ("two", "three"):
        (view / "a.txt").write_text(f"{text}\n")
        git(view, "commit", "-a", "-m", text)


def look(project: Path) -> None:
    """Have ``git status`` write the index anew."""
    before = (project / ".git/index").read_bytes()
    os.utime(project / "dir/b.txt", (1, 1))
    git(project, "status")
    assert (project / ".git/index").read_bytes() != before


def test_a_git_commit_in_the_view_is_committed_though_the_host_has_looked(repository: Program) -> None:
    project = repository.project
    with repository.mounted() as view:
        commit_in(view)
        look(project)
        assert "changed in base" not in repository("status").out
        repository("commit", "--yes", ".git", "a.txt")
    assert git(project, "log", "--format=%s").split() == ["three", "two", "one"]
    assert git(project, "status", "--porcelain") == ""


def test_one_git_commit_in_the_view_is_committed_though_the_host_has_looked(repository: Program) -> None:
    project = repository.project
    with repository.mounted() as view:
        commit_in(view, "two")
        look(project)
        assert "changed in base" not in repository("status").out
        repository("commit", "--yes", ".git", "a.txt")
    assert git(project, "log", "--format=%s").split() == ["two", "one"]
    assert git(project, "status", "--porcelain") == ""


def refresh_on_both_sides(repository: Program) -> None:
    """Have git refresh the index in the view and in base, and commit that."""
    with repository.mounted() as view:
        os.utime(view / "a.txt", (2, 2))
        git(view, "status")
        look(repository.project)
        repository("commit", "--yes", ".git")
    assert git(repository.project, "status", "--porcelain") == ""


def test_an_index_that_view_and_host_only_refreshed_is_no_conflict(repository: Program) -> None:
    refresh_on_both_sides(repository)


@pytest.fixture
def split(repository: Program) -> Program:
    """Git keeps most of the index in a file that several versions of it share."""
    git(repository.project, "config", "splitIndex.maxPercentChange", "100")
    git(repository.project, "config", "core.splitIndex", "true")
    git(repository.project, "update-index", "--split-index")
    assert list((repository.project / ".git").glob("sharedindex.*"))
    return repository


@pytest.mark.parametrize("texts", [("two",), ("two", "three")], ids=["once", "twice"])
def test_a_split_index_that_the_host_only_refreshed_is_no_conflict(split: Program, texts: tuple[str, ...]) -> None:
    project = split.project
    with split.mounted() as view:
        commit_in(view, *texts)
        look(project)
        assert "changed in base" not in split("status").out
        split("commit", "--yes", ".git", "a.txt")
    assert git(project, "log", "--format=%s").split()[::-1] == ["one", *texts]
    assert git(project, "status", "--porcelain") == ""


def test_a_split_index_that_view_and_host_only_refreshed_is_no_conflict(split: Program) -> None:
    refresh_on_both_sides(split)


def test_a_split_index_with_another_shared_part_may_say_the_same(split: Program) -> None:
    with split.mounted() as view:
        os.utime(view / "a.txt", (2, 2))
        git(view, "update-index", "--split-index", "--refresh")  # a new part, in the view alone
        look(split.project)
        split("commit", "--yes", ".git")
    assert git(split.project, "status", "--porcelain") == ""


def test_a_split_index_at_which_the_view_has_but_looked_gives_way_to_the_hosts(split: Program) -> None:
    os.utime(split.project / "dir/b.txt", (1, 1))
    with split.mounted() as view:
        look_here(view)
        commit_by_host(split.project)
        before = (split.project / ".git/index").read_bytes()
        split("commit", "--yes", ".git")
        assert (split.project / ".git/index").read_bytes() == before
    assert git(split.project, "status", "--porcelain") == ""


def test_a_split_index_that_the_host_changed_is_a_conflict(split: Program) -> None:
    with split.mounted() as view:
        commit_in(view)
        stage(split.project)
        before = (split.project / ".git/index").read_bytes()
        assert "base has changed at 1 path " in split("commit", "--yes", ".git", code=9).err
        assert (split.project / ".git/index").read_bytes() == before


def stage(project: Path) -> None:
    (project / "dir/b.txt").write_text("by the host\n")
    git(project, "add", ".")


def close_to_others(project: Path) -> None:
    look(project)
    (project / ".git/index").chmod(0o600)


def tear(project: Path) -> None:
    look(project)
    content = (project / ".git/index").read_bytes()
    (project / ".git/index").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize("texts", [("two",), ("two", "three")], ids=["once", "twice"])
@pytest.mark.parametrize("does", [stage, close_to_others, tear])
@pytest.mark.some(3)
def test_an_index_that_the_host_changed_is_a_conflict(
    repository: Program, does: Callable[[Path], None], texts: tuple[str, ...]
) -> None:
    with repository.mounted() as view:
        commit_in(view, *texts)
        does(repository.project)
        before = (repository.project / ".git/index").read_bytes()
        assert "base has changed at 1 path " in repository("commit", "--yes", ".git", code=9).err
        assert (repository.project / ".git/index").read_bytes() == before


def commit_by_host(project: Path) -> None:
    (project / "dir/b.txt").write_text("by the host\n")
    git(project, "commit", "-a", "-m", "host's")


def look_here(view: Path) -> None:
    """Have ``git status`` write the index anew, as the host has touched a file since."""
    before = (view / ".git/index").read_bytes()
    git(view, "status")
    assert (view / ".git/index").read_bytes() != before


@pytest.fixture
def host_has_committed(repository: Program) -> Iterator[tuple[Program, Path]]:
    """The view has but looked, and the host has committed; give the view, too."""
    os.utime(repository.project / "dir/b.txt", (1, 1))
    with repository.mounted() as view:
        look_here(view)
        commit_by_host(repository.project)
        yield repository, view


def test_an_index_at_which_the_view_has_but_looked_gives_way_to_the_hosts(
    host_has_committed: tuple[Program, Path],
) -> None:
    yolofs, view = host_has_committed
    (view / "a.txt").write_text("by the view\n")
    before = (yolofs.project / ".git/index").read_bytes()
    assert "changed in base" not in yolofs("status").out
    assert yolofs("status", "--json").json["drift"] == []
    taken = ".git/index: base's version"
    assert f"{taken} would be taken" in yolofs("commit", "--dry-run").err
    done = yolofs("commit", "--yes")
    assert f"{taken} is taken; what was staged there is a generation" in done.err
    assert "commit 1 done" in done.err
    assert (yolofs.project / ".git/index").read_bytes() == before == (view / ".git/index").read_bytes()
    assert git(yolofs.project, "status", "--porcelain") == " M a.txt\n"


def test_with_nothing_staged_but_a_refreshed_index_there_is_nothing_to_commit(
    host_has_committed: tuple[Program, Path],
) -> None:
    yolofs, view = host_has_committed
    assert yolofs("commit", "--yes", "--merge").err.splitlines()[1:] == ["nothing to commit"]
    assert (view / ".git/index").read_bytes() == (yolofs.project / ".git/index").read_bytes()
    assert yolofs("status").out.endswith("\n\nno changes\n")


def test_ours_takes_even_an_index_at_which_the_view_has_but_looked(host_has_committed: tuple[Program, Path]) -> None:
    yolofs, view = host_has_committed
    staged = (view / ".git/index").read_bytes()
    yolofs("commit", "--yes", "--ours", ".git/index")
    assert (yolofs.project / ".git/index").read_bytes() == staged


def test_an_earlier_state_of_an_index_that_the_host_changed_is_a_conflict(
    host_has_committed: tuple[Program, Path],
) -> None:
    """What came later stays staged as it is."""
    yolofs, _ = host_has_committed
    yolofs("snapshot", "looked")
    assert "base has changed at 1 path " in yolofs("commit", "--yes", "--up-to", "looked", code=9).err


def add(view: Path) -> None:
    (view / "a.txt").write_text("by the view\n")
    git(view, "add", "a.txt")


def close_here(view: Path) -> None:
    look_here(view)
    (view / ".git/index").chmod(0o600)


@pytest.mark.parametrize("does", [add, close_here])
def test_an_index_that_the_view_changed_is_a_conflict(repository: Program, does: Callable[[Path], None]) -> None:
    os.utime(repository.project / "dir/b.txt", (1, 1))
    with repository.mounted() as view:
        does(view)
        commit_by_host(repository.project)
        before = (repository.project / ".git/index").read_bytes()
        assert "changed in base" in repository("status").out
        assert "base has changed at 1 path " in repository("commit", "--yes", ".git/index", code=9).err
        assert (repository.project / ".git/index").read_bytes() == before
