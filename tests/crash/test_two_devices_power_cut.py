"""The power fails in one of a chain of commits and undos over two devices, and the chain goes on.

As :mod:`tests.crash.test_commit_power_cut` says, which has the model: the next command ends with
base as before, or as after.  Then the rest of the chain is done, which knows what was copied to the
other device by the notes of the commits before it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.crash.test_commit_power_cut import Recorded, journal_of, next_command, on_disk
from tests.crash.test_two_devices_chain import FIRST, SECOND, exactly, populate, without_links
from tests.crash.test_undo_power_cut import JOURNALLING, states
from tests.support.call_recorder import Recorder
from tests.support.commit_model import scan
from tests.support.core_driver import CoreDriver
from tests.support.disk_model import Model
from tests.support.fault_points import points
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many
from tests.support.second_disk import mounted_disk
from yolofs.registry.seal import Sealer
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
STATES = how_many(ci=4, nightly=60)
Tree = dict[bytes, tuple[Any, ...]]


class Act(NamedTuple):
    """One link of a chain."""

    name: str
    comes_to: int
    """Which state base has then: before all, after the first commit, after the second."""
    does: Callable[[Session], object]
    stage: Callable[[CoreDriver], None] | None = None
    """What is done in the view before."""


def commit_all(session: Session) -> None:
    commit(session)


def undo_of(number: int | None) -> Callable[[Session], None]:
    def act(session: Session) -> None:
        result = undo(session, choose_commit(session, number))
        assert result.is_whole
        assert not result.stays

    return act


def chain(first: str, second: str) -> list[Act]:
    """Return a chain that goes through all there is."""
    return [
        Act("commit", 1, commit_all, FIRST[first]),
        Act("commit once more", 2, commit_all, SECOND[second]),
        Act("undo the second", 1, undo_of(None)),
        Act("do the second again", 2, commit_all),
        Act("undo it again", 1, undo_of(None)),
        Act("undo the first", 0, undo_of(1)),
        Act("do both again", 2, commit_all),
        Act("undo both", 0, undo_of(None)),
    ]


LENGTH = 8


@pytest.fixture
def project() -> Iterator[Path]:
    """A project in memory in which a directory lies on another device."""
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        (directory / "project/far").mkdir(parents=True)
        with mounted_disk(directory / "project/far"):
            yield directory / "project"


def carried_out(project: Path, act: Act) -> None:
    if act.stage is not None:
        view = CoreDriver(bytes(project))
        act.stage(view)
        view.close()
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        act.does(session)


def recorded(project: Path, act: Act) -> Recorded:
    if act.stage is not None:
        view = CoreDriver(bytes(project))
        act.stage(view)
        view.close()
    root = bytes(project)
    with Session.open(root, SessionAccess.WRITE) as session:
        Sealer.open(session.directory, make=True)
        directory, staged, before = session.directory, journal_of(session.directory), scan(root)
        recorder = Recorder(root, directory)
        with recorder.at_work():
            act.does(session)
            session.close()
    return Recorded(root, directory, recorder.recording, before, scan(root), staged, journal_of(directory))


def comparable(tree: Tree) -> Tree:
    """Leave out the time of a directory with a hidden folder, and the hard links of files that
    moved.
    """
    return {path: what for path, what in without_links(tree).items() if path not in (b"", b"far")}


CASES = points([(first, second) for first in FIRST for second in SECOND], "power cuts of chains", some=2)


@pytest.mark.parametrize("at", range(LENGTH))
@pytest.mark.parametrize(("first", "second"), CASES)
@pytest.mark.some(5)
def test_a_chain_goes_on_after_the_power_failed_in_one_of_its_links(
    project: Path, first: str, second: str, at: int
) -> None:
    populate(project)
    acts = chain(first, second)
    known: dict[int, Tree] = {0: exactly(project)}
    for act in acts[:at]:
        carried_out(project, act)
        known.setdefault(act.comes_to, exactly(project))
    before = exactly(project)
    record = recorded(project, acts[at])
    after = exactly(project)
    known.setdefault(acts[at].comes_to, after)
    for index, (end, model, seed) in enumerate(states(record.recording, STATES, JOURNALLING)):
        image = record.recording.image(end, model, random.Random(seed))
        with on_disk(record, image):
            try:
                done = next_command(record, ("--continue", "--roll-back")[index % 2])
                go_on(project, acts[at:], known, before, after, done)
            except BaseException as error:
                error.add_note(f"after {end} of {len(record.recording.operations)} calls, {model.value}, seed {seed}")
                raise


def go_on(project: Path, acts: Sequence[Act], known: dict[int, Tree], before: Tree, after: Tree, done: str) -> None:
    """See that base is as before or after the first of ``acts``, and carry the rest out."""
    now = comparable(exactly(project))
    if now == comparable(before) and done != "finished":
        carried_out(project, acts[0]._replace(stage=None))  # what the view did is staged
        now = comparable(exactly(project))
    assert now == comparable(after)
    rest = list(acts[1:])
    if 2 not in known:  # nothing but the first commit was made: that is taken back and done again
        rest = [act._replace(comes_to=min(act.comes_to, 1)) for act in rest[-3:]]
    for act in rest:
        carried_out(project, act)
        assert comparable(exactly(project)) == comparable(known[act.comes_to]), act.name


def test_a_hard_link_in_the_place_of_a_file_is_made_again_if_only_the_log_has_it(project: Path) -> None:
    populate(project)
    first, second, third, *_ = chain("make_another", "replace_files")
    carried_out(project, first)
    known = comparable(exactly(project))
    carried_out(project, second)
    record = recorded(project, third)
    length = len(record.recording.operations)
    for end in range(length * 2 // 3, length):
        with on_disk(record, record.recording.image(end, Model.ORDERED, random.Random(1))):
            if next_command(record, "--continue") == "finished":
                assert comparable(exactly(project)) == known, f"after {end} of {length} calls"
