"""The disk of the state directory alone is full: a commit ends as if it had not begun, is taken
back, or is done.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commit_model import scan
from tests.support.core_driver import CoreDriver
from tests.support.required import do_without
from yolofs.errors import CommitError, NotPreparedError, RolledBackError
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess

KIB = 1 << 10
_REMOUNT = 32


@pytest.fixture
def resize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """A state directory on a disk of its own; give what sets how many KiB are free on it."""
    libc = ctypes.CDLL(None, use_errno=True)
    state = tmp_path / "state"
    state.mkdir(0o700)
    if libc.mount(b"none", bytes(state), b"tmpfs", 0, b"mode=0700,size=64m"):
        do_without("mounting is not permitted here")
    monkeypatch.setenv("YOLOFS_STATE", str(state))

    def free(kib: int) -> None:
        st = os.statvfs(state)
        size = (st.f_blocks - st.f_bfree) * st.f_frsize // KIB + kib
        assert libc.mount(b"none", bytes(state), b"tmpfs", _REMOUNT, b"mode=0700,size=%dk" % size) == 0

    try:
        yield free
    finally:
        assert libc.umount2(bytes(state), 2) == 0


def what_comes_of_it(session: Session) -> str:
    try:
        done = commit(session)
    except (NotPreparedError, RolledBackError, CommitError) as error:
        return type(error).__name__ if "No space left on device" in error.message and error.hint else error.message
    return "done" if not done.unfinished else "done, and not put away"


def test_base_is_as_before_or_as_after_however_little_room_there_is(
    tmp_path: Path, resize: Callable[[int], None]
) -> None:
    seen: Counter[str] = Counter()
    for kib in (0, 4, 8, 16, 24, 32, 48, 64, 80, *range(96, 164, 4), 256, 512):
        resize(64 * KIB)
        project = tmp_path / f"with {kib}"
        (project / "gone").mkdir(parents=True)
        for name in ("a", "b", "gone/x", "gone/y"):
            (project / name).write_bytes(name.encode() * 12 * KIB)
        os.link(project / "b", project / "linked")
        root = os.fsencode(project)
        view = CoreDriver(root)
        view.overwrite(b"a", b"new " * 4 * KIB)
        view.overwrite(b"b", b"rewritten " * KIB)
        view.create(b"made", b"made " * 4 * KIB, 0o600)
        view.unlink(b"gone/x")
        view.rename(b"gone/y", b"y")
        view.rmdir(b"gone")
        expected = {path for path, _ in view.tree().items()}
        view.close()
        before = scan(root)
        with Session.open(root, SessionAccess.WRITE) as session:
            resize(kib)
            said = what_comes_of_it(session)
        seen[said] += 1
        if said in ("NotPreparedError", "RolledBackError"):
            assert scan(root) == before, kib
        resize(64 * KIB)
        with Session.open(root, SessionAccess.WRITE) as session:
            found = session.interrupted()
            if found is not None and kib % 8 and found.way_back is not None:
                roll_back_interrupted(session)
                assert scan(root) == before, kib
            elif found is not None:
                finish_interrupted(session)
            commit(session)
        assert scan(root).keys() - {b".yolofs", b""} == expected, kib
        assert (project / "linked").read_bytes() == b"rewritten " * KIB
    assert seen.keys() <= {"NotPreparedError", "RolledBackError", "CommitError", "done", "done, and not put away"}
    assert seen["done"], seen
    assert seen["NotPreparedError"], seen
    assert seen["RolledBackError"], seen
