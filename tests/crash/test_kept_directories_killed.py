"""A kept directory comes back name by name, as one name is to be a hard link of a file that stayed;
the undo is killed at each call, and the rest that is kept has its times and modes again.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import is_in_switch
from tests.support.memory_disk import memory_directory
from tests.support.user_identity import NOBODY, USERS, in_child
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = pytest.mark.timeout(300)
POINTS = 5
"""So many of the calls, but for a run by night, which takes all."""
OLD = 1_400_000_000_000_000_007
MODES = {"d/sub": 0o500, "d": 0o555}
"""Of directories in which nobody may write; the deepest come first."""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for projects and sessions that an ordinary user may work in."""
    with memory_directory() as directory:
        directory.chmod(0o711)
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        monkeypatch.setenv("HOME", str(directory))
        yield directory


def project_of(place: Path, name: str, modes: dict[str, int], *, is_root: bool) -> bytes:
    project = place / name
    (project / "d/sub").mkdir(parents=True)
    for path in ("d/one", "d/two", "d/sub/three", "d/sub/four"):
        (project / path).write_text(path)
    os.link(project / "d/one", project / "one")
    os.link(project / "d/sub/three", project / "three")
    root = os.fsencode(project)
    tree = sorted(scan(root), reverse=True)
    if not is_root:
        os.chown(place / "state", NOBODY, NOBODY)
    for entry in tree if not is_root else []:
        os.chown(os.path.join(root, entry), NOBODY, NOBODY)
    assert in_child(lambda: Session.create(os.fsencode(project)), is_root=is_root) == 0
    for entry in tree:
        os.utime(os.path.join(root, entry), ns=(OLD, OLD))
    for directory, mode in modes.items():
        (project / directory).chmod(mode)
    return os.fsencode(project)


def remove_and_commit(project: bytes) -> None:
    view = CoreDriver(project)
    view.chmod(b"d", 0o755)
    view.chmod(b"d/sub", 0o755)
    for path in (b"d/one", b"d/two", b"d/sub/three", b"d/sub/four"):
        view.unlink(path)
    view.rmdir(b"d/sub")
    view.rmdir(b"d")
    view.close()
    with Session.open(project, SessionAccess.WRITE) as session:
        commit(session)


def undo_last(project: bytes) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        result = undo(session, choose_commit(session, 1))
    assert not result.stays


def undo_and_be_killed(project: bytes, call: int) -> None:
    """Be killed at one of the calls while base is being changed; with a call below 0 undo it all,
    and note in the project how many there are.
    """
    count = 0

    def look() -> None:
        nonlocal count
        if not is_in_switch(project):
            return
        if count == call:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    faults = Faults(0, range(0))
    faults.before_each = look
    with faults.at_work():
        undo_last(project)
    Path(os.fsdecode(project), "calls").write_text(str(count))


def end(project: bytes, way: Callable[[Session], object]) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        found = session.interrupted()
        if found is not None:
            (way if found.way_back is not None else finish_interrupted)(session)


def base_of(project: bytes) -> dict[bytes, Node]:
    return {path: node for path, node in scan(project).items() if path != b".yolofs"}


@pytest.mark.parametrize("modes", [{}, MODES], ids=["open", "closed"])
@pytest.mark.parametrize("is_root", USERS, ids=lambda one: f"root {one}")
def test_a_directory_that_may_not_be_written_in_comes_back_name_by_name(
    place: Path, is_root: bool, modes: dict[str, int]
) -> None:
    project = project_of(place, "project", modes, is_root=is_root)
    before = base_of(project)
    assert in_child(partial(remove_and_commit, project), is_root=is_root) == 0
    assert os.lstat(os.path.join(project, b"one")).st_nlink == 1
    assert in_child(partial(undo_last, project), is_root=is_root) == 0
    assert base_of(project) == before


@pytest.mark.parametrize("way", [finish_interrupted, roll_back_interrupted])
@pytest.mark.parametrize("is_root", USERS, ids=lambda one: f"root {one}")
@pytest.mark.some(2)
def test_a_kept_directory_has_its_times_and_modes_again_after_a_kill_at_any_call(
    place: Path, is_root: bool, way: Callable[[Session], object]
) -> None:
    project = project_of(place, "whole", MODES, is_root=is_root)
    assert in_child(partial(remove_and_commit, project), is_root=is_root) == 0
    assert in_child(partial(undo_and_be_killed, project, -1), is_root=is_root) == 0
    total = int(Path(os.fsdecode(project), "calls").read_text())
    assert total > 30
    for call in points(range(total), way.__name__, is_root, some=POINTS):
        where = f"killed at call {call} of {total}"
        project = project_of(place, str(call), MODES, is_root=is_root)
        before = base_of(project)
        assert in_child(partial(remove_and_commit, project), is_root=is_root) == 0
        after = base_of(project)
        assert in_child(partial(undo_and_be_killed, project, call), is_root=is_root) == -signal.SIGKILL, where
        assert in_child(partial(end, project, way), is_root=is_root) == 0, where
        if base_of(project) != before:
            assert base_of(project) == after, where
            assert in_child(partial(undo_last, project), is_root=is_root) == 0, where
            assert base_of(project) == before, where
