"""Looking at a state goes on where a program has removed what it showed, and tells damage."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from yolofs.changes.changes import Change, compare
from yolofs.errors import MissingInodeError
from yolofs.journal.timeline import BASE
from yolofs.overlay import Overlay, Owner
from yolofs.session.looking_again import LaterState, look_again_if_gone
from yolofs.session.session import Session, SessionAccess

OWNER = Owner(os.geteuid(), os.getegid())


@pytest.fixture
def project(tmp_path: Path) -> bytes:
    project = tmp_path / "project"
    project.mkdir()
    Session.create(bytes(project))
    return bytes(project)


def open_for_work(project: bytes) -> tuple[Session, Overlay]:
    session = Session.open(project, SessionAccess.WRITE, root=project)
    state = session.present()
    return session, Overlay(session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from)


def make(overlay: Overlay, name: bytes) -> None:
    inode, _ = overlay.create(overlay.root, name, 0o100644, OWNER)
    overlay.release(inode, writer=True)
    overlay.forget(inode.number, 1)


def seen(session: Session) -> list[Change]:
    return session.compare(BASE, progress=None)


def test_a_file_that_is_removed_meanwhile_is_looked_for_no_more(project: bytes) -> None:
    writer, overlay = open_for_work(project)
    with writer:
        make(overlay, b"goes")
        make(overlay, b"stays")
        with Session.open(project, SessionAccess.READ) as reader:
            overlay.unlink(overlay.root, b"goes")
            with pytest.raises(MissingInodeError):
                seen(reader)
            assert [change.path for change in look_again_if_gone(reader, lambda: seen(reader))] == [b"stays"]
        overlay.close()


def test_a_file_that_nothing_has_removed_is_damage(project: bytes) -> None:
    writer, overlay = open_for_work(project)
    with writer:
        make(overlay, b"lost")
        overlay.close()
        (ino,) = writer.store.since(0)
        os.unlink(writer.store.path(ino))
    with Session.open(project, SessionAccess.READ) as reader, pytest.raises(MissingInodeError):
        look_again_if_gone(reader, lambda: seen(reader))


def followed(session: Session, meanwhile: Callable[[], None]) -> list[Change]:
    """Return what differs; ``meanwhile`` happens when the state is read and its files are not."""

    def look() -> list[Change]:
        trees = session.states(BASE, None)
        meanwhile()
        return compare(*trees, session.base, session.store, again=LaterState(session).look)

    return look_again_if_gone(session, look)


def test_a_file_that_is_replaced_during_each_look_is_shown_as_it_is_then(project: bytes) -> None:
    writer, overlay = open_for_work(project)
    with writer:
        make(overlay, b"busy")
        make(overlay, b"stays")

        def replace() -> None:
            make(overlay, b"new")
            overlay.rename(overlay.root, b"new", overlay.root, b"busy")

        with Session.open(project, SessionAccess.READ) as reader:
            changes = followed(reader, replace)
            assert [change.path for change in changes] == [b"busy", b"stays"]
            assert all(change.new is not None and os.path.exists(change.new.meta) for change in changes)
            overlay.unlink(overlay.root, b"busy")
            assert [change.path for change in followed(reader, lambda: None)] == [b"stays"]
        overlay.close()


def test_a_snapshot_between_two_looks_at_a_file_is_gone_on_from(project: bytes) -> None:
    writer, overlay = open_for_work(project)
    with writer:
        make(overlay, b"busy")

        def replace() -> None:
            overlay.unlink(overlay.root, b"busy")
            writer.snapshot()
            overlay.mark(writer.store.next_ino)
            make(overlay, b"busy")

        with Session.open(project, SessionAccess.READ) as reader:
            assert [change.path for change in followed(reader, replace)] == [b"busy"]
        overlay.close()


def test_a_missing_file_is_damage_also_where_others_come(project: bytes) -> None:
    writer, overlay = open_for_work(project)
    with writer:
        make(overlay, b"lost")
        (ino,) = writer.store.since(0)
        os.unlink(writer.store.path(ino))
        with (
            Session.open(project, SessionAccess.READ) as reader,
            pytest.raises(MissingInodeError, match="shown as lost"),
        ):
            followed(reader, lambda: None)
        overlay.close()
