"""An undo brings hard links back though a directory with one of them had moved to another disk:
after a redo, too, and whatever had become of the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program
from tests.support.second_disk import mounted_disk

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
NAMES = ("one/a", "one/b", "other/deep/c")


@pytest.fixture
def project(yolofs: Program) -> Iterator[Path]:
    """A project with another disk in it, and a file with three names."""
    project = yolofs.project
    (project / "far").mkdir()
    for directory in ("one", "other/deep"):
        (project / directory).mkdir(parents=True)
    (project / NAMES[0]).write_text("one file\n")
    for name in NAMES[1:]:
        (project / name).hardlink_to(project / NAMES[0])
    with mounted_disk(project / "far"):
        yield project


def remove_one(view: CoreDriver) -> None:
    view.unlink(b"one/a")
    view.unlink(b"one/b")
    view.rmdir(b"one")


def put_a_link_there(view: CoreDriver) -> None:
    remove_one(view)
    view.symlink(b"nowhere", b"one")


def remove_names(view: CoreDriver) -> None:
    view.unlink(b"one/a")
    view.unlink(b"one/b")


def remove_the_last(view: CoreDriver) -> None:
    view.unlink(b"other/deep/c")


def leave_all(view: CoreDriver) -> None:
    del view


def replace_the_moving_one(view: CoreDriver) -> None:
    view.create(b"made", b"another file", 0o644)
    view.rename(b"made", b"other/deep/c")


def remove_one_of_two(view: CoreDriver) -> None:
    view.unlink(b"one/a")


WAYS = [
    (leave_all, b"other"),
    (replace_the_moving_one, b"other"),
    (remove_one_of_two, b"other"),
    (remove_one, b"other"),
    (put_a_link_there, b"other"),
    (remove_names, b"other"),
    (remove_the_last, b"one"),
]


@pytest.mark.parametrize(("remove", "moves"), WAYS, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.some(4)
def test_an_undo_makes_names_links_again_of_one_that_moved_in_a_directory(
    yolofs: Program, project: Path, remove: Callable[[CoreDriver], None], moves: bytes
) -> None:
    before = looks(project)
    view = CoreDriver(bytes(project))
    remove(view)
    view.rename(moves, b"far/moved")
    view.close()
    yolofs("commit", "--yes")
    after = looks(project)
    for _ in range(2):
        said = yolofs("undo", "--yes").err
        assert "of its own" not in said
        assert looks(project) == before
        assert all((project / name).samefile(project / NAMES[0]) for name in NAMES)
        yolofs("commit", "--yes")
        assert looks(project) == after


def test_a_name_that_left_the_other_disk_in_a_directory_is_a_link_there_again(yolofs: Program, project: Path) -> None:
    names = (project / "far/stays", project / "far/moves/name")
    names[1].parent.mkdir()
    names[0].write_text("one file there\n")
    names[1].hardlink_to(names[0])
    before = looks(project)
    view = CoreDriver(bytes(project))
    view.rename(b"far/moves", b"moves")
    view.close()
    for _ in range(2):
        yolofs("commit", "--yes")
        yolofs("undo", "--yes")
        assert looks(project) == before
        assert names[0].samefile(names[1])


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_name_that_was_replaced_in_the_directory_is_a_link_again_of_another_one_in_there(
    yolofs: Program, project: Path, *, is_elsewhere: bool
) -> None:
    if not is_elsewhere:
        (project / NAMES[2]).unlink()
    before = looks(project)
    view = CoreDriver(bytes(project))
    view.unlink(b"one/a")
    view.create(b"one/a", b"another file\n", 0o644)
    if is_elsewhere:
        view.unlink(b"other/deep/c")
    view.rename(b"one", b"far/moved")
    view.close()
    yolofs("commit", "--yes")
    after = looks(project)
    for _ in range(2):
        assert "of its own" not in yolofs("undo", "--yes").err
        assert looks(project) == before
        assert (project / NAMES[0]).samefile(project / NAMES[1])
        yolofs("commit", "--yes")
        assert looks(project) == after


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_name_in_the_directory_is_a_link_again_of_a_file_that_another_undo_has_changed_unless_the_host_has_edited_it(
    yolofs: Program, project: Path, *, is_edited: bool
) -> None:
    before = looks(project)
    view = CoreDriver(bytes(project))
    view.overwrite(b"one/a", b"written\n")
    view.close()
    yolofs("commit", "--yes")
    view = CoreDriver(bytes(project))
    view.rename(b"other", b"far/moved")
    view.close()
    yolofs("commit", "--yes")
    if is_edited:
        (project / "far/moved/deep/c").write_text("the host's\n")
    yolofs("undo", "1", "--yes")
    yolofs("undo", "2", "--yes")
    assert (project / NAMES[0]).read_text() == "one file\n"
    if is_edited:
        assert (project / NAMES[2]).read_text() == "the host's\n"
    else:
        assert looks(project) == before
    assert (project / NAMES[0]).samefile(project / NAMES[1])
    assert (project / NAMES[0]).samefile(project / NAMES[2]) is not is_edited


def exchange_and_link(view: CoreDriver) -> None:
    view.rename(b"near", b"far/file", 2)
    view.link(b"near", b"other/near")


def move_and_link(view: CoreDriver) -> None:
    view.rename(b"far/file", b"moved")
    view.link(b"moved", b"other/moved")
    view.link(b"moved", b"linked")


def move_its_directory_and_link(view: CoreDriver) -> None:
    view.rename(b"far/folder", b"folder")
    view.link(b"folder/file", b"other/linked")
    view.link(b"folder/file", b"folder/linked")


@pytest.mark.parametrize("work", [exchange_and_link, move_and_link, move_its_directory_and_link])
def test_a_file_that_left_the_other_disk_and_got_names_is_one_file_in_the_view_after_an_undo(
    yolofs: Program, project: Path, work: Callable[[CoreDriver], None]
) -> None:
    (project / "far/folder").mkdir()
    for name in ("near", "far/file", "far/folder/file"):
        (project / name).write_text(f"{name}\n")
    before = looks(project)
    view = CoreDriver(bytes(project))
    work(view)
    view.close()
    yolofs("commit", "--yes")
    after = looks(project)
    for _ in range(2):
        assert "hard link" not in yolofs("undo", "--yes").err  # none is lost: the other names go
        assert looks(project) == before
        yolofs("commit", "--yes")
        assert looks(project) == after
