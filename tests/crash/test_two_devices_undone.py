"""A commit whose files lie on two devices is undone, and done again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.two_devices import BOTH, base_of, project
from tests.support.core_driver import CoreDriver
from tests.support.plain_directory import by_first_name, walk_tree
from yolofs.errors import ConflictError
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

__all__ = ["project"]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]


@BOTH
@pytest.mark.parametrize(("source", "target"), [("far/", ""), ("", "far/")])
@pytest.mark.parametrize("change", ["mode", "content"])
@pytest.mark.parametrize("is_in_directory", [False, True])
@pytest.mark.some(5)
def test_what_was_changed_and_moved_is_committed_again_after_an_undo(
    project: Path, source: str, target: str, change: str, is_in_directory: bool
) -> None:
    top = "moved" if is_in_directory else "file"
    file = f"{source}{top}/f" if is_in_directory else f"{source}{top}"
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("before")
    view = CoreDriver(os.fsencode(project))
    if change == "mode":
        view.chmod(file.encode(), 0o600)
    else:
        view.overwrite(file.encode(), b"view")
    view.rename(f"{source}{top}".encode(), f"{target}{top}".encode())
    view.close()
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        commit(session)
    after = by_first_name(dict(walk_tree(bytes(project))))
    for _ in range(2):
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, None))
        assert (project / file).read_text() == "before"
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            commit(session)
        assert by_first_name(dict(walk_tree(bytes(project)))) == after


@BOTH
def test_a_directory_that_was_removed_is_removed_again_after_an_undo(project: Path) -> None:
    (project / "far/gone/sub").mkdir(parents=True)
    (project / "far/gone/sub/x").write_text("x")
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"far/gone/sub/x")
    view.rmdir(b"far/gone/sub")
    view.rmdir(b"far/gone")
    view.close()
    for _ in range(2):
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            commit(session)
        assert not (project / "far/gone").exists()
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, None))
        assert (project / "far/gone/sub/x").read_text() == "x"
    (project / "far/gone/sub/x").write_text("y")
    with Session.open(bytes(project), SessionAccess.WRITE) as session, pytest.raises(ConflictError):
        commit(session)


@BOTH
@pytest.mark.parametrize(("source", "target"), [("far/", ""), ("", "far/")])
@pytest.mark.parametrize("change", ["mode", "content"])
@pytest.mark.some(4)
def test_of_a_changed_file_that_moved_along_each_name_is_staged_by_itself_after_an_undo(
    project: Path, source: str, target: str, change: str
) -> None:
    directory = project / f"{source}moved"
    directory.mkdir()
    (directory / "one").write_text("before")
    (directory / "two").hardlink_to(directory / "one")
    view = CoreDriver(os.fsencode(project))
    if change == "mode":
        view.chmod(f"{source}moved/one".encode(), 0o600)
    else:
        view.overwrite(f"{source}moved/one".encode(), b"view")
    view.rename(f"{source}moved".encode(), f"{target}moved".encode())
    view.close()
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        commit(session)
    committed = base_of(project)
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        undone = undo(session, choose_commit(session, None))
    assert set(undone.left_out) == {f"{target}moved/{name}".encode() for name in ("one", "two")}
    assert [(directory / name).read_text() for name in ("one", "two")] == ["before", "before"]
    assert (directory / "one").samefile(directory / "two")
    view = CoreDriver(os.fsencode(project))
    shown = view.tree()
    view.close()
    assert {path: what[:5] for path, what in shown.items()} == {path: what[:5] for path, what in committed.items()}
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        commit(session)
    assert base_of(project) == shown
