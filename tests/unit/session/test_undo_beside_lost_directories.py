"""Work that is staged in a directory that the host has removed stays staged when something else is
undone or committed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from yolofs.changes.changes import compare
from yolofs.cli.commit.commit_preview import preview_commit
from yolofs.commit.select.selection import Selection
from yolofs.errors import ConflictError
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.session.up_to import commit_up_to
from yolofs.state.regions import Region
from yolofs.state.tree import Tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "lost/below").mkdir(parents=True)
    for path in ("other", "lost/file", "lost/gone", "lost/below/file"):
        (project / path).write_text("base\n")
    os.link(project / "lost/file", project / "link")
    Session.create(os.fsencode(project))
    return project


def edit(view: CoreDriver) -> None:
    view.overwrite(b"lost/gone", b"staged\n")


def edit_below(view: CoreDriver) -> None:
    view.overwrite(b"lost/below/file", b"staged\n")


def create(view: CoreDriver) -> None:
    view.create(b"lost/new", b"staged\n", 0o644)


def create_directory(view: CoreDriver) -> None:
    view.mkdir(b"lost/new", 0o755)
    view.create(b"lost/new/file", b"staged\n", 0o644)


def edit_and_remove(view: CoreDriver) -> None:
    view.overwrite(b"lost/gone", b"staged\n")
    view.unlink(b"lost/below/file")


def edit_and_move(view: CoreDriver) -> None:
    view.overwrite(b"lost/below/file", b"staged\n")
    view.rename(b"lost/below", b"lost/moved")


def edit_and_move_all(view: CoreDriver) -> None:
    view.overwrite(b"lost/gone", b"staged\n")
    view.rename(b"lost", b"moved")


def edit_link(view: CoreDriver) -> None:
    view.overwrite(b"lost/file", b"staged\n")


def edit_and_change_directory(view: CoreDriver) -> None:
    view.overwrite(b"lost/gone", b"staged\n")
    view.chmod(b"lost", 0o700)


WORK = [
    edit,
    edit_below,
    create,
    create_directory,
    edit_and_remove,
    edit_and_move,
    edit_and_move_all,
    edit_link,
    edit_and_change_directory,
]


def staged(project: Path) -> set[tuple[str, bytes]]:
    """Return the changes, without those of the file that is undone or committed."""
    with Session.open(os.fsencode(project), SessionAccess.READ) as session:
        changes = compare(Tree(), session.state(), session.base, session.store)
        return {(change.kind.name, change.path) for change in changes if change.path != b"other"}


def texts(project: Path) -> set[bytes]:
    """Return what the files in the store have that the view stages."""
    with Session.open(os.fsencode(project), SessionAccess.READ) as session:
        files = [session.store.path(one.ino) for one in session.state().staged.values()]
        return {Path(os.fsdecode(file)).read_bytes() for file in files if os.path.isfile(file)}


@pytest.mark.parametrize("work", WORK)
def test_an_undo_leaves_it_staged(project: Path, work: Callable[[CoreDriver], None]) -> None:
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"other", b"committed\n")
    view.commit()
    work(view)
    view.close()
    shutil.rmtree(project / "lost")
    before = staged(project)
    assert before
    assert b"staged\n" in texts(project)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, None))
    assert (project / "other").read_text() == "base\n"
    assert staged(project) == before
    assert texts(project) == {b"committed\n", b"staged\n"}
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session, pytest.raises(ConflictError):
        commit(session)


@pytest.mark.parametrize("work", WORK)
def test_a_commit_up_to_a_generation_leaves_it_staged(project: Path, work: Callable[[CoreDriver], None]) -> None:
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"other", b"committed\n")
    generation = view.snapshot()
    work(view)
    view.close()
    shutil.rmtree(project / "lost")
    before = staged(project)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        selection = Selection(session.regions, wanted=frozenset(Region))
        commit_up_to(session, split=preview_commit(session, selection, session.timeline.resolve(str(generation)))[1])
    assert (project / "other").read_text() == "committed\n"
    assert staged(project) == before
    assert b"staged\n" in texts(project)


def test_an_undo_stages_again_what_a_file_had_of_which_the_host_removed_the_name_with_staged_metadata(
    project: Path,
) -> None:
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"link", b"committed\n")
    view.commit()
    view.chmod(b"lost/file", 0o600)
    view.close()
    shutil.rmtree(project / "lost")
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, None))
    assert (project / "link").read_text() == "base\n"
    view = CoreDriver(os.fsencode(project))
    assert view.tree()[b"link"][2] == b"committed\n"
    view.close()
