"""An agent's git commit is committed, and undone after the host has run ``git status``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.test_git_index_drift import close_to_others, commit_in, git, look, repository, stage, tear
from yolofs.registry.search import session_of

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
def test_it_is_done_again_though_the_host_has_looked_at_the_index(
    committed: tuple[Program, bytes], again: tuple[str, ...]
) -> None:
    yolofs, _ = committed
    yolofs("undo", "--yes")
    look(yolofs.project)
    assert "changed in base" not in yolofs("status").out
    yolofs(*again, "--yes")
    assert git(yolofs.project, "log", "--format=%s").split() == ["three", "two", "one"]
    assert git(yolofs.project, "status", "--porcelain") == ""


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
def test_what_the_host_did_to_the_index_is_a_conflict_of_the_undo(
    committed: tuple[Program, bytes], does: Callable[[Path], None]
) -> None:
    yolofs, _ = committed
    does(yolofs.project)
    before = index_of(yolofs.project)
    assert ".git/index" in yolofs("undo", "--yes", code=9).err
    assert index_of(yolofs.project) == before
