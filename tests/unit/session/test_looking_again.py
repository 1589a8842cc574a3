"""Looking at a state goes on where a program has removed what it showed, and tells damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.changes.changes import Change
from yolofs.errors import MissingInodeError
from yolofs.journal.timeline import BASE
from yolofs.overlay import Overlay, Owner
from yolofs.session.looking_again import look_again_if_gone
from yolofs.session.session import Access, Session

OWNER = Owner(os.geteuid(), os.getegid())


@pytest.fixture
def project(tmp_path: Path) -> bytes:
    project = tmp_path / "project"
    project.mkdir()
    Session.create(bytes(project))
    return bytes(project)


def open_for_work(project: bytes) -> tuple[Session, Overlay]:
    session = Session.open(project, Access.WRITE, root=project)
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
        with Session.open(project, Access.READ) as reader:
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
    with Session.open(project, Access.READ) as reader, pytest.raises(MissingInodeError):
        look_again_if_gone(reader, lambda: seen(reader))
