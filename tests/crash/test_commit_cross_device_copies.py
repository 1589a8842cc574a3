"""What has to be copied from one device to another, and deleted then, is looked at before base is
touched.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.test_commit_signals import signalled
from tests.support import core_driver
from tests.support.core_driver import CoreDriver
from tests.support.file_flags import APPEND, IMMUTABLE, flagged
from tests.support.looks import exactly
from tests.support.memory_disk import memory_directory
from tests.support.program import Program
from tests.support.required import do_without
from tests.support.user_identity import NOBODY, in_child
from yolofs.commit.apply import cross_device_copies
from yolofs.errors import CommitError, NotPreparedError
from yolofs.overlay import Owner
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
NOT_PREPARED = 17
MIB = 1 << 20


class Disks(NamedTuple):
    """A project in which the directory ``far`` lies on another disk than all else."""

    project: Path
    far: Path
    resize: Callable[[int], None]
    """Sets how many MiB that has."""


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disks]:
    libc = ctypes.CDLL(None, use_errno=True)
    with memory_directory() as place:
        monkeypatch.setenv("YOLOFS_STATE", str(place / "state"))
        monkeypatch.setenv("HOME", str(place))
        far = place / "project/far"
        far.mkdir(parents=True)
        if libc.mount(b"none", bytes(far), b"tmpfs", 0, b"size=16m"):
            do_without("mounting is not permitted here")

        def resize(size: int) -> None:
            assert libc.mount(b"none", bytes(far), b"tmpfs", 32, b"size=%dm" % size) == 0

        try:
            (far / "gone/sub").mkdir(parents=True)
            (far / "gone/sub/x").write_text("x")
            yield Disks(place / "project", far, resize)
        finally:
            assert libc.umount2(bytes(far), 2) == 0


def remove(view: CoreDriver) -> None:
    view.unlink(b"far/gone/sub/x")
    view.rmdir(b"far/gone/sub")
    view.rmdir(b"far/gone")
    view.create(b"made", b"made", 0o644)


def move(view: CoreDriver) -> None:
    view.rename(b"far/gone", b"moved")


@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
@pytest.mark.parametrize("work", [remove, move])
@pytest.mark.some(2)
def test_an_immutable_file_in_what_is_to_be_copied_away_stops_the_commit_before_it_begins(
    disks: Disks, work: Callable[[CoreDriver], None], flag: int
) -> None:
    program = Program(disks.project)
    with flagged(disks.far / "gone/sub/x", flag):
        view = CoreDriver(bytes(disks.project))
        work(view)
        view.close()
        before = exactly(disks.project)
        said = program("commit", "--yes", code=NOT_PREPARED).err
        assert (
            f"the commit was not begun: {disks.far}/gone/sub/x: it is immutable or append-only (chattr), and "
            f"{disks.far}/gone has to be copied to another disk or mount and deleted; base is as it was"
        ) in said
        assert exactly(disks.project) == before
        assert "interrupted" not in program("status").err


def test_a_file_that_becomes_immutable_too_late_is_named_and_goes_once_that_is_mended(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = CoreDriver(bytes(disks.project))
    remove(view)
    view.close()
    program = Program(disks.project)
    with (
        flagged(disks.far / "gone/sub/x", IMMUTABLE),
        Session.open(bytes(disks.project), SessionAccess.WRITE) as session,
    ):
        monkeypatch.setattr(cross_device_copies, "check", lambda *_: None)
        with pytest.raises(CommitError, match="could not be closed: Operation not permitted") as raised:
            commit(session, force=True)
    assert re.search(rf"\({disks.far}/\.yolofs-\w+-\d+/sub/x\)", raised.value.message)
    assert raised.value.hint == "fix that, then: yolofs commit --continue"
    program("commit", "--continue")
    assert [path.name for path in disks.far.iterdir()] == []
    assert (disks.project / "made").read_text() == "made"


def test_a_commit_does_not_begin_without_room_for_what_moves_to_another_disk(disks: Disks) -> None:
    big = disks.project / "big"
    big.mkdir()
    (big / "f").write_bytes(os.urandom(3 * MIB))
    view = CoreDriver(bytes(disks.project))
    view.rename(b"big", b"far/big")
    view.close()
    disks.resize(2)
    before = exactly(disks.project)
    said = Program(disks.project)("commit", "--yes", code=NOT_PREPARED)
    assert f"the commit was not begun: {big}: No space left on device: 3.0 MiB are needed on the disk of" in said.err
    assert "hint: make room, or commit other paths: yolofs commit PATH..." in said.err
    assert exactly(disks.project) == before
    disks.resize(16)
    Program(disks.project)("commit", "--yes")
    assert (disks.far / "big/f").stat().st_size == 3 * MIB


def test_a_commit_does_not_begin_without_room_for_what_a_linked_file_grows_by(disks: Disks) -> None:
    (disks.far / "one").write_text("short")
    os.link(disks.far / "one", disks.far / "two")
    view = CoreDriver(bytes(disks.project))
    view.overwrite(b"far/one", os.urandom(3 * MIB))
    view.close()
    disks.resize(2)
    before = exactly(disks.project)
    said = Program(disks.project)("commit", "--yes", code=NOT_PREPARED).err
    assert f"the commit was not begun: {disks.far}/one: No space left on device: 3.0 MiB are needed" in said
    assert exactly(disks.project) == before


def commit_as_nobody(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, others: dict[str, int], refusal: str | None
) -> None:
    """Have an ordinary user commit the move of ``far/gone`` to the other disk.

    ``others`` have other modes, and are root's but for those called ``mine``.  ``refusal`` is why
    the commit is not begun, None if it goes through.
    """
    place = disks.project.parent
    for path in (place, place / "state", disks.project, disks.far, *disks.far.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for name, mode in others.items():
        path = disks.far / name
        if not path.name.startswith("mine"):
            os.chown(path, 0, 0)
        path.chmod(mode)
    monkeypatch.setattr(core_driver, "OWNER", Owner(NOBODY, NOBODY))
    before = exactly(disks.project)

    def check() -> None:
        view = CoreDriver(bytes(disks.project))
        view.rename(b"far/gone", b"moved")
        view.close()
        with Session.open(bytes(disks.project), SessionAccess.WRITE) as session:
            if refusal is None:
                commit(session)
                return
            with pytest.raises(NotPreparedError, match=refusal):
                commit(session)

    assert in_child(check, is_root=False) == 0
    if refusal is None:
        assert not (disks.far / "gone").exists()
        assert (disks.project / "moved/sub/x").read_text() == "x"
        assert [path.name for path in disks.far.iterdir()] == []
        return
    after = exactly(disks.project)
    assert {path: after[path] for path in before if path != str(disks.project)} == {  # in which there is a link now
        path: what for path, what in before.items() if path != str(disks.project)
    }


@pytest.mark.parametrize(
    ("others", "refusal"),
    [
        ({"gone/sub/x": 0o600}, "gone/sub/x: Permission denied, and .*/far/gone has to be copied"),
        ({"gone/sub": 0o755}, "gone/sub: Permission denied, and .*/far/gone has to be copied"),
        ({"gone": 0o755}, "gone: it is another user's directory, and only a user who may write to it may move it"),
        (
            {"gone/sub": 0o1777, "gone/sub/x": 0o644},
            "gone/sub/x: it is another user's, in a directory where only its owner may remove it, and .* to be copied",
        ),
    ],
    ids=[
        "not read",
        "not remove from a directory",
        "not remove from the one that moves",
        "not remove from a sticky one",
    ],
)
def test_files_that_an_ordinary_user_may_not_remove_stop_the_commit_before_it_begins(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, others: dict[str, int], refusal: str
) -> None:
    commit_as_nobody(disks, monkeypatch, others, refusal)


def test_an_empty_directory_of_root_and_a_closed_one_of_the_user_are_moved(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an empty directory of root's, and one of the user's own that forbids writing."""
    (disks.far / "gone/empty").mkdir()
    (disks.far / "gone/mine").mkdir()
    (disks.far / "gone/mine/x").write_text("x")
    commit_as_nobody(disks, monkeypatch, {"gone/empty": 0o755, "gone/mine": 0o555}, None)


def rmdir_closed(view: CoreDriver) -> None:
    view.rmdir(b"far/closed")


def move_closed(view: CoreDriver) -> None:
    view.rename(b"far/closed", b"moved")


def move_closed_there(view: CoreDriver) -> None:
    view.rename(b"closed", b"far/moved")


@pytest.mark.parametrize("work", [rmdir_closed, move_closed, move_closed_there])
def test_a_directory_that_forbids_writing_is_copied_to_another_disk_and_back_by_its_owner(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, work: Callable[[CoreDriver], None]
) -> None:
    """A rename to another directory would need the permission to write in it."""
    place = disks.project.parent
    for closed in (disks.far / "closed", disks.project / "closed"):
        closed.mkdir()
        closed.chmod(0o555)
    for path in (place, place / "state", disks.project, disks.far, *disks.project.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    monkeypatch.setattr(core_driver, "OWNER", Owner(NOBODY, NOBODY))

    def check() -> None:
        view = CoreDriver(bytes(disks.project))
        work(view)
        view.close()
        before = modes(disks)
        for _ in range(2):
            with Session.open(bytes(disks.project), SessionAccess.WRITE) as session:
                commit(session)
            assert modes(disks) != before
            with Session.open(bytes(disks.project), SessionAccess.WRITE) as session:
                undo(session, choose_commit(session, None))
            assert modes(disks) == before

    assert in_child(check, is_root=False) == 0


def modes(disks: Disks) -> dict[str, int]:
    """Return the modes of all directories of the project but its own."""
    return {str(path): path.stat().st_mode for path in disks.project.rglob("*") if path.is_dir()}


@pytest.mark.parametrize("way", ["--continue", "--roll-back"])
def test_what_a_commit_that_did_not_begin_has_made_on_another_disk_goes_by_either_way_on(
    disks: Disks, way: str
) -> None:
    view = CoreDriver(bytes(disks.project))
    view.create(b"far/new", b"new", 0o644)
    view.close()
    program = Program(disks.project)
    before = exactly(disks.project)
    signalled(disks.project, "yolofs.commit.apply.other_devices:FarFolders._make_in", signal.SIGKILL, "commit", "--yes")
    assert exactly(disks.project) != before
    said = program("commit", way).err
    assert "commit 1 was stopped before it had begun; base is as it was, and all stays staged" in said
    assert exactly(disks.project) == before
    assert "nothing to do" in program("commit", way).err
    assert "A  far/new" in program("status").out
