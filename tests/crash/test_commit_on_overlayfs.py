"""A commit on OverlayFS, which renames no directory that the image of a container has: EXDEV, on
one device.

It is moved name by name then, and a kill at any line leaves what can be finished or taken back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.at_a_line import dies_at, has_way_back
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.overlayfs import Container, container
from tests.support.plain_directory import by_first_name, walk_tree
from tests.support.session_cleaning import remove_sessions_below
from yolofs.errors import ConflictError
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.mount,
    pytest.mark.root_only,
]
POINTS = 6
"""By night every line."""
OLD = 1_400_000_000_000_000_007


@pytest.fixture(params=["on it", "elsewhere"])
def image(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    """A container; the session lies in it, or on another device."""
    with container(tmp_path) as made:
        place = made.root if request.param == "on it" else tmp_path
        monkeypatch.setenv("YOLOFS_STATE", str(place / "state"))
        yield made


def populate(image: Path) -> None:
    """Make what the image has."""
    project = image / "project"
    for name in (
        "gone/deep/file",
        "gone/other",
        "moved/sub/a",
        "moved/b",
        "moved/empty",
        "left/x",
        "right/y",
        "kept/z",
    ):
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.mkdir() if name.endswith("empty") else file.write_text(f"base {name}")
    (project / "becomes a file").mkdir()
    os.symlink("../kept", project / "gone/deep/link")
    os.setxattr(project / "gone/deep", "user.one", b"of base")
    os.chmod(project / "gone/deep", 0o2750)
    os.chmod(project / "moved/empty", 0o500)
    os.chown(project / "moved/sub", 12, 13)
    for path in [*project.rglob("*"), project]:
        os.utime(path, ns=(OLD, OLD), follow_symlinks=False)


def work(view: CoreDriver) -> None:
    view.unlink(b"gone/deep/file")
    view.unlink(b"gone/deep/link")
    view.rmdir(b"gone/deep")
    view.unlink(b"gone/other")
    view.rmdir(b"gone")
    view.rename(b"moved", b"kept/new name")
    view.overwrite(b"kept/new name/sub/a", b"changed where it went")
    view.rename(b"left", b"t")
    view.rename(b"right", b"left")
    view.rename(b"t", b"right")
    view.rmdir(b"becomes a file")
    view.create(b"becomes a file", b"a file", 0o640)
    view.create(b"kept/made", b"made", 0o640)


def without_counts(tree: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    """Return a tree without how many links directories have: of those of both layers OverlayFS does
    not count them.
    """
    return {path: (*node[:5], 0, *node[6:]) if node[0] == "dir" else node for path, node in tree.items()}


def base_of(image: Container) -> dict[bytes, tuple[Any, ...]]:
    """Return what base is; nothing of the commit is to be left in it."""
    return without_counts(by_first_name(dict(walk_tree(os.fsencode(image.project)))))


def prepared(image: Container) -> dict[bytes, tuple[Any, ...]]:
    """Stage the work over the image as it was; return what base is to be."""
    remove_sessions_below(os.fsencode(image.project))
    image.renew(populate)
    view = CoreDriver(os.fsencode(image.project))
    work(view)
    expected = without_counts(view.tree())
    view.close()
    return expected


def test_directories_of_the_image_are_moved_and_removed_and_come_back(image: Container) -> None:
    expected = prepared(image)
    before = base_of(image)
    root = os.fsencode(image.project)
    with Session.open(root, SessionAccess.WRITE) as session:
        commit(session)
    assert base_of(image) == expected
    with Session.open(root, SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, None))
    assert base_of(image) == before
    with Session.open(root, SessionAccess.WRITE) as session:
        commit(session)
    assert base_of(image) == expected


WAYS: dict[str, Callable[[Session], object]] = {"finished": finish_interrupted, "taken back": roll_back_interrupted}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.some(2)
def test_a_kill_at_any_line_leaves_what_can_be_ended(image: Container, way: str) -> None:
    root = os.fsencode(image.project)
    prepared(image)
    total = dies_at(0, root, commit)
    assert total
    interrupted = 0
    for line in points(range(1, total), "overlayfs", way, some=POINTS):
        where = f"killed at line {line} of {total}"
        expected = prepared(image)
        before = base_of(image)
        dies_at(line, root, commit)
        if way == "taken back" and not has_way_back(root):
            continue
        dies_at(line % 300, root, WAYS[way])
        with Session.open(root, SessionAccess.WRITE) as session:
            interrupted += WAYS[way](session) is not None
        now = base_of(image)
        if way == "taken back" or now != expected:
            assert now == before, where
        with Session.open(root, SessionAccess.WRITE) as session:
            try:
                commit(session)
            except ConflictError as error:
                raise AssertionError(f"{where}: {error.paths}") from error
        assert base_of(image) == expected, where
    assert interrupted
