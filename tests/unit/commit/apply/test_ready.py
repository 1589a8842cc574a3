"""Each thing that is plain to stop a step ends a commit before base is touched, with the path and
the reason.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, scan
from tests.support.core_driver import CoreDriver
from tests.support.file_flags import APPEND, IMMUTABLE, flagged
from tests.support.required import do_without
from tests.support.user_identity import NOBODY, in_child
from yolofs.commit import execute
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.ready import Looks
from yolofs.commit.apply.steps import Steps
from yolofs.errors import NotPreparedError
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo


@pytest.fixture
def scribe(tmp_path: Path) -> CommitScribe:
    """A base with a directory, and a file with two names."""
    return make_scribe(tmp_path)


def make_scribe(place: Path) -> CommitScribe:
    root = place / "base"
    (root / "d").mkdir(parents=True)
    (root / "d/x").write_text("x\n")
    (root / "linked").write_text("linked\n")
    os.link(root / "linked", root / "other")
    return CommitScribe(os.fsencode(root), os.fsencode(place / "store"))


def check_refused(scribe: CommitScribe, text: str, before: Callable[[], object] = lambda: None) -> None:
    """Check that a commit is not begun after ``before`` was called between planning and doing."""
    plan = scribe.plan()
    before()
    was = scan(scribe.base.root)
    parking = os.path.join(os.path.dirname(scribe.base.root), b"commits", b"1")
    with pytest.raises(NotPreparedError, match=text):
        execute(plan, scribe.store, parking=parking, durable=False)
    assert scan(scribe.base.root) == was
    assert not os.path.exists(parking)


def at(scribe: CommitScribe, name: str) -> Path:
    return Path(os.fsdecode(scribe.base.root), name)


@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
@pytest.mark.parametrize("name", ["d/x", "linked"])
def test_an_immutable_file_that_is_to_be_changed_in_place_ends_the_commit(
    scribe: CommitScribe, name: str, flag: int
) -> None:
    if name == "linked":
        scribe.write(b"linked", b"new")
    else:
        scribe.chmod(b"d/x", 0o600)
    with flagged(at(scribe, name), flag):
        check_refused(scribe, f"not begun: .*/base/{name}: it is immutable or append-only")


def test_something_of_the_hosts_where_a_new_file_is_to_be_ends_the_commit(scribe: CommitScribe) -> None:
    scribe.write(b"d/new", b"new")
    text = "not begun: .*/base/d/new: the host has put something there meanwhile"
    check_refused(scribe, text, lambda: at(scribe, "d/new").write_text("the host's"))


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Mount a directory over itself, so that nobody may write in it."""
    libc, place = ctypes.CDLL(None, use_errno=True), bytes(path)
    bind, remount = 4096, 1 | 32 | 4096
    if libc.mount(place, place, None, bind, None):
        do_without("mounting is not permitted here")
    try:
        assert libc.mount(None, place, None, remount, None) == 0
        yield
    finally:
        assert libc.umount2(place, 2) == 0


def test_a_read_only_directory_ends_a_commit(scribe: CommitScribe) -> None:
    scribe.write(b"d/new", b"new")
    with read_only(at(scribe, "d")):
        check_refused(scribe, "not begun: .*/base/d: Read-only file system")


def test_a_link_in_the_place_of_a_directory_ends_a_commit(scribe: CommitScribe) -> None:
    scribe.write(b"d/new", b"new")

    def put_link() -> None:
        at(scribe, "d").rename(at(scribe, "was d"))
        at(scribe, "d").symlink_to("was d")

    check_refused(scribe, "not begun: .*/base/d: Not a directory", put_link)


@pytest.mark.root_only
@pytest.mark.parametrize("mode", [0o755, 0o1777], ids=["closed", "sticky"])
def test_a_directory_that_an_ordinary_user_may_not_change_ends_the_commit(mode: int) -> None:
    place = Path(os.environ["XDG_RUNTIME_DIR"]).parent / f"yolofs-test.ready-{os.getpid()}"
    place.mkdir()

    def check() -> None:
        scribe = make_scribe(place)
        if mode & 0o1000:
            scribe.remove(b"theirs/x")
            text = "not begun: .*/base/theirs/x: it is another user's, in a directory where only its owner may move it"
        else:
            scribe.write(b"theirs/new", b"new")
            text = "not begun: .*/base/theirs: Permission denied"
        check_refused(scribe, text)

    try:
        (place / "base/theirs").mkdir(parents=True)
        (place / "base/theirs/x").write_text("x\n")
        (place / "base/theirs").chmod(mode)
        for one in (place, place / "base"):
            os.chown(one, NOBODY, NOBODY)
        assert in_child(check, is_root=False) == 0
    finally:
        shutil.rmtree(place)


# ---- what an earlier commit keeps


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of which a commit has removed a file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "gone").write_text("gone\n")
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"gone")
    view.close()
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        commit(session)
    return project


def kept_of(project: Path) -> Path:
    (kept,) = (project / ".yolofs/commits/1/replaced").iterdir()
    return kept


def undo_refused(project: Path, text: str) -> None:
    with (
        Session.open(os.fsencode(project), SessionAccess.WRITE) as session,
        pytest.raises(NotPreparedError, match=text),
    ):
        undo(session, choose_commit(session, None))
    assert not (project / "gone").exists()


def test_what_is_kept_and_may_never_change_does_not_come_back(project: Path) -> None:
    with flagged(kept_of(project), IMMUTABLE):
        undo_refused(project, "/project/gone: it is immutable or append-only")


@pytest.mark.parametrize("is_other", [False, True], ids=["nothing", "another"])
def test_what_is_not_kept_any_more_does_not_come_back(
    project: Path, monkeypatch: pytest.MonkeyPatch, is_other: bool
) -> None:
    """It goes when the undo is planned, and not begun."""
    kept, really = kept_of(project), Steps.look

    def look(self: Steps, seen: Mapping[FileNumbers, Looks]) -> object:
        kept.rename(project / "was kept")
        if is_other:
            kept.write_text("another\n")
        return really(self, seen)

    monkeypatch.setattr(Steps, "look", look)
    undo_refused(project, "/project/gone: commit 1 does not keep it any more")
