"""What a program removes stays in the store while a command reads, and goes afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolofs.overlay import Overlay, Owner, removal
from yolofs.session.commit import abort
from yolofs.session.session import Session, SessionAccess
from yolofs.store.readers import reading_store

OWNER = Owner(os.geteuid(), os.getegid())


class View:
    """A view of an empty project, as a mount has it."""

    def __init__(self, project: bytes) -> None:
        self.session = Session.open(project, SessionAccess.WRITE, root=project)
        state = self.session.present()
        self.overlay = Overlay(
            self.session.base, self.session.store, self.session.journal, state.tree, fresh_from=state.fresh_from
        )

    def make(self, name: bytes, size: int = 0) -> None:
        inode, _ = self.overlay.create(self.overlay.root, name, 0o100644, OWNER)
        if size:
            self.overlay.write(inode, 0, b"x" * size)
        self.overlay.release(inode, writer=True)
        self.overlay.forget(inode.number, 1)

    def remove(self, name: bytes) -> None:
        self.overlay.unlink(self.overlay.root, name)

    @property
    def store(self) -> set[int]:
        return set(self.session.store.since(0))


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    project = tmp_path / "project"
    project.mkdir()
    Session.create(bytes(project))
    made = View(bytes(project))
    yield made
    made.overlay.close()
    made.session.close()


def test_a_file_removed_while_somebody_reads_is_there_until_nobody_does(view: View) -> None:
    view.make(b"a")
    view.make(b"b")
    (a, b) = view.store
    with reading_store(view.session.directory), reading_store(view.session.directory):
        view.remove(b"a")
        assert view.store == {a, b}
    view.remove(b"b")
    assert view.store == set()


def test_a_removed_file_goes_at_the_end_of_the_mount_at_the_latest(view: View) -> None:
    view.make(b"a")
    with reading_store(view.session.directory):
        view.remove(b"a")
    view.overlay.close()
    assert view.store == set()


def test_a_snapshot_meanwhile_does_not_keep_a_removed_file(view: View) -> None:
    view.make(b"a")
    with reading_store(view.session.directory):
        view.remove(b"a")
        view.session.snapshot(b"")
        view.overlay.mark(view.session.store.next_ino)
    view.make(b"b")
    view.remove(b"b")
    assert view.store == set()


def test_a_removed_file_goes_after_an_abort_and_no_other_does(view: View) -> None:
    view.make(b"a")
    with reading_store(view.session.directory):
        view.remove(b"a")
        abort(view.session)
        state = view.session.present()
        view.overlay.reload(view.session.journal, state.tree, fresh_from=state.fresh_from)
    (a,) = view.store
    view.make(b"b")
    there = view.store
    view.make(b"c")
    view.remove(b"c")
    assert view.store == there - {a}


def test_another_file_that_has_got_the_number_meanwhile_stays(view: View) -> None:
    view.make(b"a")
    (a,) = view.store
    path = view.session.store.path(a)
    with reading_store(view.session.directory):
        view.remove(b"a")
        os.unlink(path)
        Path(os.fsdecode(path)).write_text("another\n")
    view.make(b"b")
    view.remove(b"b")
    assert view.store == {a}


def test_removed_files_that_wait_for_readers_are_bounded_in_bytes(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_MOST_LATE_BYTES", 100 << 10)
    view.make(b"a", 64 << 10)
    view.make(b"b", 64 << 10)
    a = min(view.store)
    with reading_store(view.session.directory):
        view.remove(b"a")
        view.remove(b"b")
        assert view.store == {a}


def test_a_file_that_no_journal_names_goes_at_once(view: View) -> None:
    """Nobody looks for it."""
    inode, _ = view.overlay.tmpfile(view.overlay.root, 0o100644, OWNER)
    assert len(view.store) == 1
    with reading_store(view.session.directory):
        view.overlay.release(inode, writer=True)
        view.overlay.forget(inode.number, 1)
        assert view.store == set()


def test_reading_begins_where_there_is_no_store(tmp_path: Path) -> None:
    with reading_store(bytes(tmp_path / "nowhere")):
        pass
