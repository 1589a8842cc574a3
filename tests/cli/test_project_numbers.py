"""A commit where directories of base hand a project number down to what is made in them, as for
quotas: no rename and no link leads there from elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.looks import looks
from tests.support.program import Program
from tests.support.sharing_disk import disk_image

pytestmark = [pytest.mark.mount, pytest.mark.root_only]
_GET, _SET = 0x801C581F, 0x401C5820  # FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR
_ATTRIBUTES = struct.Struct("5I8x")
_HANDS_DOWN = 0x200


def project_number(path: Path, number: int | None = None) -> int:
    """Return the project number of a file or directory; give it one to hand down before."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        flags, extent, extents, found, shared = _ATTRIBUTES.unpack(fcntl.ioctl(fd, _GET, bytes(_ATTRIBUTES.size)))
        if number is None:
            return int(found)
        fcntl.ioctl(fd, _SET, _ATTRIBUTES.pack(flags | _HANDS_DOWN, extent, extents, number, shared))
        return number
    finally:
        os.close(fd)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A project in which two directories have numbers, on the disk of its session."""
    with disk_image("xfs", tmp_path) as disk:
        monkeypatch.setenv("YOLOFS_STATE", str(disk / "state"))
        project = disk / "project"
        for number, directory in enumerate((project, project / "other"), start=7):
            directory.mkdir()
            project_number(directory, number)
        for name in ("edited", "removed", "moved", "linked", "other/edited"):
            (project / name).write_text("old\n")
        (project / "link").hardlink_to(project / "linked")
        (project / "old").mkdir()
        (project / "old/file").write_text("old\n")
        program = Program(project)
        program.start_session()
        yield program


def test_a_commit_gives_what_is_new_the_number_of_its_directory_and_can_be_undone(program: Program) -> None:
    project = program.project
    before = looks(project)
    with program.mounted() as view:
        for path in ("edited", "other/edited", "new", "other/new", "linked"):
            (view / path).write_text("new\n")
        (view / "directory/in").mkdir(parents=True)
        (view / "directory/in/file").write_text("new\n")
        (view / "other/link").symlink_to("new")
        os.mkfifo(view / "fifo")
        (view / "removed").unlink()
        (view / "moved").rename(view / "other/moved")
        (view / "old").rename(view / "other/old")
        shown = {path.relative_to(view) for path in view.rglob("*")}
        program("commit", "--yes")
    assert {path.relative_to(project) for path in project.rglob("*")} - {Path(".yolofs")} == shown - {Path(".yolofs")}
    for path, number in (("edited", 7), ("new", 7), ("directory/in/file", 7), ("other/new", 8), ("other/moved", 8)):
        assert project_number(project / path) == number, path
    assert (project / "link").read_text() == "new\n"
    assert not [*project.rglob(".yolofs-*")]
    after = looks(project)
    program("undo", "--yes")
    assert looks(project) == before
    program("commit", "--yes")
    assert looks(project) == after


def test_hard_links_that_a_move_to_another_number_cuts_are_told_before_the_commit(program: Program) -> None:
    project = program.project
    with program.mounted() as view:
        (view / "link").rename(view / "other/link")
        said = f"{project}/other/link moves to another disk or mount, and is no longer a hard link of {project}/linked"
        assert said in program("commit", "--dry-run").err
        assert said in program("commit", "--yes").err
    assert (project / "linked").stat().st_nlink == 1


def test_what_stays_staged_of_a_file_that_got_another_number_is_no_conflict(program: Program) -> None:
    project = program.project
    with program.mounted() as view:
        (view / "moved").rename(view / "other/moved")
        program("snapshot")
        with (view / "other/moved").open("a") as file:
            file.write("more\n")
        program("commit", "--yes", "--up-to", "1")
        assert "changed in base, too" not in program("status").out
        program("commit", "--yes")
    assert (project / "other/moved").read_text() == "old\nmore\n"


def test_what_is_staged_of_a_file_that_an_undo_gives_its_old_number_is_no_conflict(program: Program) -> None:
    project = program.project
    with program.mounted() as view:
        (view / "moved").rename(view / "other/moved")
        program("commit", "--yes")
        with (view / "other/moved").open("a") as file:
            file.write("more\n")
        program("undo", "--yes")
        assert "changed in base, too" not in program("status").out
        program("commit", "--yes")
    assert (project / "other/moved").read_text() == "old\nmore\n"
    assert not (project / "moved").exists()
