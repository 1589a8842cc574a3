"""What an undo has staged again: what the host does to it then is a conflict, as to anything that
is staged, and what the undo itself has done is none.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clocks import let_clocks_pass
from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from yolofs.cli.commit.commit_preview import preview_commit
from yolofs.commit.select.selection import Selection
from yolofs.errors import ConflictError
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.session.up_to import commit_up_to
from yolofs.state.regions import Region

OLD = 1_400_000_000_000_000_007
NEW = 1_450_000_000_000_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "folder").mkdir(parents=True)
    for path in ("folder/file", "folder/other"):
        (project / path).write_text("base\n")
    for path in ("folder", "folder/file"):
        os.setxattr(project / path, "user.base", b"1")
    for path in ("folder/file", "folder/other", "folder"):
        os.utime(project / path, ns=(OLD, OLD))
    Session.create(os.fsencode(project))
    return project


def give_attribute(path: Path) -> None:
    os.setxattr(path, "user.host", b"1")


def give_mode(path: Path) -> None:
    path.chmod(0o711)


def give_owner(path: Path) -> None:
    os.chown(path, 4242, -1)


def write_back_in_time(path: Path) -> None:
    st = path.stat()
    path.write_text("host\n")
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def commit_and_undo(project: Path, *act: bytes | int | str) -> None:
    view = CoreDriver(os.fsencode(project))
    getattr(view, str(act[0]))(*act[1:])
    view.commit()
    view.close()
    take_back(project)


def take_back(project: Path) -> None:
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, None))
    let_clocks_pass()


def redo(project: Path) -> None:
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        commit(session)


def check_conflict(project: Path, path: bytes) -> None:
    before = looks(project)
    with pytest.raises(ConflictError) as refused:
        redo(project)
    assert refused.value.paths == (path,)
    assert looks(project) == before


IN_PLACE = [
    ("chmod", b"folder/file", 0o600),
    ("setxattr", b"folder/file", b"user.one", b"1"),
    ("removexattr", b"folder/file", b"user.base"),
    ("utimes", b"folder/file", NEW),
]


@pytest.mark.parametrize("act", IN_PLACE)
def test_an_attribute_that_the_host_gives_to_a_file_whose_metadata_are_staged_again_is_a_conflict(
    project: Path, act: tuple[bytes | int | str, ...]
) -> None:
    commit_and_undo(project, *act)
    give_attribute(project / "folder/file")
    check_conflict(project, b"folder/file")


@pytest.mark.root_only
def test_an_attribute_that_the_host_gives_to_a_file_whose_owner_is_staged_again_is_a_conflict(project: Path) -> None:
    commit_and_undo(project, "chown", b"folder/file", 4242, 4242)
    give_attribute(project / "folder/file")
    check_conflict(project, b"folder/file")


def test_what_the_host_writes_into_a_file_whose_mode_is_staged_again_is_a_conflict(project: Path) -> None:
    commit_and_undo(project, "chmod", b"folder/other", 0o600)
    write_back_in_time(project / "folder/other")
    check_conflict(project, b"folder/other")


@pytest.mark.parametrize("new", [b"new", b"folder/new"])
def test_an_attribute_that_the_host_gives_to_a_file_whose_name_and_mode_are_staged_again_is_a_conflict(
    project: Path, new: bytes
) -> None:
    view = CoreDriver(os.fsencode(project))
    view.chmod(b"folder/file", 0o600)
    view.rename(b"folder/file", new)
    view.commit()
    view.close()
    take_back(project)
    give_attribute(project / "folder/file")
    check_conflict(project, new)


OF_DIRECTORY = [
    ("chmod", b"folder", 0o700),
    ("setxattr", b"folder", b"user.one", b"1"),
    ("removexattr", b"folder", b"user.base"),
]
GIFTS = [give_attribute, give_mode, pytest.param(give_owner, marks=pytest.mark.root_only)]


@pytest.mark.parametrize("give", GIFTS)
@pytest.mark.parametrize("act", OF_DIRECTORY)
def test_what_the_host_gives_to_a_directory_whose_metadata_are_staged_again_is_a_conflict(
    project: Path, act: tuple[bytes | int | str, ...], give: Callable[[Path], None]
) -> None:
    commit_and_undo(project, *act)
    give(project / "folder")
    check_conflict(project, b"folder")


def make_and_remove_name(project: Path) -> None:
    (project / "folder/file").rename(project / "folder/away")
    (project / "folder/away").rename(project / "folder/file")


def do_nothing(_: Path) -> None:
    pass


@pytest.mark.parametrize("act", IN_PLACE + OF_DIRECTORY)
def test_what_an_undo_has_staged_again_is_no_conflict(project: Path, act: tuple[bytes | int | str, ...]) -> None:
    before = looks(project)
    commit_and_undo(project, *act)
    assert looks(project) == before
    redo(project)
    take_back(project)
    assert looks(project) == before
    redo(project)


def test_names_that_come_and_go_in_a_directory_whose_mode_is_staged_again_are_no_conflict(project: Path) -> None:
    commit_and_undo(project, "chmod", b"folder", 0o700)
    make_and_remove_name(project)
    redo(project)
    assert (project / "folder").stat().st_mode & 0o777 == 0o700


def test_a_further_name_of_a_file_whose_mode_is_staged_again_is_no_conflict(project: Path) -> None:
    commit_and_undo(project, "chmod", b"folder/file", 0o600)
    os.link(project / "folder/file", project / "backup")
    redo(project)
    assert (project / "folder/file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", [b"folder", b"folder/file"])
def test_what_the_host_gives_to_something_of_which_a_later_version_is_staged_is_a_conflict(
    project: Path, path: bytes
) -> None:
    view = CoreDriver(os.fsencode(project))
    view.chmod(path, 0o700)
    generation = view.snapshot()
    view.chmod(path, 0o750)
    view.close()
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        selection = Selection(session.regions, wanted=frozenset(Region))
        commit_up_to(session, split=preview_commit(session, selection, session.timeline.resolve(str(generation)))[1])
    let_clocks_pass()
    give_attribute(project / os.fsdecode(path))
    check_conflict(project, path)
