"""A commit on a disk in user space that finds files by their names: each name of a file has an
inode number of its own there, or a directory has another one after a rename.

Such a commit is undone, and a kill at any line leaves what can be finished or taken back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.at_a_line import dies_at, has_way_back
from tests.support.core_driver import CoreDriver
from tests.support.disk_by_names import Numbers
from tests.support.every_kind_of_step import populate, work
from tests.support.fault_points import points
from tests.support.plain_directory import PlainDirectory, walk_tree
from tests.support.program import wait_until
from tests.support.required import do_without
from yolofs.commit.apply import step_log
from yolofs.errors import ConflictError
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount, pytest.mark.root_only]
POINTS = 6
LINES = 14
"""So many the log of the commit has here."""
CHECKOUT = Path(__file__).parents[2]
Listing = dict[bytes, tuple[Any, ...]]


@pytest.fixture
def disk(tmp_path: Path, numbers: Numbers, place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The root of such a disk; the sessions lie on it, or on another device."""
    (tmp_path / "disk").mkdir()
    shown = tmp_path / "shown"
    shown.mkdir()
    module = "tests.support.disk_by_names"
    command = [sys.executable, "-m", module, str(tmp_path / "disk"), str(shown), numbers.value]
    with subprocess.Popen(command, cwd=CHECKOUT) as serving:
        try:
            wait_until(lambda: os.path.ismount(shown) or serving.poll() is not None, "the disk to be mounted")
            if serving.poll() is not None:
                do_without("no disk in user space can be mounted here")
            monkeypatch.setenv("YOLOFS_STATE", str((shown if place == "on it" else tmp_path) / "state"))
            yield shown
        finally:
            subprocess.run(["umount", "--lazy", shown], check=False)
            serving.kill()


def listing(project: bytes) -> Listing:
    """Return all that a directory is, but for inode numbers, and how many names files have: an undo
    cannot know there that two names belong to one file, and stages two.
    """
    return {path: what if what[0] == "dir" else what[:-2] for path, what in walk_tree(project)}


def made(project: Path) -> None:
    """Make a project, without hard links: where each name has a number of its own, nothing tells
    that names of base belong to one file.
    """
    project.mkdir()
    populate(bytes(project))
    for path in (project / "g").glob("other*"):
        path.unlink()


def expected_on(disk: Path) -> Listing:
    """Return what the work makes of a plain directory there."""
    made(disk / "plain")
    work(PlainDirectory(bytes(disk / "plain")))
    return listing(bytes(disk / "plain"))


def prepared(project: Path) -> Listing:
    """Make a project with work for every kind of step staged, and return what base is."""
    made(project)
    view = CoreDriver(bytes(project))
    work(view)
    view.close()
    return listing(bytes(project))


PLACES = pytest.mark.parametrize("place", ["on it", "elsewhere"])


@PLACES
@pytest.mark.parametrize("numbers", Numbers)
@pytest.mark.some(2)
def test_a_commit_on_a_disk_by_names_is_undone_and_done_again(disk: Path) -> None:
    project = disk / "project"
    expected, before = expected_on(disk), prepared(project)
    for _ in range(2):
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            commit(session)
        assert listing(bytes(project)) == expected
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, None))
        assert listing(bytes(project)) == before


WAYS: dict[str, Callable[[Session], object]] = {"finished": finish_interrupted, "taken back": roll_back_interrupted}


@PLACES
@pytest.mark.parametrize("numbers", Numbers)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.some(1)
def test_a_kill_at_any_line_leaves_what_can_be_ended(disk: Path, numbers: Numbers, place: str, way: str) -> None:
    expected = expected_on(disk)
    prepared(disk / "first")
    total = dies_at(0, bytes(disk / "first"), commit)
    interrupted = 0
    # most of the first lines come before anything was made
    for line in points(range(total // 2, total), "by names", numbers.value, place, way, some=POINTS):
        where = f"killed at line {line} of {total}"
        project = disk / str(line)
        before = prepared(project)
        dies_at(line, bytes(project), commit)
        if way == "taken back" and not has_way_back(bytes(project)):
            continue
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            interrupted += WAYS[way](session) is not None
        now = listing(bytes(project))
        if way == "taken back" or now != expected:
            assert now == before, where
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            try:
                commit(session)
            except ConflictError as error:
                raise AssertionError(f"{where}: {error.paths}") from error
        assert listing(bytes(project)) == expected, where
    assert interrupted


@PLACES
@pytest.mark.parametrize("numbers", Numbers)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.some(1)
def test_a_step_that_was_done_and_is_not_in_the_log_is_known(
    disk: Path, numbers: Numbers, place: str, way: str
) -> None:
    """A directory may have got another number with its new path, which only the log would tell."""
    expected = expected_on(disk)
    for lines in points(range(LINES), "not logged", numbers.value, place, way, some=3):
        project = disk / str(lines)
        before = prepared(project)
        assert dies_without_logging(lines, bytes(project))
        with Session.open(bytes(project), SessionAccess.WRITE) as session:
            assert WAYS[way](session) is not None
        assert listing(bytes(project)) == (before if way == "taken back" else expected), f"after {lines} lines"


def dies_without_logging(lines: int, project: bytes) -> bool:
    """Commit in a child that kills itself when it is to log a step, after so many; tell whether it
    came to that.
    """
    child = os.fork()
    if not child:
        add, left = step_log.Log.add, lines

        def count(log: step_log.Log, line: step_log.LoggedStep) -> None:
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            add(log, line)

        step_log.Log.add = count  # type: ignore[assignment,method-assign]  # in this child alone
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)
