"""An agent's git commit is committed, and undone after the host has run ``git status``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_git_index_drift import close_to_others, commit_in, git, look, repository, stage, tear
from tests.support.fault_points import points
from tests.support.program import Program
from yolofs.registry.search import session_of
from yolofs.text.git_index_format import entries

__all__ = ["repository"]

pytestmark = pytest.mark.mount


@pytest.fixture
def committed(repository: Program) -> tuple[Program, bytes]:
    """The repository after a commit of what git did in the view, and the index before that."""
    index = (repository.project / ".git/index").read_bytes()
    with repository.mounted() as view:
        commit_in(view)
    repository("commit", "--yes")
    return repository, index


def entries_of(index: bytes) -> list[tuple[bytes, bytes]]:
    """Return name and hash of each entry of an index."""
    return [(place.name, index[place.start + 40 : place.start + 60]) for place in entries(index, 20)]


def index_of(project: Path) -> bytes:
    return (project / ".git/index").read_bytes()


def test_an_undo_goes_on_though_the_host_has_looked_at_the_index(committed: tuple[Program, bytes]) -> None:
    yolofs, before = committed
    look(yolofs.project)
    yolofs("undo", "--yes")
    assert index_of(yolofs.project) == before
    assert git(yolofs.project, "log", "--format=%s").split() == ["one"]
    assert git(yolofs.project, "status", "--porcelain") == ""


@pytest.mark.parametrize("again", [("commit",), ("undo", "2")])
def test_a_git_commit_is_committed_again_though_the_host_has_looked_at_the_index(
    committed: tuple[Program, bytes], again: tuple[str, ...]
) -> None:
    yolofs, _ = committed
    yolofs("undo", "--yes")
    look(yolofs.project)
    assert "changed in base" not in yolofs("status").out
    yolofs(*again, "--yes")
    assert git(yolofs.project, "log", "--format=%s").split() == ["three", "two", "one"]
    assert git(yolofs.project, "status", "--porcelain") == ""


@pytest.mark.parametrize("looks_first", [False, True])
def test_a_git_commit_is_made_again_after_an_abort_though_the_host_has_looked(
    committed: tuple[Program, bytes], looks_first: bool
) -> None:
    yolofs, before = committed
    yolofs("undo", "--yes")
    if looks_first:
        look(yolofs.project)
    yolofs("abort", "--yes")  # nothing is staged, so nothing is kept for what is
    if not looks_first:
        look(yolofs.project)
    yolofs("undo", "2", "--yes")
    assert git(yolofs.project, "log", "--format=%s").split() == ["three", "two", "one"]
    assert git(yolofs.project, "status", "--porcelain") == ""
    os.utime(yolofs.project / "dir/b.txt", (2, 2))
    git(yolofs.project, "status")
    yolofs("undo", "3", "--yes")  # nothing was staged at any time
    assert git(yolofs.project, "log", "--format=%s").split() == ["one"]
    assert entries_of(index_of(yolofs.project)) == entries_of(before)


def test_a_repository_that_the_commit_made_is_taken_back_though_the_host_has_looked(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        git(view, "init")
        (view / ".git/info/exclude").write_text(".yolofs*\n")
        git(view, "add", ".")
        git(view, "commit", "-m", "one")
    yolofs("commit", "--yes")
    look(yolofs.project)
    yolofs("undo", "--yes")
    assert not (yolofs.project / ".git").exists()
    assert (yolofs.project / "a.txt").exists()


def make_repository(yolofs: Program) -> None:
    """Have the view make a repository, and commit it."""
    with yolofs.mounted() as view:
        git(view, "init")
        git(view, "add", ".")
        git(view, "commit", "-m", "one")
        yolofs("commit", "--yes")


def test_git_ignores_the_link_to_the_session_in_a_repository_that_a_commit_made(yolofs: Program) -> None:
    make_repository(yolofs)
    assert (yolofs.project / ".yolofs").is_symlink()
    assert git(yolofs.project, "status", "--porcelain") == ""


@pytest.mark.parametrize("again", [None, ("commit",), ("undo", "2")])
def test_the_line_by_which_git_ignores_the_link_is_no_drift_for_an_undo(
    yolofs: Program, again: tuple[str, ...] | None
) -> None:
    make_repository(yolofs)
    if again is not None:
        yolofs("undo", "--yes")
        yolofs(*again, "--yes")
    with yolofs.mounted():
        pass
    assert "/.yolofs\n" in (yolofs.project / ".git/info/exclude").read_text()
    yolofs("undo", "--yes")
    assert not (yolofs.project / ".git").exists()
    assert (yolofs.project / "a.txt").exists()


def test_other_lines_of_the_host_beside_that_are_drift_for_an_undo(yolofs: Program) -> None:
    make_repository(yolofs)
    with (yolofs.project / ".git/info/exclude").open("a") as exclude:
        exclude.write("mine\n")
    with yolofs.mounted():
        pass
    assert ".git/info/exclude" in yolofs("undo", "--yes", code=9).err
    assert "mine\n" in (yolofs.project / ".git/info/exclude").read_text()


@pytest.mark.parametrize(
    ("does", "drops"),
    points(list(itertools.product([stage, close_to_others, tear], [False, True])), "an index of an undo", some=3),
)
def test_what_the_host_did_to_an_index_that_an_undo_brought_is_a_conflict(
    committed: tuple[Program, bytes], does: Callable[[Path], None], drops: bool
) -> None:
    yolofs, _ = committed
    yolofs("undo", "--yes")
    if drops:
        yolofs("abort", "--yes")
    does(yolofs.project)
    before = index_of(yolofs.project)
    assert ".git/index" in yolofs("undo", "2", "--yes", code=9).err
    assert index_of(yolofs.project) == before


def write_to_the_store(project: Path) -> None:
    """Have the store say what the host has done: of what the commit left it knows nothing then."""
    stage(project)
    session = session_of(os.fsencode(project))
    assert session is not None
    files = Path(os.fsdecode(session.session)).glob("files/*/*")
    made = [path for path in files if path.is_file() and path.read_bytes()[:4] == b"DIRC"]
    assert made
    for path in made:
        path.write_bytes(index_of(project))


@pytest.mark.parametrize("does", [stage, close_to_others, tear, write_to_the_store])
@pytest.mark.some(2)
def test_an_index_that_the_host_changed_is_a_conflict_of_the_undo(
    committed: tuple[Program, bytes], does: Callable[[Path], None]
) -> None:
    yolofs, _ = committed
    does(yolofs.project)
    before = index_of(yolofs.project)
    assert ".git/index" in yolofs("undo", "--yes", code=9).err
    assert index_of(yolofs.project) == before
