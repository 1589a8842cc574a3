"""Common to all tests: who may skip, how hypothesis runs, and that no mount or process is left
behind.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import core, settings

# At the end: tests find their own helpers as `tests.…`, and an installed yolofs still comes before
# the checkout.
sys.path.append(str(Path(__file__).parent.parent))

from tests.support import (
    background_removal,
    elsewhere,
    fault_points,
    forked,
    huge_pages,
    kept_survey,
    may_mount,
    memory_disk,
    spread,
    unsynced,
)
from tests.support.leftovers import Leftovers, Traces, all_processes
from tests.support.seed import VARIABLE, seed
from tests.support.session_cleaning import sessions_removed
from tests.support.signals import signals_left_alone
from tests.support.vfork import UnlessServing

# Who starts the tests in the background (nohup, a script's "&") has them ignore these, and all that
# they start.
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# `make test` tells its own makes this; the tests start others.
for _name in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "MAKE_TERMOUT", "MAKE_TERMERR"):
    os.environ.pop(_name, None)

# The source here is tested, whatever `make setup` compiled of it.
os.environ["YOLOFS_CORE"] = "python"

unsynced.install()

SEED = seed()
settings.register_profile("ci", database=None, deadline=None, print_blob=True, max_examples=20)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

ON_DISK = [Path(__file__).parent / folder for folder in ("mount", "unit/commit/apply", "unit/store")]
"""Folders whose tests a disk has to answer: a view promises what ext4 does, and a commit knows
files by what a disk says of them.
"""

GARBAGE_THRESHOLD = 20_000
"""So many objects more are there before garbage is looked for; with 700, that was a twelfth of the
time of tests of a module.
"""
NUMBERS = itertools.count()
"""Of directories of tests."""
MADE = pytest.StashKey[Path]()
"""Where the tests of this process have made theirs."""


class Directories(NamedTuple):
    """Where tests have their directories."""

    temporary: str
    """All that goes through :mod:`tempfile`."""
    tests: Path
    """What ``tmp_path`` and its factory give."""
    state: str
    """The state directory of yolofs."""


CAP_SYS_ADMIN = 21
"""The bit of the capability that mount(2) wants."""


def why_no_mount() -> str:
    """Return why this machine cannot mount, or an empty string if it can."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"/dev/fuse cannot be opened: {error.strerror}"
    status = Path("/proc/self/status").read_text()
    capabilities = int(status.partition("CapEff:")[2].split()[0], 16)
    if not capabilities >> CAP_SYS_ADMIN & 1 and shutil.which("fusermount3") is None:
        return "neither CAP_SYS_ADMIN nor fusermount3 is there"
    return ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option of tests/support/elsewhere.py: the place of the tests, which chooses among
    them.
    """
    parser.addoption("--place", choices=sorted(elsewhere.CHOSEN), help="run what is chosen for this place")


def pytest_configure(config: pytest.Config) -> None:
    """Have models and properties draw from the seed of this run, unless one of their own is
    given.
    """
    if config.getoption("hypothesis_seed", None) is None:
        # as Hypothesis's own plugin sets it for --hypothesis-seed; it is typed as what it is at
        # first, None
        core.global_force_seed = SEED  # type: ignore[assignment]
    if "PYTEST_XDIST_WORKER" not in os.environ and memory_disk.VARIABLE not in os.environ:
        memory_disk.mount_for_the_run()
        config.add_cleanup(memory_disk.unmount_after_the_run)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile the tests before several processes begin, each of which would compile all of them."""
    spread.compile_tests(config.rootpath)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have nothing looked through for garbage while tests and modules come that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Have what is there for good, tests and modules, not be looked through for garbage again, and
    take little to be forked.

    Of several processes, which have all collected the same, one looks for garbage: what nobody has
    closed would be found there.  It takes 0.4 s.
    """
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    huge_pages.collapse()


def pytest_report_header() -> str:
    """Say what repeats this run's draws."""
    return f"seed: {VARIABLE}={SEED} draws the same again"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it beside the failures, too."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(pytest_report_header())


NIGHTLY_TIMEOUT_S = 7200


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the other kind of user, not chosen for the place, or not drawn.

    By night a test may take longer than its own limit, which is for the few examples of other runs.
    """
    other = "ordinary_only" if os.getuid() == 0 else "root_only"
    place = config.getoption("place")
    left_out = [
        item
        for item in items
        if item.get_closest_marker(other) is not None or (place and not elsewhere.is_chosen(place, item.nodeid))
    ]
    left_out += fault_points.left_out(items)
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)
    items[:] = spread.long_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        for item in items:
            item.add_marker(pytest.mark.timeout(NIGHTLY_TIMEOUT_S), append=False)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a mount where there is none, or fail it if YOLOFS_REQUIRE_MOUNT=1
    wants it run.
    """
    is_marked = item.get_closest_marker("mount") is not None
    may_mount.begin(item.nodeid, is_marked=is_marked)
    if not is_marked:
        return
    reason = why_no_mount()
    if not reason:
        return
    if os.environ.get("YOLOFS_REQUIRE_MOUNT") == "1":
        pytest.fail(f"YOLOFS_REQUIRE_MOUNT=1, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a test a directory, as pytest's own does, which looks at the names of all others for a
    new one.
    """
    name = re.sub(r"\W", "_", request.node.name)[:28]
    path = tmp_path_factory.getbasetemp() / f"{name}.{next(NUMBERS)}"
    path.mkdir(0o700)
    yield path
    if not request.session.testsfailed:
        background_removal.of(path)


@pytest.fixture(scope="session")
def disk_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directories]:
    """Give the run directories on the disk."""
    state_dir = tempfile.mkdtemp(prefix="yolofs-state.")
    yield Directories(tempfile.gettempdir(), tmp_path_factory.getbasetemp(), state_dir)
    shutil.rmtree(state_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def memory_directories(disk_directories: Directories) -> Iterator[Directories]:
    """Give the run directories in memory; the same as on the disk where it has none there."""
    memory = os.environ.get(memory_disk.VARIABLE)
    if not memory:
        yield disk_directories
        return
    made = [tempfile.mkdtemp(prefix=prefix, dir=memory) for prefix in ("pytest.", "yolofs-state.")]
    yield Directories(memory, Path(made[0]), made[1])
    for one in made:
        shutil.rmtree(one, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def file_directories(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    disk_directories: Directories,
    memory_directories: Directories,
) -> Iterator[Directories]:
    """Give the tests of a file all their directories on the disk, if it is marked so or lies in
    :data:`ON_DISK`, else in memory.
    """
    file = request.node
    is_on_disk = file.get_closest_marker("disk") is not None or any(folder in file.path.parents for folder in ON_DISK)
    chosen = disk_directories if is_on_disk else memory_directories
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", chosen.state)
        patch.delenv("YOLOFS_STATE", raising=False)
        patch.setattr(tempfile, "tempdir", chosen.temporary)
        patch.setattr(tmp_path_factory, "_basetemp", chosen.tests)
        yield chosen


@pytest.fixture(scope="module")
def state_home(file_directories: Directories) -> str:
    """Give where the state of the file's tests is."""
    return file_directories.state


@pytest.fixture(scope="session", autouse=True)
def traces(
    request: pytest.FixtureRequest, disk_directories: Directories, memory_directories: Directories
) -> Iterator[Traces]:
    """Give the run a directory for runtime, and a mark; fail if anything is left at its end.

    The directory is short, as the path of a Unix socket may have 107 bytes only.
    """
    runtime_dir = tempfile.mkdtemp(prefix="yolofs-test.")
    temporary = disk_directories.tests
    common = temporary.parent if "PYTEST_XDIST_WORKER" in os.environ else temporary
    kept_survey.share(runtime_dir, str(common / "survey"))
    mark = uuid.uuid4().hex
    directories = (runtime_dir, str(temporary), str(memory_directories.tests))
    traces = Traces(mark=mark, directories=directories, others=all_processes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime_dir)
        patch.setenv(traces.variable, mark)
        patch.setattr(subprocess, "_USE_VFORK", UnlessServing())
        yield traces
        forked.stop()
        background_removal.wait()
        left = traces.find_after_grace(Leftovers())
    traces.clear(left)
    shutil.rmtree(runtime_dir, ignore_errors=True)
    assert not left, f"the test run left behind {left}"
    request.config.stash[MADE] = temporary


def pytest_runtest_logfinish() -> None:
    """Remove what earlier tests have made while others run."""
    background_removal.go_on()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what tests have made, where none failed.

    No fixture does it: the last test would have to end in time with it.
    """
    temporary = session.config.stash.get(MADE, None)
    if temporary is not None and not session.testsfailed:
        remove_what_tests_made(temporary)


def remove_what_tests_made(temporary: Path) -> None:
    """Remove the directories of tests, a hundred thousand files.

    Otherwise pytest does it three runs later, at the end of a run: one process, which takes five
    times as long.
    """
    made = [str(path) for path in temporary.iterdir() if path.name != ".lock"]
    if made:
        subprocess.run(["rm", "-rf", "--one-file-system", *made], check=False)


@pytest.fixture(autouse=True)
def leaves_all_as_it_was(request: pytest.FixtureRequest, traces: Traces, state_home: str) -> Iterator[None]:
    """Remove the sessions that a test has made, those of wider fixtures stay; fail it if it leaves
    signals other than they were, which the next ones would start with, or is marked ``mount`` and
    leaves a mount or a process behind.

    It is one fixture, as each takes time beside what it does: some 9,000 times.
    """
    with signals_left_alone(), sessions_removed(state_home):
        if request.node.get_closest_marker("mount") is None:
            yield
        else:
            with nothing_left_behind(traces):
                yield


@contextmanager
def nothing_left_behind(traces: Traces) -> Iterator[None]:
    """Fail if a block leaves a mount or a process behind, and clear it away."""
    before = traces.find()  # what wider fixtures hold
    yield
    left = traces.find_after_grace(before)
    traces.clear(left)
    assert not left, f"the test left behind {left}"
