"""An undo where files with hard links are staged, too, or the host has removed what is staged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.core_driver import CoreDriver
from tests.support.old_base import at, scribe
from tests.support.undo_model import Commits
from tests.unit.commit.undo.undo_scribe import commits
from yolofs.errors import HardLinksError
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

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


def test_what_a_commit_keeps_comes_back_where_a_file_is_that_is_staged(commits: Commits) -> None:
    scribe = commits.scribe
    before = at(scribe, b"a").read_bytes()
    make_anew_and_link(scribe)
    commits.commit(1)
    edit(scribe)
    view = scribe.expected()
    commits.undo(1, by=2)
    assert at(scribe, b"a").read_bytes() == before
    assert not at(scribe, b"new").exists()
    assert scribe.expected() == view


def test_a_name_that_base_loses_and_the_view_shows_is_staged_as_one_of_the_name_that_stays(tmp_path: Path) -> None:
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
    with Session.open(os.fsencode(base), SessionAccess.WRITE) as session:
        assert undo(session, choose_commit(session, 1)).is_whole
    assert sorted(path.name for path in base.iterdir() if not path.name.startswith(".")) == ["a", "other"]
    assert (base / "a").samefile(base / "other")
    view = CoreDriver(os.fsencode(base))
    assert sorted(path for path in view.tree() if path and not path.startswith(b".")) == [b"a", b"new"]
    view.commit()
    view.close()
    assert (base / "a").samefile(base / "new")
    assert not (base / "other").exists()


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


def make_another_file(view: CoreDriver) -> None:
    view.unlink(b"a")
    view.create(b"a", b"another\n", 0o644)


def make_a_directory(view: CoreDriver) -> None:
    view.unlink(b"a")
    view.mkdir(b"a", 0o755)
    view.create(b"a/file", b"file\n", 0o644)


def move_a_directory_there(view: CoreDriver) -> None:
    view.unlink(b"a")
    view.mkdir(b"new", 0o755)
    view.rename(b"new", b"a")


def rename_over_it(view: CoreDriver) -> None:
    view.rename(b"file", b"a")


def exchange_and_remove(view: CoreDriver) -> None:
    view.rename(b"file", b"a", 2)
    view.unlink(b"file")


def link_over_it(view: CoreDriver) -> None:
    view.link(b"file", b"new")
    view.rename(b"new", b"a")


def remove_the_directory(view: CoreDriver) -> None:
    view.unlink(b"d/one too")
    view.create(b"a too", b"a too\n", 0o644)
    view.unlink(b"d/one")
    view.rmdir(b"d")
    view.create(b"d", b"a file\n", 0o644)


@pytest.mark.parametrize(
    "act",
    [
        make_another_file,
        make_a_directory,
        move_a_directory_there,
        rename_over_it,
        exchange_and_remove,
        link_over_it,
        remove_the_directory,
    ],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize("is_renamed", [False, True], ids=["stays", "is renamed"])
def test_a_name_that_comes_back_where_the_view_has_something_else_is_no_name_of_the_view(
    tmp_path: Path, act: Callable[[CoreDriver], None], is_renamed: bool
) -> None:
    base = tmp_path / "base"
    (base / "d").mkdir(parents=True)
    (base / "file").write_text("file\n")
    (base / "a").write_text("a\n")
    (base / "other").hardlink_to(base / "a")
    (base / "d/one").hardlink_to(base / "a")
    (base / "d/one too").hardlink_to(base / "a")
    view = CoreDriver(os.fsencode(base))
    act(view)
    if is_renamed:
        view.rename(b"other", b"renamed")
    shown = view.tree()
    view.commit()
    assert view.tree() == shown
    view.close()
    with Session.open(os.fsencode(base), SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, 1))
    again = CoreDriver(os.fsencode(base))
    assert again.tree() == shown
    again.commit()
    assert again.tree() == shown
    again.close()


def check_that_an_undo_shows_the_same(view: CoreDriver) -> None:
    """Undo the first commit, and see that the view is what it was."""
    shown, base = view.tree(), view.session.base.root
    view.close()
    with Session.open(base, SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, 1))
    again = CoreDriver(base)
    assert again.tree() == shown
    again.close()


def test_a_name_that_comes_back_where_a_name_of_another_file_is_staged_is_not_counted(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    for name in ("a", "b"):
        (base / name).write_text(f"{name}\n")
        (base / f"{name} too").hardlink_to(base / name)
    view = CoreDriver(os.fsencode(base))
    view.rename(b"b", b"a")
    view.commit()
    view.chmod(b"a", 0o600)
    check_that_an_undo_shows_the_same(view)


def test_a_name_that_comes_back_in_a_directory_that_moved_is_counted_once(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "d").mkdir(parents=True)
    (base / "a").write_text("a\n")
    (base / "d/one").hardlink_to(base / "a")
    (base / "d/two").hardlink_to(base / "a")
    view = CoreDriver(os.fsencode(base))
    view.unlink(b"d/one")
    view.commit()
    view.rename(b"d", b"moved")
    check_that_an_undo_shows_the_same(view)


def test_a_name_that_stays_is_counted_once_whether_it_is_changed_or_linked_to(tmp_path: Path) -> None:
    """The new name is looked at before the one that is staged so that the new one can be a link of
    it.
    """
    base = tmp_path / "base"
    (base / "later").mkdir(parents=True)
    (base / "later/one").write_text("one\n")
    (base / "later/two").hardlink_to(base / "later/one")
    view = CoreDriver(os.fsencode(base))
    view.link(b"later/one", b"a new name")
    view.append(b"later/one", b"more\n")
    view.commit()
    check_that_an_undo_shows_the_same(view)


def test_what_comes_back_at_one_name_is_no_version_of_the_file_that_has_the_other_names(tmp_path: Path) -> None:
    """A later commit has made the other name, which keeps what the first commit had written."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "a").write_text("old\n")
    view = CoreDriver(os.fsencode(base))
    view.overwrite(b"a", b"newer\n")
    view.commit()
    view.link(b"a", b"b")
    view.commit()
    check_that_an_undo_shows_the_same(view)
    assert ((base / "a").read_text(), (base / "b").read_text()) == ("old\n", "newer\n")
    again = CoreDriver(os.fsencode(base))
    again.commit()  # and finds no conflict
    again.close()
    assert (base / "a").samefile(base / "b")
    assert (base / "a").read_text() == "newer\n"
