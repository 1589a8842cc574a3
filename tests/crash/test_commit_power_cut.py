"""The power fails at any moment of a commit, and the disk has what it may have by then: the next
command ends with base exactly as before, or exactly as after.

This is no recording by the kernel: dm-log-writes wants the device mapper, which containers and many
machines that tests run on do not have (ours among them), and a loop device over a file that keeps
old blocks shows one order alone, that of the filesystem at hand.  So all calls are recorded, and a
model says which of them may have reached a disk (:mod:`tests.support.disk_model`), even one worse
than any real one.  That no call is missed is shown by replaying all of them.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import disk_model
from tests.support.call_recorder import Recorder
from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.disk_model import Image, Model, Recording, Synced, put
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many
from tests.support.seed import dice
from tests.support.seen_numbers import SeenNumbers
from yolofs.commit.select.selection import Selection
from yolofs.paths import RelPath
from yolofs.registry.seal import Sealer
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.system import syscalls

pytestmark = pytest.mark.timeout(300)
OLD = 1_400_000_000_000_000_007


class Recorded(NamedTuple):
    """A commit that was recorded."""

    project: bytes
    session: bytes
    recording: Recording
    before: dict[bytes, Node]
    after: dict[bytes, Node]
    staged: bytes
    """The journal before the commit."""
    left: bytes
    """And after it."""


# ---- the work of which all is recorded


def populate(root: Path, count: int = 10) -> None:
    for number in range(count):
        for part in ("sub", "deep/below"):
            (root / f"d{number}" / part).mkdir(parents=True)
        for name in range(10):
            (root / f"d{number}/f{name}").write_text(f"base {number} {name}\n" * (1 + name))
            (root / f"d{number}/sub/s{name}").write_text(f"sub {number} {name}\n")
        for name in range(4):
            (root / f"d{number}/deep/below/x{name}").write_text(f"below {number} {name}\n")
        os.link(root / f"d{number}/f0", root / f"d{number}/linked")
        (root / f"d{number}/soft").symlink_to("f1")
    os.mkfifo(root / "pipe")
    for path in sorted(scan(os.fsencode(root)), reverse=True):
        os.utime(os.path.join(os.fsencode(root), path), ns=(OLD, OLD), follow_symlinks=False)


def work(view: CoreDriver, count: int = 10) -> None:
    """Leave some 500 changes, of every kind that there is; some 60 for each of the ``count``
    directories.
    """
    for number in range(count):
        d = b"d%d" % number
        view.overwrite(d + b"/f0", b"through one of its names %d" % number)
        for name in (1, 2):
            view.overwrite(d + b"/f%d" % name, b"new content %d " % name * 40)
        view.chmod(d + b"/f3", 0o600)
        view.unlink(d + b"/f4")
        view.rename(d + b"/f5", d + b"/sub/came")
        view.rename(d + b"/f6", d + b"/t")
        view.rename(d + b"/f7", d + b"/f6")
        view.rename(d + b"/t", d + b"/f7")
        view.link(d + b"/f8", d + b"/again")
        for name in range(10):
            view.create(d + b"/made%d" % name, b"made %d\n" % name * name, 0o640)
        view.mkdir(d + b"/new", 0o750)
        for name in range(8):
            view.create(d + b"/new/n%d" % name, b"new %d\n" % name, 0o644)
        view.symlink(b"n1", d + b"/new/soft")
        view.unlink(d + b"/soft")
        view.symlink(b"f2", d + b"/soft")
        for name in range(10):
            if name % 2:
                view.unlink(d + b"/sub/s%d" % name)
            elif name < 6:
                view.overwrite(d + b"/sub/s%d" % name, b"changed")
        view.utimes(d + b"/sub/s8", 1_000_000_000_000_000_000)
        if number % 2:
            view.rename(d + b"/deep/below", d + b"/new/below")
            view.unlink(d + b"/new/below/x1")
        else:
            for name in range(4):
                view.unlink(d + b"/deep/below/x%d" % name)
            view.rmdir(d + b"/deep/below")
            view.rmdir(d + b"/deep")
            view.create(d + b"/deep", b"now a file", 0o644)
        view.create(d + b"/new/big", bytes(random.Random(number).randbytes(20_000)), 0o600)
    view.rename(b"d%d" % (count - 2), b"d%d/new/moved" % (count - 1))
    view.unlink(b"pipe")
    view.mkdir(b"pipe", 0o700)


def record(project: Path, *paths: bytes) -> Recorded:
    project.mkdir()
    populate(project)
    view = CoreDriver(os.fsencode(project))
    work(view)
    view.close()
    root = os.fsencode(project)
    with Session.open(root, SessionAccess.WRITE) as session:
        Sealer.open(session.directory, make=True)
        directory = session.directory
        staged = journal_of(directory)
        before = scan(root)
        recorder = Recorder(root, directory)
        with recorder.at_work():
            commit(session, selection=Selection(session.regions, paths=tuple(map(RelPath, paths or (b"",)))))
            session.close()
    return Recorded(root, directory, recorder.recording, before, scan(root), staged, journal_of(directory))


def journal_of(session: bytes) -> bytes:
    """Return the journal in force, without what was reserved behind its end."""
    return Path(os.fsdecode(os.path.join(session, b"journal"))).read_bytes().rstrip(b"\0")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory for projects and sessions, in memory if there is one."""
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        yield directory


@pytest.fixture(scope="module")
def recorded(place: Path) -> Recorded:
    """A commit of some 500 changes."""
    return record(place / "all")


@pytest.fixture(scope="module")
def recorded_part(place: Path) -> Recorded:
    """A commit of a part of them, which leaves the rest staged."""
    return record(place / "part", b"d0", b"d1", b"d2/new", b"d3/sub")


# ---- states of a disk


def empty(directory: bytes) -> None:
    """Remove all in a directory, but for places at which another disk is mounted."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
        elif os.path.ismount(path):
            empty(path)
        else:
            shutil.rmtree(path)


@contextmanager
def on_disk(recorded: Recorded, image: Image) -> Iterator[None]:
    """Have the disk be as an image for the time of the block; nobody waits for it in there."""
    tops = (recorded.project, recorded.session)
    known: dict[tuple[int, int], disk_model.Recorded] = {}
    for top, path in zip(recorded.recording.tops, tops, strict=True):
        empty(path)
        put(image, top, path, known)
    with pytest.MonkeyPatch.context() as patch, SeenNumbers(known, *tops).at_work():
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        patch.setattr(os, "sync", lambda: None)
        patch.setattr(syscalls, "sync_filesystem", lambda _: None)
        yield


def next_command(recorded: Recorded, way: str) -> str:
    """Open the session as the next command does, and bring a commit that was interrupted to its
    end.
    """
    with Session.open(recorded.project, SessionAccess.WRITE) as session:
        if way == "--continue":
            return "nothing was interrupted" if finish_interrupted(session) is None else "finished"
        found = session.interrupted()
        if found is None:
            return "nothing was interrupted"
        assert found.plan is not None, found.problems
        if found.way_back is None:
            finish_interrupted(session)
            return "finished"
        roll_back_interrupted(session)
        return "taken back"


def check(recorded: Recorded, done: str, number: bytes = b"1", *, now: dict[bytes, Node] | None = None) -> str:
    """Check that base is as it was and all staged, or as the view was and nothing staged; return
    which.

    ``number``: of the commit; ``now``: what base is, if the caller has looked at it.
    """
    now = now if now is not None else scan(recorded.project)
    journal = journal_of(recorded.session)
    if now == recorded.before and done != "finished":
        assert journal == recorded.staged
        return "before"
    assert now == recorded.after
    assert done != "taken back"
    assert journal.partition(b"\n")[2] == recorded.left.partition(b"\n")[2]  # the key of an empty one is drawn
    assert os.path.lexists(os.path.join(recorded.session, b"commits", number, b"done"))
    return "after"


def test_the_recording_of_a_commit_misses_no_change_on_the_disk(recorded: Recorded) -> None:
    """What is recorded, put on a disk, is what the commit has left; these are over 500 changes."""
    before, after = recorded.before, recorded.after
    assert sum(before.get(path) != after.get(path) for path in before.keys() | after.keys()) > 500
    session = {path: node for path, node in scan(recorded.session).items() if path != b"lock"}
    length = len(recorded.recording.operations)
    with on_disk(recorded, recorded.recording.image(length, Model.ALL, random.Random())):
        pass
    assert scan(recorded.project) == recorded.after
    assert {path: node for path, node in scan(recorded.session).items() if path != b"lock"} == session
    assert sum(isinstance(one, Synced) for one in recorded.recording.operations) > 5


SHARES = how_many(ci=2, nightly=8)
STATES = how_many(ci=135, nightly=1000)
"""For each share."""
SOME_STATES = how_many(ci=30, nightly=500)
"""Of a commit of some paths.  By day, too, there are 300 and more."""


def states(recording: Recording, count: int, share: int) -> Iterator[tuple[int, Model, int]]:
    """Yield so many moments, models and seeds: most of them while base is changed, the first one
    before anything is done.
    """
    rng = dice("power cut", share)
    length = len(recording.operations)
    barriers = [index for index, one in enumerate(recording.operations) if isinstance(one, Synced) and one.is_barrier]
    first = barriers[0]
    for number in range(count):
        begin = 0 if number % 8 == 0 else first
        model = (Model.LOOSE, Model.ORDERED, Model.LOOSE, Model.ALL)[number % 4]
        yield rng.randint(begin, length) if number else 0, model, rng.randrange(1 << 30)


def check_states(recorded: Recorded, count: int, share: int) -> None:
    """Bring states of the disk to their end, by turns in both ways, and see that they all come.

    A state that was drawn before is not counted.
    """
    seen: Counter[str] = Counter()
    images = set()
    for index, (end, model, seed) in enumerate(states(recorded.recording, 2 * count, share)):
        where = f"after {end} of {len(recorded.recording.operations)} calls, {model.value}, seed {seed}"
        image = recorded.recording.image(end, model, random.Random(seed))
        if image.key() in images:
            continue
        images.add(image.key())
        with on_disk(recorded, image):
            try:
                done = next_command(recorded, ("--continue", "--roll-back")[index // 4 % 2])
                seen.update((done, check(recorded, done)))
            except BaseException as error:
                error.add_note(where)
                raise
        if len(images) == count:
            break
    assert all(seen[what] for what in ("finished", "taken back", "nothing was interrupted", "before", "after")), seen
    assert len(images) >= min(count, len(recorded.recording.operations) * 3 // 4)


@pytest.mark.parametrize("share", range(SHARES))
def test_the_next_command_ends_with_base_as_before_or_as_after(recorded: Recorded, share: int) -> None:
    check_states(recorded, STATES, share)


def test_of_a_commit_of_some_paths_the_rest_stays_staged(recorded_part: Recorded) -> None:
    check_states(recorded_part, SOME_STATES, SHARES)
