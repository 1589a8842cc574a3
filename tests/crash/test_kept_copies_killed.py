"""A commit parts kept files from their former other names, and is killed at each call from then on:
once it is finished, none of its own work is taken for the host's.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commit_model import scan
from tests.support.core_driver import CoreDriver
from tests.support.injected_faults import Faults
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many
from tests.support.seed import dice
from yolofs.commit.apply import execution, kept_copies
from yolofs.paths import Generation
from yolofs.session.commit import commit, look_at_base, split_staged
from yolofs.session.ending_interrupted import finish_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.session.up_to import commit_up_to

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for projects and sessions, in memory if there is one."""
    with memory_directory() as directory:
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        yield directory


def project_with_links(place: Path, number: int) -> bytes:
    """Make files of several names each, some in a directory."""
    project = place / f"project {number}"
    (project / "d").mkdir(parents=True)
    for name in ("a", "b", "d/c"):
        (project / name).write_text(name)
        os.link(project / name, project / f"{name} too")
        os.link(project / name, project / f"{name} as well")
    return os.fsencode(project)


def stage_some_and_all(project: bytes) -> None:
    """Remove some names of each file, which is a generation, and then the others."""
    view = CoreDriver(project)
    for name in (b"a", b"b", b"b too", b"d/c"):
        view.unlink(name)
    view.snapshot()
    for name in (b"a too", b"a as well", b"b as well", b"d/c too", b"d/c as well"):
        view.unlink(name)
    view.rmdir(b"d")
    view.close()


def commit_some(project: bytes) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        commit_up_to(session, split=split_staged(session, None, tree=session.state(Generation(1))))


def stage_links(project: bytes) -> None:
    """Have more names be committed, and all of them be staged as removed."""
    view = CoreDriver(project)
    view.link(b"a", b"new")
    view.link(b"d/c", b"d/new")
    view.close()
    with Session.open(project, SessionAccess.WRITE) as session:
        commit(session)
    view = CoreDriver(project)
    for name in (b"a", b"a too", b"a as well", b"new", b"d/c", b"d/c too", b"d/c as well", b"d/new"):
        view.unlink(name)
    view.rmdir(b"d")
    view.close()


def undo_all(project: bytes) -> None:
    with Session.open(project, SessionAccess.WRITE) as session:
        undo(session, choose_commit(session, 1))


def is_killed(project: bytes, does: Callable[[bytes], None], call: int) -> bool:
    """Do something in a process that is killed at a call after the parting, counted from 0; return
    whether there was such a call.
    """
    pid = os.fork()
    if not pid:
        status = 1
        try:
            _do_and_be_killed(project, does, call)
            status = 0
        except BaseException as error:  # noqa: BLE001 - the parent is told by the status, and a reader by this
            sys.stderr.write(f"{error!r}\n")
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or not os.waitstatus_to_exitcode(status)
    return os.WIFSIGNALED(status)


def _do_and_be_killed(project: bytes, does: Callable[[bytes], None], call: int) -> None:
    left = -1

    def begin(*args: Any) -> Any:
        nonlocal left
        left = call
        return really(*args)

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= left > 0

    really = kept_copies.note_kept_copies
    pytest.MonkeyPatch().setattr(execution, "note_kept_copies", begin)
    faults = Faults(0, range(0))
    faults.before_each = count
    with faults.at_work():
        does(project)


STRIDE = how_many(ci=2, nightly=1)
"""From one call at which it is killed to the next; by day they begin with a drawn one."""


@pytest.mark.parametrize(
    ("stages", "does"), [(stage_some_and_all, commit_some), (stage_links, undo_all)], ids=["commit --up-to", "undo"]
)
def test_a_file_that_lost_names_is_not_taken_for_changed(
    place: Path, stages: Callable[[bytes], None], does: Callable[[bytes], None]
) -> None:
    call, goes_on = dice("kept copies", does.__name__).randrange(STRIDE), True
    while goes_on:
        project = project_with_links(place, call)
        stages(project)
        goes_on = is_killed(project, does, call)
        with Session.open(project, SessionAccess.WRITE) as session:
            assert (finish_interrupted(session) is not None) or not goes_on or session.interrupted() is None
            where = f"killed at call {call}"
            assert look_at_base(session, split_staged(session, None)).conflicts == [], where
            commit(session)
        assert not any(path.startswith((b"a", b"d")) for path in scan(project)), where
        call += STRIDE
    assert call > 10


def test_a_file_that_lost_names_and_that_the_host_changed_is_taken_for_changed(place: Path) -> None:
    for call in (4, 8, 12):
        project = project_with_links(place, call)
        stage_some_and_all(project)
        assert is_killed(project, commit_some, call)
        left = Path(os.fsdecode(project), "a as well")
        left.chmod(0o600)
        with Session.open(project, SessionAccess.WRITE) as session:
            finish_interrupted(session)
            assert look_at_base(session, split_staged(session, None)).conflicts == [b"a as well", b"a too"], call
