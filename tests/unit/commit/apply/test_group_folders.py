"""Folders that give a commit's new files a group without the user."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.group_folders import GROUP, HIDDEN, directory_with_a_group, folder_of, folders
from tests.support.user_identity import in_child
from yolofs.commit.apply import other_devices
from yolofs.commit.apply.other_devices import NotedFolder
from yolofs.paths import RelPath
from yolofs.system import syscalls
from yolofs.system.rename_domains import rename_domain

pytestmark = pytest.mark.root_only


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a commit makes such folders."""
    with directory_with_a_group() as directory:
        yield directory


def as_user(act: Callable[[], None]) -> None:
    assert in_child(act, is_root=False) == 0, "see above"


@pytest.mark.parametrize("is_moved", [False, True])
def test_what_is_made_in_a_group_folder_has_its_group(place: Path, is_moved: bool) -> None:
    shared = place / "base/shared"
    before = shared.stat().st_mtime_ns

    def act() -> None:
        found = folders(place, is_moved=is_moved)
        folder = folder_of(found, place, b"shared/sub")
        assert folder is not None
        assert folder_of(found, place, b"shared") is folder
        os.mkdir("made", dir_fd=folder.fd)
        os.symlink("x", "link", dir_fd=folder.fd)
        for name in ("made", "link"):
            assert os.lstat(name, dir_fd=folder.fd).st_gid == GROUP
        assert os.lstat("made", dir_fd=folder.fd).st_mode & stat.S_ISGID
        assert os.listdir(shared) == ["sub"]
        assert shared.stat().st_mtime_ns == before
        found.close()
        again = folders(place)
        again.reopen()
        assert sorted(os.listdir(again.by_number[0].fd)) == ["link", "made"]
        again.close()
        other_devices.remove(bytes(place / "commit"), HIDDEN)
        assert os.listdir(place / "commit") == ["far"]

    as_user(act)


def test_there_is_no_group_folder_where_no_directory_gives_the_group(place: Path) -> None:
    def act() -> None:
        found = folders(place)
        assert folder_of(found, place, b"own") is None
        assert found.of_group(GROUP + 1, rename_domain(bytes(place / "base")), RelPath(b"shared")) is None
        (place / "base/shared").chmod(0o2555)
        (place / "base/shared/sub").chmod(0o2555)
        assert folder_of(found, place, b"shared/sub") is None
        assert os.listdir(place / "commit") == []

    as_user(act)


@pytest.mark.parametrize("call", ["rename", "open_by_no_link"])
def test_a_folder_that_was_left_half_way_is_removed(place: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        found = folders(place)

        def die(*_: object, **__: object) -> NoReturn:
            raise InterruptedError

        with monkeypatch.context() as patch:
            if call == "rename":
                renamed = os.rename  # notes are renamed, too, by whole paths
                patch.setattr(os, "rename", lambda *paths, **fds: die() if fds else renamed(*paths))
            else:
                really = syscalls.open_by_no_link
                name = "yolofs.commit.apply.other_devices.open_by_no_link"
                patch.setattr(name, lambda path, flags: die() if HIDDEN in path else really(path, flags))
            with pytest.raises(InterruptedError):
                folder_of(found, place, b"shared")
        left = [*(place / "base").rglob(".yolofs*"), *(place / "commit").glob(".yolofs*")]
        assert len(left) == 1
        other_devices.remove(bytes(place / "commit"), HIDDEN)
        assert not left[0].exists()
        assert os.listdir(place / "base/shared") == ["sub"]

    as_user(act)


def test_only_folders_of_this_commit_are_removed(place: Path) -> None:
    for name in (".yolofs-4567-new-0", ".yolofs-0123-new-x", "sub"):
        (place / "base/shared" / name).mkdir(exist_ok=True)
    paths = [bytes(path) for path in (place / "base/shared").iterdir()]
    other_devices._note(bytes(place / "commit"), list(map(NotedFolder, paths)))  # as somebody might have planted it
    other_devices.remove(bytes(place / "commit"), HIDDEN)
    assert sorted(map(bytes, (place / "base/shared").iterdir())) == sorted(paths)
