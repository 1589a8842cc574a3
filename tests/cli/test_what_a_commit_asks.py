"""What stands before the question of a commit, and what either name of a rename takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    """Return a mounted view of the project."""
    with yolofs.mounted() as view:
        yield view


def test_the_question_says_that_the_timeline_ends(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("ONE\n")
    yolofs("snapshot", "first")
    (view / "new.txt").write_text("new\n")
    yolofs("snapshot", "second")
    with Terminal(yolofs.project, ["commit"]) as terminal:
        terminal.wait_for(
            "apply 2 changes: 1 added, 1 modified, and end the timeline (2 generations, read only from then on)? [y/N] "
        )
        terminal.type("n\n")
        assert terminal.wait() == 1


@pytest.mark.parametrize("name", ["a.txt", "b.txt"])
def test_a_renamed_file_is_committed_by_either_name(yolofs: Program, view: Path, name: str) -> None:
    (view / "a.txt").rename(view / "b.txt")
    (view / "other").write_text("other\n")
    done = yolofs("commit", "--yes", name)
    assert done.out == "R  a.txt -> b.txt\n\n1 change: 1 renamed\n"
    assert (yolofs.project / "b.txt").read_text() == "one\ntwo\n"
    assert not (yolofs.project / "a.txt").exists()
    assert not (yolofs.project / "other").exists()


@pytest.mark.parametrize("name", ["dir", "moved"])
def test_a_renamed_directory_is_committed_by_either_name(yolofs: Program, view: Path, name: str) -> None:
    (view / "dir").rename(view / "moved")
    yolofs("commit", "--yes", name)
    assert (yolofs.project / "moved/b.txt").read_text() == "b\n"


def test_the_old_name_of_a_rename_does_not_name_what_the_host_would_run(yolofs: Program, view: Path) -> None:
    (yolofs.project / ".git/hooks").mkdir(parents=True)
    (view / "a.txt").rename(view / ".git/hooks/pre-commit")
    yolofs("commit", "--yes", "a.txt", code=16)
    assert (yolofs.project / "a.txt").exists()
    assert not (yolofs.project / ".git/hooks/pre-commit").exists()
    yolofs("commit", "--yes", ".git/hooks/pre-commit")
    assert (yolofs.project / ".git/hooks/pre-commit").exists()


def test_conflicts_are_listed_before_the_first_is_asked_about_and_the_others_can_be_committed(
    yolofs: Program, view: Path
) -> None:
    project = yolofs.project
    for name in ("a.txt", "dir/b.txt"):
        (view / name).write_text("staged\n")
        (project / name).write_text("of the host\n")
    (view / "new.txt").write_text("new\n")
    with Terminal(project, ["commit"]) as terminal:
        terminal.wait_for("[c]ommit the others")
        before = terminal.text.partition("[m]erge")[0]
        assert "2 paths have changed in base, too:\r\n" in before.replace("\n", "\r\n")
        assert "  a.txt: " in before
        assert "  dir/b.txt: " in before
        terminal.type("c\n")
        terminal.wait_for("apply 1 change: 1 added? [y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (project / "new.txt").read_text() == "new\n"
    assert (project / "a.txt").read_text() == "of the host\n"
    assert (view / "a.txt").read_text() == "staged\n"


def test_without_a_terminal_what_is_asked_about_is_listed_before_it_is_refused(yolofs: Program, view: Path) -> None:
    (view / "new.txt").write_text("new\n")
    listed = "A  new.txt\n\n1 change: 1 added\n"
    refused = "this needs an answer, and there is no terminal to ask at\nhint: yolofs {} --yes\n"
    for command in ("commit", "abort"):
        done = yolofs(command, code=2)
        assert done.out == listed
        assert done.err.endswith(refused.format(command))
    yolofs("commit", "--yes")
    done = yolofs("undo", code=2)
    assert done.out == "D  new.txt\n\n1 change: 1 deleted\n"
    assert done.err.endswith(refused.format("undo"))
