"""The power fails while files and directories are moved that get another owner and mode.

As :mod:`tests.crash.test_commit_power_cut` says, which has the model: the next command ends with
base exactly as before, or exactly as after.  The disk may have a part of what something was given,
or all of it and not its move; and it may have the log, and nothing of that.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash.test_commit_power_cut import Recorded, check, journal_of, next_command, on_disk
from tests.support.call_recorder import Recorder
from tests.support.commit_model import Node, scan
from tests.support.core_driver import CoreDriver
from tests.support.disk_model import Model
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many
from tests.support.second_disk import mounted_disk
from tests.support.seed import dice
from yolofs.registry.seal import Sealer
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.root_only  # gives files away, and mounts a second device
STATES = how_many(ci=48, nightly=3000)
OLD = 1_400_000_000_000_000_007
HOSTS_MODE = 0o604


@pytest.fixture(params=["", "project", "project/into"], ids=["one-disk", "session-elsewhere", "folder-elsewhere"])
def project(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A project that, or a folder of which, may lie on another disk than the session."""
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        (directory / request.param).mkdir(parents=True, exist_ok=True)
        if request.param:
            stack.enter_context(mounted_disk(directory / request.param))
        yield directory / "project"


def give_much(view: CoreDriver, *paths: bytes) -> None:
    for path in paths:
        view.chown(path, 7, 8)
        view.chmod(path, 0o700)
        view.setxattr(path, b"user.mark", b"here")


def move_some(view: CoreDriver) -> None:
    view.rename(b"d/sub", b"moved")
    view.rename(b"d/three", b"into/three")
    give_much(view, b"d", b"moved", b"into/two", b"into/three")


def move_a_directory(view: CoreDriver) -> None:
    view.rename(b"d", b"into/moved")
    give_much(view, b"into/moved", b"into/moved/sub", b"into/moved/three")


def move(view: CoreDriver) -> None:
    view.rename(b"d", b"into/moved")
    view.chmod(b"into/moved", 0o700)


def move_up(view: CoreDriver) -> None:
    view.rename(b"d/sub", b"moved")
    view.chmod(b"moved", 0o711)
    view.unlink(b"moved/one")
    view.chmod(b"d", 0o750)


def move_both(view: CoreDriver) -> None:
    view.rename(b"d", b"moved")
    view.chmod(b"moved", 0o700)
    view.rename(b"moved/sub", b"moved/other")
    view.chmod(b"moved/other", 0o711)


def exchange(view: CoreDriver) -> None:
    view.rename(b"d/sub", b"e", 2)
    view.chmod(b"e", 0o711)
    view.chmod(b"d/sub", 0o750)


def move_into_a_new_one(view: CoreDriver) -> None:
    view.mkdir(b"new", 0o755)
    view.rename(b"d", b"new/moved")
    view.chmod(b"new/moved", 0o700)
    view.chmod(b"new/moved/sub", 0o711)


def replace(view: CoreDriver) -> None:
    view.rename(b"d/sub", b"e")  # which is empty
    view.chmod(b"e", 0o700)


WAYS = (move_some, move_a_directory, move, move_up, move_both, exchange, move_into_a_new_one, replace)


def record(project: Path, work: Callable[[CoreDriver], None]) -> Recorded:
    for folder in ("d/sub", "e", "into"):
        (project / folder).mkdir(parents=True, exist_ok=True)
    for name in ("d/sub/one", "into/two", "d/three"):
        (project / name).write_text(f"{name}\n")
        os.setxattr(project / name, "user.mark", b"old")
    root = os.fsencode(project)
    for path in sorted(scan(root), reverse=True):
        os.utime(os.path.join(root, path), ns=(OLD, OLD))
    view = CoreDriver(root)
    work(view)
    view.close()
    with Session.open(root, SessionAccess.WRITE) as session:
        Sealer.open(session.directory, make=True)
        directory, before, staged = session.directory, scan(root), journal_of(session.directory)
        recorder = Recorder(root, directory)
        with recorder.at_work():
            commit(session)
            session.close()
    return Recorded(root, directory, recorder.recording, before, scan(root), staged, journal_of(directory))


@pytest.mark.some(3)
@pytest.mark.parametrize("work", WAYS)
def test_the_next_command_ends_with_base_as_before_or_as_after(
    project: Path, work: Callable[[CoreDriver], None]
) -> None:
    recorded = record(project, work)
    rng, length = dice("metadata", work.__name__), len(recorded.recording.operations)
    seen: Counter[str] = Counter()
    for number in range(STATES):
        end, model = number * (length + 1) // STATES, (Model.LOOSE, Model.ORDERED)[number // 2 % 2]
        seed = rng.randrange(1 << 30)
        with on_disk(recorded, recorded.recording.image(end, model, random.Random(seed))):
            try:
                done = next_command(recorded, ("--continue", "--roll-back")[number % 2])
                seen.update((done, check(recorded, done, now=_excuse_time(recorded, done))))
            except BaseException as error:
                error.add_note(f"after {end} of {length} calls, {model.value}, seed {seed}")
                raise
    assert all(seen[what] for what in ("finished", "taken back", "before", "after")), seen


@pytest.mark.some(2)
@pytest.mark.parametrize("work", WAYS)
def test_what_the_host_gives_files_in_between_stays(project: Path, work: Callable[[CoreDriver], None]) -> None:
    recorded = record(project, work)
    rng, length = dice("given by the host", work.__name__), len(recorded.recording.operations)
    for number in range(STATES):
        end, model = number * (length + 1) // STATES, (Model.LOOSE, Model.ORDERED)[number // 2 % 2]
        seed = rng.randrange(1 << 30)
        with on_disk(recorded, recorded.recording.image(end, model, random.Random(seed))):
            try:
                given = set(map(_give_as_the_host, _files(recorded.project)))
                next_command(recorded, ("--continue", "--roll-back")[number % 2])
                modes = _modes_by_mark(_files(recorded.project))
                assert set(modes.values()) <= {HOSTS_MODE}
                assert given - modes.keys() <= _modes_by_mark(_files(recorded.session)).keys()
            except BaseException as error:
                error.add_note(f"after {end} of {length} calls, {model.value}, seed {seed}")
                raise


def _files(root: bytes) -> list[bytes]:
    """Return the regular files of a tree, but for those at a hidden place of a commit, or in it."""
    found = (path for path, node in scan(root).items() if stat.S_ISREG(node.kind))
    return [os.path.join(root, path) for path in found if b".yolofs-" not in path]


def _give_as_the_host(path: bytes) -> bytes:
    """Give a file a mode and a mark; return that."""
    mark = b"%d" % os.lstat(path).st_ino
    os.setxattr(path, "user.hosts", mark)
    os.chmod(path, HOSTS_MODE)
    return mark


def _modes_by_mark(paths: list[bytes]) -> dict[bytes, int]:
    """Return the modes of the files that the host has marked; others were on their way then."""
    found: dict[bytes, int] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[os.getxattr(path, "user.hosts")] = stat.S_IMODE(os.lstat(path).st_mode)
    return found


def _excuse_time(recorded: Recorded, done: str) -> dict[bytes, Node]:
    """Return what base is, but for one moment before a commit begins: a hidden folder is made, or
    gone again, and the directory that it is in has not its time back.
    """
    now = scan(recorded.project)
    excused = {
        path: node._replace(mtime_ns=recorded.before[path].mtime_ns) if path in (b"", b"into") else node
        for path, node in now.items()
        if path in recorded.before
    }
    return excused if done == "nothing was interrupted" and now.keys() == recorded.before.keys() else now
