"""The power fails in an undo, in what finishes a commit or takes it back, and where there are two
devices.

As :mod:`tests.crash.test_commit_power_cut` says, which has the rest: the next command ends with
base exactly as before, or exactly as after.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.test_commit_power_cut import Recorded, check, journal_of, next_command, on_disk, populate, work
from tests.support.call_recorder import Recorder
from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.disk_model import Model, Recording, Synced
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many
from tests.support.required import do_without
from tests.support.seed import dice
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Step
from yolofs.registry.seal import Sealer
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = pytest.mark.timeout(300)
DIRECTORIES = 2
"""So many have something of every kind; there are some hundred steps."""
STATES = how_many(ci=24, nightly=4000)


class KilledError(BaseException):
    """Stands for a kill."""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory for projects and sessions, in memory if there is one."""
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        yield directory


@pytest.fixture(scope="module")
def elsewhere(place: Path) -> Iterator[Path]:
    """A directory for projects on another device than the sessions."""
    with tempfile.TemporaryDirectory() as directory:
        if os.stat(directory).st_dev == place.stat().st_dev:
            do_without("there is no second device to write to")
        yield Path(directory)


def prepare(project: Path, state: Path | None = None) -> bytes:
    """Make a project with all kinds of changes staged, its session in a state directory, and return
    its root.
    """
    project.mkdir()
    Session.create(os.fsencode(project), os.fsencode(state) if state is not None else None)
    populate(project, DIRECTORIES)
    view = CoreDriver(os.fsencode(project))
    work(view, DIRECTORIES)
    view.close()
    return os.fsencode(project)


def record(
    root: bytes, act: Callable[[Session], object], before: dict[bytes, Node] | None = None, staged: bytes | None = None
) -> Recorded:
    """Record what something does; ``before`` and ``staged`` are what base and the journal were
    before all of it.
    """
    with Session.open(root, SessionAccess.WRITE) as session:
        Sealer.open(session.directory, make=True)
        directory = session.directory
        before = before if before is not None else scan(root)
        staged = staged if staged is not None else journal_of(directory)
        recorder = Recorder(root, directory)
        with recorder.at_work():
            act(session)
            session.close()
    return Recorded(root, directory, recorder.recording, before, scan(root), staged, journal_of(directory))


def undo_last(session: Session) -> None:
    undo(session, choose_commit(session, None))


def committed(root: bytes) -> bytes:
    """Commit what is staged in a project, and return its root."""
    with Session.open(root, SessionAccess.WRITE) as session:
        commit(session)
    return root


def record_end(root: bytes, act: Callable[[Session], object]) -> Recorded:
    """Record how a commit is brought to its end that was killed half way."""
    before = scan(root)
    with Session.open(root, SessionAccess.WRITE) as session:
        staged = journal_of(session.directory)
        with broken_off(60), pytest.raises(KilledError):
            commit(session)
    recorded = record(root, act, before, staged)
    if recorded.after == before:  # and what it is at the other end
        committed(root)
        recorded = recorded._replace(after=scan(root), left=journal_of(recorded.session))
    return recorded


@contextmanager
def broken_off(number: int) -> Iterator[None]:
    """Have a commit die before step ``number``."""
    with pytest.MonkeyPatch.context() as patch:
        really, count = Steps.do, 0

        def do(self: Steps, step: Step) -> None:
            nonlocal count
            if count == number:
                raise KilledError
            count += 1
            really(self, step)

        patch.setattr(Steps, "do", do)
        yield


ALL_MODELS = (Model.LOOSE, Model.ORDERED, Model.LOOSE, Model.ALL)
JOURNALLING = (Model.ORDERED, Model.ORDERED, Model.ORDERED, Model.ALL)
"""What filesystems with a journal leave.  Of a loose one a commit that was being taken back is not
always gone on with, nor one on two devices: base is neither then, and what it had is kept."""


def states(recording: Recording, count: int, models: Sequence[Model]) -> Iterator[tuple[int, Model, int]]:
    """Yield so many moments, models and seeds."""
    rng, length = dice("power cut", models), len(recording.operations)
    for number in range(count):
        model = models[number % len(models)]
        yield rng.randint(0, length), model, rng.randrange(1 << 30)


def check_states(
    recorded: Recorded, wanted: set[str], number: bytes = b"1", models: Sequence[Model] = ALL_MODELS
) -> None:
    """Bring states of the disk to their end, by turns in both ways; all of ``wanted`` have to
    come.
    """
    seen: Counter[str] = Counter()
    images, kept = set(), os.path.join(recorded.session, b"commits/1/replaced")
    for index, (end, model, seed) in enumerate(states(recorded.recording, STATES, models)):
        image = recorded.recording.image(end, model, random.Random(seed))
        images.add(image.key())
        with on_disk(recorded, image):
            try:
                had = scan(kept) if number != b"1" and not os.path.lexists(plan_of(recorded, number)) else None
                done = next_command(recorded, ("--continue", "--roll-back")[index // 4 % 2])
                if models is JOURNALLING and done == "nothing was interrupted":
                    _excuse_time_of_top(recorded, number)
                seen.update((done, which := check(recorded, done, number)))
                assert had is None or which == "after" or scan(kept) == had
            except BaseException as error:
                error.add_note(f"after {end} of {len(recorded.recording.operations)} calls, {model.value}, seed {seed}")
                raise
    assert seen.keys() >= wanted, seen
    assert len(images) > min(STATES * 6 // 10, len(recorded.recording.operations) // 4)


def _excuse_time_of_top(recorded: Recorded, number: bytes) -> None:
    """Pass over one moment: the hidden folder on another device is made, and its directory has not
    its time back.
    """
    if not os.path.lexists(os.path.join(recorded.session, b"commits", number, b"done")):
        os.utime(recorded.project, ns=(0, recorded.before[b""].mtime_ns))


def plan_of(recorded: Recorded, number: bytes) -> bytes:
    return os.path.join(recorded.session, b"commits", number, b"plan.json")


BOTH = {"finished", "taken back", "before", "after"}


def test_an_undo_in_which_the_power_fails_ends_before_or_after(place: Path) -> None:
    recorded = record(committed(prepare(place / "undone")), undo_last)
    assert any(isinstance(one, Synced) and one.is_barrier for one in recorded.recording.operations)
    check_states(recorded, BOTH, b"2")


def test_finishing_a_commit_goes_on_after_the_power_failed(place: Path) -> None:
    check_states(record_end(prepare(place / "finished"), finish_interrupted), BOTH)


def test_taking_a_commit_back_goes_on_after_the_power_failed(place: Path) -> None:
    check_states(record_end(prepare(place / "taken back"), roll_back_interrupted), BOTH, models=JOURNALLING)


def test_a_commit_on_two_devices_in_which_the_power_fails_ends_before_or_after(place: Path, elsewhere: Path) -> None:
    recorded = record(prepare(elsewhere / "far", place / "state/far"), commit)
    assert os.stat(recorded.project).st_dev != os.stat(recorded.session).st_dev
    check_states(recorded, BOTH, models=JOURNALLING)


def test_an_undo_on_two_devices_in_which_the_power_fails_ends_before_or_after(place: Path, elsewhere: Path) -> None:
    root = prepare(elsewhere / "far undone", place / "state/far")
    check_states(record(committed(root), undo_last), BOTH, b"2", JOURNALLING)
