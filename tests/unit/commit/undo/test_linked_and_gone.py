"""An undo where files with hard links are staged, too, or the host has removed what is staged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.property.core_driver import CoreDriver
from tests.support.commit_model import CommitScribe
from tests.support.undo_model import Commits
from tests.unit.commit.old_base import at, scribe
from tests.unit.commit.undo.undoing import commits
from yolofs.errors import HardLinksError
from yolofs.session.session import Access, Session
from yolofs.session.undo import choose, undo

__all__ = ["commits", "scribe"]


def link(scribe: CommitScribe) -> None:
    scribe.copy_up(b"a", data=False)
    scribe.link(b"a", b"new")


def make_anew_and_link(scribe: CommitScribe) -> None:
    scribe.remove(b"a")
    scribe.write(b"a", b"another\n")
    scribe.link(b"a", b"new")


def edit(scribe: CommitScribe) -> None:
    scribe.write(b"a", b"edited\n")


def test_what_a_commit_keeps_takes_the_place_of_no_name_that_is_staged(commits: Commits) -> None:
    make_anew_and_link(commits.scribe)
    commits.commit(1)
    edit(commits.scribe)
    with pytest.raises(HardLinksError, match="what an earlier commit keeps is to take its place"):
        commits.prepare(1)


def test_a_name_that_base_is_to_lose_and_the_view_shows_is_refused(tmp_path: Path) -> None:
    """Of a file another name of which is removed in the view."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "a").write_text("a\n")
    (base / "other").hardlink_to(base / "a")
    view = CoreDriver(os.fsencode(base))
    view.link(b"a", b"new")
    view.commit()
    view.unlink(b"other")
    view.close()
    with (
        Session.open(os.fsencode(base), Access.WRITE) as session,
        pytest.raises(HardLinksError, match="it is shown by a name that base is to lose"),
    ):
        undo(session, choose(session, 1))


def test_a_name_outside_of_base_is_not_found(commits: Commits, tmp_path: Path) -> None:
    scribe = commits.scribe
    (tmp_path / "outside").hardlink_to(at(scribe, b"a"))
    link(scribe)
    commits.commit(1)
    edit(scribe)
    with pytest.raises(HardLinksError, match="some lie outside of base"):
        commits.prepare(1)


def test_a_staged_file_that_the_host_has_removed_is_known_by_what_it_was(commits: Commits) -> None:
    scribe = commits.scribe
    scribe.write(b"new", b"new\n")
    commits.commit(1)
    edit(scribe)
    (entry,) = (staged for staged in scribe.tree.staged.values() if staged.home == b"a")
    at(scribe, b"a").unlink()
    left = commits.undo(1, by=2).left
    (record,) = (record for record in left if record.path == b"a")
    assert (record.home, record.base) == (b"a", entry.base)
