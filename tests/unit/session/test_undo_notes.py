"""What an undo notes of the commit that it undoes outlives what that one had undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.property.core_driver import CoreDriver
from yolofs.commit.apply.part_links import note_parted
from yolofs.session.retention import put_aside, remove_gone
from yolofs.session.session import Access, Session
from yolofs.session.undo import choose, ended_commits, undo
from yolofs.store import restored


def test_an_undo_of_an_undo_is_one_also_when_the_commit_is_not_kept_any_more(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    view.create(b"a", b"new", 0o644)
    view.commit()
    view.close()
    for number in (1, 2):
        with Session.open(os.fsencode(project), Access.WRITE) as session:
            undo(session, choose(session, number))
    with Session.open(os.fsencode(project), Access.WRITE) as session:
        put_aside(ended_commits(session)[:2])
        remove_gone(session.directory)
        last = choose(session, None)
        assert last.number == 3
        undo(session, last)
    assert not (project / "a").exists()


def test_what_was_put_aside_may_go_under_our_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = os.fsencode(tmp_path)
    for name in ("one", "two"):
        (tmp_path / "commits/gone-1" / name).mkdir(parents=True)
    really, calls = os.rmdir, 0

    def rmdir(path: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            really(path)
        really(path)

    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_gone(directory)
    assert not list((tmp_path / "commits").iterdir())


def test_notes_are_durable_in_their_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    restored.add(os.fsencode(tmp_path), {1: 2})
    assert synced[-1] == str(tmp_path)
    synced.clear()
    note_parted(os.fsencode(tmp_path), {b"1": (2, 3)})
    assert synced[-1] == str(tmp_path)
