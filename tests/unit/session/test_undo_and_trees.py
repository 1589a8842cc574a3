"""An undo of what has made a directory, or brought one back, where the host or a later commit has
changed something of it, or in it, since: nobody's change goes with it unseen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clocks import let_clocks_pass
from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from yolofs.errors import ConflictError
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import UndoResult, choose_commit, undo

Act = tuple[str, *tuple[bytes | int, ...]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a tree in it, and things that the host may move there."""
    project = tmp_path / "project"
    for path in ("tree/sub/file", "hosts/file", "hosts/folder/file"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(f"{path}\n")
    Session.create(os.fsencode(project))
    return project


def act(project: Path, *acts: Act) -> None:
    view = CoreDriver(os.fsencode(project))
    for name, *arguments in acts:
        getattr(view, name)(*arguments)
    view.commit()
    view.close()


def take_back(project: Path, number: int) -> UndoResult:
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        return undo(session, choose_commit(session, number))


def bring_tree_back(project: Path) -> None:
    """Have commit 1 remove the tree, and commit 2 bring it back, after which nothing is staged."""
    act(project, ("unlink", b"tree/sub/file"), ("rmdir", b"tree/sub"), ("rmdir", b"tree"))
    take_back(project, 1)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        session.put_away(None)
    let_clocks_pass()


def give_attribute(path: Path) -> None:
    os.setxattr(path, "user.host", b"1")


def give_mode(path: Path) -> None:
    path.chmod(0o711)


def give_setgid(path: Path) -> None:
    path.chmod(0o2755)


def give_owner(path: Path) -> None:
    os.chown(path, 7, 8)


def move_file_there(path: Path) -> None:
    (path.parents[1] / "hosts/file").rename(path)


def move_folder_there(path: Path) -> None:
    (path.parents[1] / "hosts/folder").rename(path)


def make_folder(path: Path) -> None:
    path.mkdir()


GIVING = [give_attribute, give_mode, give_setgid, pytest.param(give_owner, marks=pytest.mark.root_only)]


@pytest.mark.parametrize("give", GIVING)
@pytest.mark.parametrize("name", ["tree", "tree/sub", "tree/sub/file"])
def test_what_the_host_has_given_to_something_in_a_tree_that_came_back_is_drift(
    project: Path, name: str, give: Callable[[Path], None]
) -> None:
    bring_tree_back(project)
    give(project / name)
    before = looks(project)
    with pytest.raises(ConflictError) as refused:
        take_back(project, 2)
    assert refused.value.paths == (os.fsencode(name),)
    assert looks(project) == before


@pytest.mark.parametrize("move", [move_file_there, move_folder_there, make_folder])
def test_what_the_host_has_moved_into_a_tree_that_came_back_is_drift_however_old_it_is(
    project: Path, move: Callable[[Path], None]
) -> None:
    bring_tree_back(project)
    move(project / "tree/new")
    with pytest.raises(ConflictError) as refused:
        take_back(project, 2)
    assert refused.value.paths == (b"tree/new",)
    assert (project / "tree/new").exists()


def test_what_backups_and_programs_leave_in_a_tree_that_came_back_is_no_drift(project: Path) -> None:
    bring_tree_back(project)
    os.link(project / "tree/sub/file", project.parent / "backup")
    (project / "tree/sub/temporary").write_text("gone again\n")
    (project / "tree/sub/temporary").unlink()
    assert take_back(project, 2).is_whole
    assert not (project / "tree").exists()


CHANGES: list[list[Act]] = [
    [("append", b"tree/sub/file", b"more\n")],
    [("create", b"tree/sub/new", b"new\n", 0o644)],
    [("setxattr", b"tree/sub", b"user.one", b"1")],
    [("unlink", b"tree/sub/file")],
    [("chmod", b"tree", 0o700)],
]


@pytest.mark.parametrize("acts", CHANGES)
def test_what_a_later_commit_has_changed_in_a_tree_that_came_back_is_named(project: Path, acts: list[Act]) -> None:
    bring_tree_back(project)
    act(project, *acts)
    before = looks(project / "tree")
    result = take_back(project, 2)
    assert "commit 3 has changed it since; first: yolofs undo 3" in result.stays.values()
    assert looks(project / "tree") == before
    take_back(project, 3)
    assert take_back(project, 2).is_whole
    assert not (project / "tree").exists()


def test_a_directory_of_which_a_later_commit_has_changed_the_mode_is_named_with_that(project: Path) -> None:
    act(project, ("mkdir", b"new", 0o755), ("create", b"new/file", b"new\n", 0o644))
    act(project, ("chmod", b"new", 0o700))
    result = take_back(project, 1)
    assert result.stays == {b"new": "commit 2 has changed it since; first: yolofs undo 2"}
    assert (project / "new").is_dir()
    take_back(project, 2)
    assert take_back(project, 1).is_whole
    assert not (project / "new").exists()


@pytest.mark.parametrize("give", GIVING)
def test_what_the_host_has_given_to_a_directory_whose_mode_a_later_commit_has_changed_is_drift(
    project: Path, give: Callable[[Path], None]
) -> None:
    act(project, ("mkdir", b"new", 0o755))
    act(project, ("chmod", b"new", 0o700))
    give(project / "new")
    assert take_back(project, 1).stays == {b"new": "commit 2 has changed it since; first: yolofs undo 2"}
    with pytest.raises(ConflictError) as refused:
        take_back(project, 2)
    assert refused.value.paths == (b"new",)


@pytest.mark.parametrize("also", [[], [("chmod", b"hosts", 0o711)]])
def test_an_undo_of_an_undo_of_an_undo_brings_back_the_times_of_directories(project: Path, also: list[Act]) -> None:
    os.utime(project / "hosts", ns=(10**18, 10**18))
    before = looks(project)
    act(project, ("create", b"hosts/new", b"new\n", 0o644), *also)
    after = looks(project)
    for number in range(1, 7):
        take_back(project, number)
        assert looks(project) == (before if number % 2 else after), number


def test_an_attribute_of_a_directory_is_drift_though_a_later_commit_has_changed_the_one_above(project: Path) -> None:
    act(project, ("chmod", b"tree/sub", 0o700))
    act(project, ("chmod", b"tree", 0o700))
    give_attribute(project / "tree/sub")
    with pytest.raises(ConflictError) as refused:
        take_back(project, 1)
    assert refused.value.paths == (b"tree/sub",)
    assert os.getxattr(project / "tree/sub", "user.host") == b"1"


def test_an_attribute_that_a_later_commit_has_given_to_a_directory_is_named_with_that(project: Path) -> None:
    act(project, ("chmod", b"tree", 0o700))
    act(project, ("setxattr", b"tree", b"user.one", b"1"))
    assert take_back(project, 1).stays == {b"tree": "commit 2 has changed it since; first: yolofs undo 2"}
    assert os.getxattr(project / "tree", "user.one") == b"1"


@pytest.mark.parametrize("give", GIVING)
def test_what_the_host_has_given_to_a_new_directory_is_drift(project: Path, give: Callable[[Path], None]) -> None:
    act(project, ("mkdir", b"new", 0o755), ("create", b"new/file", b"new\n", 0o644))
    give(project / "new")
    with pytest.raises(ConflictError) as refused:
        take_back(project, 1)
    assert refused.value.paths == (b"new",)
