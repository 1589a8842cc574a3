"""Undos one after the other over two devices: what was copied there and back is what earlier
commits know, though it has another inode number.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.two_devices import BOTH, project
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.old_base import killed_after
from tests.support.plain_directory import walk_tree
from yolofs.commit.apply.steps import Steps
from yolofs.errors import ConflictError
from yolofs.session.commit import abort, commit
from yolofs.session.ending_interrupted import finish_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

__all__ = ["project"]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]

View = Callable[[CoreDriver], None]


def edit(view: CoreDriver) -> None:
    view.overwrite(b"far/d/x", b"edited")


def change_the_mode(view: CoreDriver) -> None:
    view.chmod(b"far/d/x", 0o600)


def rename(view: CoreDriver) -> None:
    view.rename(b"far/d/x", b"far/d/renamed")


def rename_and_edit(view: CoreDriver) -> None:
    view.rename(b"far/d/x", b"far/d/renamed")
    view.overwrite(b"far/d/renamed", b"edited")


def make_another(view: CoreDriver) -> None:
    view.create(b"far/d/new", b"new", 0o640)


def edit_what_has_links(view: CoreDriver) -> None:
    view.overwrite(b"far/d/one", b"edited")


def remove_a_link(view: CoreDriver) -> None:
    view.unlink(b"far/d/one")


def change_the_directory(view: CoreDriver) -> None:
    view.chmod(b"far/d", 0o700)


def rename_the_directory(view: CoreDriver) -> None:
    view.rename(b"far/d/sub", b"far/d/other")


def make_a_directory(view: CoreDriver) -> None:
    view.mkdir(b"far/d/made", 0o750)
    view.create(b"far/d/made/file", b"made", 0o640)


def bring_from_near(view: CoreDriver) -> None:
    view.rename(b"near", b"far/d/near")


def exchange(view: CoreDriver) -> None:
    view.rename(b"far/d/x", b"t")
    view.rename(b"near", b"far/d/x")
    view.rename(b"t", b"near")


FIRST = {
    act.__name__: act
    for act in (
        edit,
        change_the_mode,
        rename,
        rename_and_edit,
        make_another,
        edit_what_has_links,
        remove_a_link,
        change_the_directory,
        rename_the_directory,
        make_a_directory,
        bring_from_near,
        exchange,
    )
}


def files_there(view: CoreDriver) -> list[bytes]:
    return [path for path, what in view.tree().items() if path.startswith(b"far/d/") and what[0] != "dir"]


def remove_all(view: CoreDriver) -> None:
    """Remove what is in the directory on the other device, and that."""
    remove_files(view)
    for path in sorted(view.tree(), reverse=True):
        if (path + b"/").startswith(b"far/d/"):
            view.rmdir(path)


def remove_files(view: CoreDriver) -> None:
    """Remove each file there, and leave the directories."""
    for path in files_there(view):
        view.unlink(path)


def move_here(view: CoreDriver) -> None:
    """Move the directory to the session's device."""
    view.rename(b"far/d", b"here")


def move_files_here(view: CoreDriver) -> None:
    """Move each file there to the session's device."""
    for path in files_there(view):
        view.rename(path, b"here-" + os.path.basename(path))


def replace_files(view: CoreDriver) -> None:
    """Put a new file in the place of each there."""
    for path in files_there(view):
        view.unlink(path)
        view.create(path, b"another", 0o644)


SECOND = {act.__name__: act for act in (remove_all, remove_files, move_here, move_files_here, replace_files)}


def populate(project: Path) -> None:
    (project / "far/d/sub").mkdir(parents=True)
    for name in ("near", "far/d/x", "far/d/y", "far/d/sub/z", "far/d/one"):
        (project / name).write_text(f"base {name}")
    (project / "far/d/two").hardlink_to(project / "far/d/one")


def exactly(project: Path) -> dict[bytes, tuple[Any, ...]]:
    """Return all that there is, without inode numbers, but with times and which names are links of
    each other.
    """
    first: dict[tuple[int, int], bytes] = {}
    found: dict[bytes, tuple[Any, ...]] = {}
    for path, what in sorted(dict(walk_tree(bytes(project))).items()):
        st = os.lstat(os.path.join(bytes(project), path))
        file = first.setdefault((st.st_dev, st.st_ino), path)
        found[path] = (st.st_mode, st.st_uid, st.st_mtime_ns, st.st_nlink, file, what[:3] if what[0] == "file" else ())
    return found


def without_links(tree: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    return {path: (*what[:3], what[-1]) for path, what in tree.items()}


def committed(project: Path, work: View = lambda _: None) -> None:
    """Commit what is staged, and some work that is done before."""
    view = CoreDriver(bytes(project))
    work(view)
    view.close()
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        commit(session)


def undone(project: Path, number: int | None, *, force: bool = False) -> None:
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        result = undo(session, choose_commit(session, number), force=force)
        assert result.is_whole
        assert not result.stays


CASES = points([(first, second) for first in FIRST for second in SECOND], "chains", some=5)


@BOTH
@pytest.mark.parametrize(("first", "second"), CASES)
def test_base_is_what_it_was_before_each_commit_and_after_it_when_that_is_done_again(
    project: Path, first: str, second: str
) -> None:
    populate(project)
    before = exactly(project)
    committed(project, FIRST[first])
    between = exactly(project)
    committed(project, SECOND[second])
    after = exactly(project)
    assert len({str(sorted(one.items())) for one in (before, between, after)}) == 3
    for _ in range(2):
        undone(project, None)
        assert exactly(project) == between
        committed(project)
        assert exactly(project) == after
    undone(project, None)
    undone(project, 1)
    assert exactly(project) == before
    committed(project)
    assert without_links(exactly(project)) == without_links(after)
    undone(project, None)
    assert exactly(project) == before


@BOTH
@pytest.mark.parametrize(("first", "second"), CASES[:2])
def test_copied_files_are_known_again_when_the_notes_of_their_times_are_gone(
    project: Path, first: str, second: str
) -> None:
    """They are removed when nothing is staged any more."""
    populate(project)
    before = exactly(project)
    committed(project, FIRST[first])
    committed(project, SECOND[second])
    undone(project, 2)
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        abort(session)
    committed(project, lambda view: view.create(b"later", b"later", 0o644))
    undone(project, 1)
    now = exactly(project)
    assert now.pop(b"later")[0] == 0o100644
    assert now == before


@BOTH
@pytest.mark.parametrize("first", ["edit", "change_the_mode", "edit_what_has_links"])
@pytest.mark.parametrize("second", ["remove_all", "move_here", "move_files_here"])
@pytest.mark.some(5)
def test_copied_files_that_the_host_has_changed_since_are_drift(project: Path, first: str, second: str) -> None:
    populate(project)
    committed(project, FIRST[first])
    committed(project, SECOND[second])
    undone(project, 2)
    for name in ("x", "one"):
        (project / "far/d" / name).write_text("by the host")
    before = exactly(project)
    with pytest.raises(ConflictError):
        undone(project, 1)
    assert exactly(project) == before
    undone(project, 1, force=True)
    assert exactly(project) != before


@BOTH
@pytest.mark.parametrize("by_the_host", [None, "stays", "moved"])
@pytest.mark.parametrize(("stays", "moves"), [("far/d/one", "far/d/two"), ("far/d/two", "far/d/one")])
def test_a_name_that_was_moved_is_a_link_again_of_the_one_that_stayed(
    project: Path, stays: str, moves: str, by_the_host: str | None
) -> None:
    """If the host has changed either, both files are kept."""
    populate(project)
    before = exactly(project)
    committed(project, lambda view: view.rename(moves.encode(), b"here"))
    assert not (project / stays).samefile(project / "here")
    if by_the_host is not None:
        (project / {"stays": stays, "moved": "here"}[by_the_host]).write_text(f"by the host, {by_the_host}")
    undone(project, 1)
    if by_the_host is None:
        assert exactly(project) == before
    else:
        texts = {name: (project / path).read_text() for name, path in (("stays", stays), ("moved", moves))}
        assert texts == dict.fromkeys(texts, "base far/d/one") | {by_the_host: f"by the host, {by_the_host}"}


@BOTH
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("second", ["remove_all", "move_files_here"])
def test_an_undo_that_is_killed_while_it_tidies_up_causes_no_conflict(project: Path, second: str, number: int) -> None:
    """The directories that it has brought back are not touched once more."""
    populate(project)
    committed(project, make_a_directory)
    between = exactly(project)
    committed(project, SECOND[second])
    after = exactly(project)
    calls = itertools.count(1)
    killed_after(Steps, "_discard", lambda *_: next(calls) == number, lambda: undone(project, None))
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        finish_interrupted(session)
    assert exactly(project) == between
    committed(project)
    assert exactly(project) == after


@BOTH
def test_a_file_that_the_host_put_into_a_directory_of_a_killed_undo_is_a_conflict(project: Path) -> None:
    populate(project)
    committed(project, make_a_directory)
    committed(project, remove_all)
    killed_after(Steps, "_discard", lambda *_: True, lambda: undone(project, None))
    (project / "far/d/by the host").write_text("by the host")
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        finish_interrupted(session)
        with pytest.raises(ConflictError):
            commit(session)
    assert (project / "far/d/by the host").read_text() == "by the host"


@BOTH
@pytest.mark.parametrize("has_lost_its_time", [False, True], ids=["with its time", "without its time"])
@pytest.mark.parametrize("first", ["edit", "rename_and_edit"])
def test_an_undo_of_an_earlier_commit_that_is_killed_when_it_has_tidied_up_causes_no_conflict(
    project: Path, first: str, *, has_lost_its_time: bool
) -> None:
    """Its directory has got another ctime by that, of which nothing tells any more.

    A power cut may leave it without the time that it had.
    """
    populate(project)
    before = exactly(project)
    _kill_when_tidied_up(project, first)
    if has_lost_its_time:
        os.utime(project / "far/d")
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        finish_interrupted(session)
    assert exactly(project) == before
    committed(project)
    assert not (project / "far/d").exists()


@BOTH
def test_a_file_that_the_host_puts_there_after_an_undo_of_an_earlier_commit_is_a_conflict(project: Path) -> None:
    populate(project)
    _kill_when_tidied_up(project, "edit")
    (project / "far/d/sub/by the host").write_text("by the host")
    (project / "far/d/by the host").write_text("by the host")
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        finish_interrupted(session)
        with pytest.raises(ConflictError):
            commit(session)
    assert (project / "far/d/by the host").read_text() == "by the host"


def _kill_when_tidied_up(project: Path, first: str) -> None:
    """Undo two commits, one after the other; the second undo is killed when no leftover is there
    any more.
    """
    committed(project, FIRST[first])
    committed(project, remove_all)
    undone(project, 2)
    killed_after(Steps, "discard_leftovers", lambda *_: True, lambda: undone(project, 1))
