"""The notes of an undo outlive the commit that it undoes, and the notes of that."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.support.core_driver import CoreDriver
from yolofs.commit.apply.kept_copies import note_kept_copies
from yolofs.commit.undo.commits_around import LaterCommit
from yolofs.session import undo as undoing
from yolofs.session.history import ended_commits as ended
from yolofs.session.history import other_commits
from yolofs.session.history.ended_commits import ended_commits
from yolofs.session.history.retention import put_aside, remove_gone
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.session.undo_notes import Undoes, read_undoes
from yolofs.store import restored


def test_an_undo_of_an_undo_is_one_also_when_the_commit_is_not_kept_any_more(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    view.create(b"a", b"new", 0o644)
    view.commit()
    view.close()
    for number in (1, 2):
        with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, number))
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        put_aside(ended_commits(session)[:2])
        remove_gone(session.directory, 0)
        last = choose_commit(session, None)
        assert last.number == 3
        undo(session, last)
    assert not (project / "a").exists()


def test_commits_put_aside_may_be_removed_by_another_process_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = os.fsencode(tmp_path)
    for name in ("one", "two"):
        (tmp_path / "commits/gone-1" / name).mkdir(parents=True)
    really, calls = os.rmdir, 0

    def rmdir(path: bytes, *, dir_fd: int | None = None) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            really(path, dir_fd=dir_fd)
        really(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_gone(directory, 0)
    assert not list((tmp_path / "commits").iterdir())


def test_adding_a_note_syncs_the_directory_it_lies_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    restored.add(os.fsencode(tmp_path), {(1, 2)})
    assert synced[-1] == str(tmp_path)
    synced.clear()
    note_kept_copies(os.fsencode(tmp_path), {b"1": (2, 3)})
    assert synced[-1] == str(tmp_path)


def test_a_commit_of_which_nothing_more_can_go_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    for names in ((b"a",), (b"b", b"c"), (b"c",)):
        for name in names:
            if (project / os.fsdecode(name)).exists():
                view.overwrite(name, b"again")
            else:
                view.create(name, b"new", 0o644)
        view.commit()
    view.close()
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        assert not undo(session, choose_commit(session, 2)).is_whole
        everything = ended_commits(session)
        third = msgspec.structs.replace(everything[2], is_given_up=True)
        with monkeypatch.context() as patch:
            for module in (undoing, other_commits):
                patch.setattr(module, "ended_commits", lambda one, **_: [*everything[:2], third, *everything[3:]])
            patch.setattr(undoing, "later_commits", lambda *_: _later_of(session))
            assert choose_commit(session, None).number == 1


def _later_of(session: Session) -> list[LaterCommit]:
    return [LaterCommit.read(3, session.commit_directory(3))]


def test_to_find_the_last_commit_only_the_newest_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any number of them; those that are undone are passed over."""
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    for number in range(1, 25):
        view.create(b"%d" % number, b"new", 0o644)
        view.commit()
    view.close()
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        for number in range(24, 14, -1):
            undo(session, choose_commit(session, number))
        assert choose_commit(session, None).number == 14
        read: list[bytes] = []

        def reading(directory: bytes) -> Undoes | None:
            read.append(directory)
            return read_undoes(directory)

        monkeypatch.setattr(ended, "read_undoes", reading)
        undo(session, choose_commit(session, 34))
        read.clear()
        assert choose_commit(session, None).number == 35
        assert len(read) == 8


def test_notes_of_restored_files_tell_two_disks_with_one_number_apart(tmp_path: Path) -> None:
    restored.add(os.fsencode(tmp_path), {(1, 2), (1, 5)})
    restored.add(os.fsencode(tmp_path), {(1, 7)})
    assert restored.read(os.fsencode(tmp_path)) == {(1, 2), (1, 5), (1, 7)}


def test_a_note_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "restored").write_text('{"1":2,"3":4}')
    assert restored.read(os.fsencode(tmp_path)) == {(1, 2), (3, 4)}


def test_once_nothing_is_staged_what_was_put_back_is_kept_for_undos_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = os.fsencode(tmp_path)
    restored.add(directory, {(1, 2), (3, 4)})
    restored.add_unset(directory, {(5, 6)})
    restored.keep_for_undos(directory)
    assert restored.read(directory) == restored.read_unset(directory) == set()
    restored.add(directory, {(1, 7)})
    assert restored.read_all(directory) == {(1, 2), (1, 7), (3, 4)}
    monkeypatch.setattr(restored, "_MOST_EARLIER", 2)
    restored.keep_for_undos(directory)
    restored.keep_for_undos(directory)
    assert restored.read_all(directory) == {(1, 7), (3, 4)}
