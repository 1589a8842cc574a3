"""A session follows its project: the paths in the journal, at once or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yolofs.errors import UsageError
from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.journal.records import NOTHING, Delete, Fingerprint, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import ROOT, Generation, RelPath, StoreIno
from yolofs.registry.search import FoundProject, find
from yolofs.session.opening import moved_project as session_move
from yolofs.session.opening.moved_project import move_session
from yolofs.session.opening.root import is_in_line
from yolofs.session.session import Session, SessionAccess


class KilledError(BaseException):
    """What stands for the end of the process."""


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Base, in which the project lies."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "top"
    (path / "old/dir").mkdir(parents=True)
    (path / "old/.yolofs.toml").write_text("")
    return path


def rel(*parts: str) -> RelPath:
    return RelPath("/".join(parts).encode())


def records(project: str) -> list[Record]:
    """Return one record of each kind, of a project that lies at a path of base."""
    fingerprint = Fingerprint(1, 2, 3)
    return [
        Keep(1, ROOT, source=ROOT, unlinked=(9, 1)),
        Keep(1, ROOT, source=ROOT, had=rel(project, "was"), was=fingerprint),
        Keep(1, ROOT, source=ROOT, had=rel(project, "made"), was=NOTHING),
        Keep(1, rel(project, "kept"), ino=StoreIno(1)),
        Keep(1, rel(project, "moved"), source=rel(project, "dir")),
        Keep(1, rel(project, "meta"), ino=StoreIno(2), origin=rel(project, "dir")),
        Stage(2, rel(project, "new"), StoreIno(3)),
        Stage(2, rel(project, "up"), StoreIno(4), fingerprint, origin=rel(project, "up"), extra=(("run", b"7"),)),
        Stage(2, rel("outside", "x"), StoreIno(5)),
        Snapshot(3, b"one"),
        Rename(4, rel(project, "dir"), rel("outside", "dir"), src_was=fingerprint, dst_was=NOTHING),
        Rename(4, rel("outside", "y"), rel(project, "y"), exchange=True),
        Delete(5, rel(project, "gone"), base=fingerprint, unlinks=9),
        Travel(6, Generation(1), b"one"),
    ]


def start(top: Path, *of: Record, root: bytes | None = None) -> FoundProject:
    """Start a session in ``old``, give it records, and move the project to ``new``."""
    project = os.fsencode(top / "old")
    directory = Session.create(project).found.session
    with Session.open(project, SessionAccess.WRITE, root=root if root is not None else os.fsencode(top)):
        pass
    with Journal.open(os.path.join(directory, b"journal")) as journal:
        journal.append(*of)
    (top / "old").rename(top / "new")
    found = find(os.fsencode(top / "new"))
    assert isinstance(found, FoundProject)
    assert found.moved_from == project
    return found


def journal_of(found: FoundProject) -> list[Record]:
    with Journal.open(os.path.join(found.session, b"journal"), read_only=True) as journal:
        return list(journal.read())


def test_every_path_of_the_project_follows_and_no_other(top: Path) -> None:
    after = move_session(start(top, *records("old")))
    assert journal_of(after) == records("new")
    assert find(os.fsencode(top / "new")) == after
    assert after.moved_from is None
    assert os.readlink(top / "new/.yolofs") == os.fsdecode(after.session)
    with Session.open(os.fsencode(top / "new"), SessionAccess.READ) as session:
        assert session.base.root == os.fsencode(top)


def test_where_the_project_is_base_only_base_moves(top: Path) -> None:
    of: list[Record] = [Stage(1, rel("new"), StoreIno(1)), Rename(1, rel("dir"), rel("other"))]
    after = move_session(start(top, *of, root=os.fsencode(top / "old")))
    assert journal_of(after) == of
    with Session.open(os.fsencode(top / "new"), SessionAccess.READ) as session:
        assert session.base.root == os.fsencode(top / "new")


def test_where_base_lies_elsewhere_nothing_in_it_moves(top: Path, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    of = [Stage(1, rel("old", "x"), StoreIno(1))]
    after = move_session(start(top, *of, root=os.fsencode(tmp_path / "base")))
    assert journal_of(after) == of


def test_a_file_that_was_copied_along_is_the_one_that_was_copied_up(top: Path) -> None:
    (top / "old/up").write_text("12")
    st = (top / "old/up").stat()
    known, other = Fingerprint(st.st_mtime_ns, 2, 999_999_999), Fingerprint(7, 2, 999_999_999)
    up = Stage(1, rel("old", "up"), StoreIno(1), known)
    after = move_session(start(top, up, Stage(1, rel("old", "up"), StoreIno(2), other)))
    first, second = journal_of(after)
    assert isinstance(first, Stage)
    assert isinstance(second, Stage)
    assert first.base == Fingerprint(st.st_mtime_ns, 2, st.st_ino)
    assert second.base == other  # it had changed since: still a conflict


@pytest.mark.parametrize(
    "record",
    [
        Rename(1, rel("above", "old"), rel("above", "other")),
        Rename(1, rel("above"), rel("beside")),
        Rename(1, rel("beside"), rel("above")),
        Delete(1, rel("above")),
        Stage(1, rel("above", "new", "x"), StoreIno(1)),
        Rename(1, rel("x"), rel("above", "new", "x")),
    ],
)
def test_a_record_that_cannot_follow_the_project_is_refused_and_nothing_changes(top: Path, record: Record) -> None:
    (top / "above").mkdir()
    (top / "old").rename(top / "above/old")
    project = os.fsencode(top / "above/old")
    directory = Session.create(project).found.session
    with Session.open(project, SessionAccess.WRITE, root=os.fsencode(top)):
        pass
    with Journal.open(os.path.join(directory, b"journal")) as journal:
        journal.append(record)
    if isinstance(record, Rename) and record.src == rel("above", "old"):
        (top / "above/old").rename(top / "above/new")
        assert journal_of(move_session(_found(top / "above/new"))) == [
            Rename(1, rel("above", "new"), rel("above", "other"))
        ]
        return
    (top / "above/old").rename(top / "above/new")
    found = _found(top / "above/new")
    with pytest.raises(UsageError, match="cannot follow the project") as caught:
        move_session(found)
    assert f"move the project back to {top / 'above/old'}" in caught.value.hint
    assert journal_of(found) == [record]
    (top / "above/new").rename(top / "above/old")
    with Session.open(project, SessionAccess.WRITE) as session:
        assert session.journal.record_count == 1


def test_a_project_that_left_its_base_is_refused(top: Path, tmp_path: Path) -> None:
    found = start(top, *records("old"))
    (top / "new").rename(tmp_path / "left")
    with pytest.raises(UsageError, match="lies outside"):
        move_session(_found(tmp_path / "left"))
    assert journal_of(found) == records("old")


def test_a_project_that_came_back_before_all_had_followed_is_brought_in_line(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = start(top, *records("old"))
    with monkeypatch.context() as patch:
        patch.setattr(session_move, "register", _die)
        with pytest.raises(KilledError):
            move_session(found)
    (top / "new").rename(top / "old")
    back = _found(top / "old")
    assert back.moved_from is None
    assert not is_in_line(back)
    with pytest.raises(UsageError, match="has been moved"):
        Session.open(os.fsencode(top / "old"), SessionAccess.READ)
    assert journal_of(move_session(back)) == records("old")
    assert is_in_line(_found(top / "old"))


def _die(*_: object, **__: object) -> None:
    raise KilledError


def test_a_torn_tail_that_is_cut_by_a_move_is_told_afterwards(top: Path) -> None:
    found = start(top, *records("old"))
    path = os.path.join(found.session, b"journal")
    with open(path, "ab") as journal:
        journal.write(b"S 1 half")
    after = move_session(found)
    assert journal_of(after) == records("new")
    with Journal.open(path, read_only=True) as read:
        (cut,) = cuts.read(path, read.form.key)
    assert cut.size_bytes == len(b"S 1 half")


def test_an_interrupted_commit_is_finished_where_it_began(top: Path) -> None:
    found = start(top, *records("old"))
    commit = Path(os.fsdecode(found.session)) / "commits/1"
    commit.mkdir(parents=True)
    (commit / "plan.json").write_text("{}")
    with pytest.raises(UsageError, match="a commit was interrupted") as caught:
        move_session(found)
    assert f"move it back to {top / 'old'}" in caught.value.hint
    assert journal_of(found) == records("old")


def _found(project: Path) -> FoundProject:
    found = find(os.fsencode(project))
    assert isinstance(found, FoundProject)
    return found


STEPS = ("_rewrite", "write_session_file", "finish_move", "register", "remove_link", "put_link")


@pytest.fixture(params=[(step, when) for step in STEPS for when in ("before", "after")], ids="-".join)
def killed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next move die right before or after one of its steps."""
    step, when = request.param
    real: Callable[..., Any] = getattr(session_move, step)
    alive = [True]

    def dying(*words: Any, **named: Any) -> Any:
        if not alive:
            return real(*words, **named)
        if when == "after":
            real(*words, **named)
        alive.clear()
        raise KilledError

    monkeypatch.setattr(session_move, step, dying)


def test_a_move_that_is_killed_is_done_by_the_next_command(top: Path, killed: None) -> None:
    found = start(top, *records("old"))
    with pytest.raises(KilledError):
        move_session(found)
    again = _found(top / "new")
    if again.moved_from is not None:
        again = move_session(again)
    assert journal_of(again) == records("new")
    with Session.open(os.fsencode(top / "new"), SessionAccess.WRITE) as session:
        assert session.base.root == os.fsencode(top)
        assert session.journal.record_count == len(records("new"))
    assert _found(top / "new").moved_from is None
