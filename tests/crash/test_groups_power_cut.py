"""The power fails while an ordinary user commits, or undoes, where files belong to groups that the
user is not in, or to others.

As :mod:`tests.crash.test_commit_power_cut` says, which has the model: the next command ends with
base exactly as before, or exactly as after, owners and setgid included.  Root puts the states of
the disk there; all else is done by the user.
"""

from __future__ import annotations

import ctypes
import os
import random
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.test_commit_of_groups import populate, work
from tests.crash.test_commit_power_cut import Recorded, check, journal_of, next_command, on_disk, states
from tests.support import core_driver
from tests.support.call_recorder import Recorder
from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many
from tests.support.user_identity import NOBODY, in_child
from yolofs.overlay import Owner
from yolofs.registry.seal import Sealer
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = [pytest.mark.root_only, pytest.mark.timeout(300)]
STATES = how_many(ci=40, nightly=2000)
_SET_DUMPABLE = 4
Act = Callable[[Session], object]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in which the ordinary user has room for a project and for state."""
    with memory_directory() as directory:
        directory.chmod(0o711)
        os.chown(directory / "state", NOBODY, NOBODY)
        yield directory


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Be an ordinary user for the time of the block, without the groups of root."""
    prctl = ctypes.CDLL(None).prctl
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    prctl(_SET_DUMPABLE, 1)  # which seteuid clears: else /proc/self/fd would be root's
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        prctl(_SET_DUMPABLE, 1)


def record(root: bytes, act: Act) -> Recorded:
    """Record what something does that the user does."""
    with Session.open(root, SessionAccess.WRITE) as session:
        Sealer.open(session.directory, make=True)
        directory, before, staged = session.directory, shown(root), journal_of(session.directory)
        recorder = Recorder(root, directory)
        with recorder.at_work():
            act(session)
            session.close()
    return Recorded(root, directory, recorder.recording, before, shown(root), staged, journal_of(directory))


def shown(root: bytes) -> dict[bytes, Node]:
    """Return what base is, but for the times of others' files: only they may set them, and the
    command says that it could not.
    """
    return {path: node if node.owner[0] == NOBODY else node._replace(mtime_ns=0) for path, node in scan(root).items()}


def _excuse_time(now: dict[bytes, Node], before: dict[bytes, Node]) -> dict[bytes, Node]:
    """Pass over one moment before a commit begins: a hidden folder is made, or gone again, and the
    directory that gives it its group has not its time back.
    """
    excused = {
        path: node._replace(mtime_ns=before[path].mtime_ns)
        for path, node in now.items()
        if path in before and node.mode & stat.S_ISGID and node.kind == stat.S_IFDIR
    }
    return now | excused if now | excused == before else now


def check_states(recorded: Recorded, number: bytes) -> None:
    """Bring states of the disk to their end, by turns in both ways, and see that they all come."""
    seen: Counter[str] = Counter()
    for index, (end, model, seed) in enumerate(states(recorded.recording, STATES, int(number))):
        image = recorded.recording.image(end, model, random.Random(seed))
        with on_disk(recorded, image):
            try:
                with as_ordinary_user():
                    done = next_command(recorded, ("--continue", "--roll-back")[index // 4 % 2])
                now = shown(recorded.project)
                if done == "nothing was interrupted":
                    now = _excuse_time(now, recorded.before)
                seen.update((done, check(recorded, done, number, now=now)))
            except BaseException as error:
                error.add_note(f"after {end} of {len(recorded.recording.operations)} calls, {model.value}, seed {seed}")
                raise
    assert all(seen[what] for what in ("finished", "taken back", "before", "after")), seen


def _commit_all(session: Session) -> None:
    commit(session)


def _undo_last(session: Session) -> None:
    undo(session, choose_commit(session, None))


@pytest.mark.parametrize("what", ["commit", "undo"])
def test_the_next_command_ends_with_base_as_before_or_as_after(place: Path, what: str) -> None:
    project = populate(place / "project")

    def act() -> None:
        os.environ["HOME"] = os.environ["XDG_STATE_HOME"] = str(place / "state")
        os.umask(0)
        core_driver.OWNER = Owner(NOBODY, NOBODY)
        with as_ordinary_user():
            view = CoreDriver(project)
            work(view)
            view.close()
            if what == "undo":
                with Session.open(project, SessionAccess.WRITE) as session:
                    commit(session)
            recorded = record(project, _undo_last if what == "undo" else _commit_all)
        check_states(recorded, b"2" if what == "undo" else b"1")

    assert in_child(act, is_root=True) == 0, "see above"
