"""With many commits that are kept, a command reads no more of them than with few."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.counted import calls_of, opened
from yolofs.config.settings import KeepCommits
from yolofs.journal.records import Snapshot
from yolofs.paths import RelPath
from yolofs.session.dead_generations import dead_generations
from yolofs.session.history.chapters import chapters
from yolofs.session.history.named_states import named_state
from yolofs.session.history.retention import freed_by, surplus
from yolofs.session.undo import choose_commit, undo

FEW, MANY = 10, 30
AROUND = 8
"""So many of the last commits are read to find the one to undo."""


def view_of(base: Path) -> CoreDriver:
    """Return a view of a new directory in which each file to be written to has two names."""
    base.mkdir()
    for number in range(MANY):
        (base / f"{number}").write_text("base\n")
        os.link(base / f"{number}", base / f"{number}-linked")
    (base / "other").write_text("other\n")
    return CoreDriver(os.fsencode(base))


@pytest.fixture
def view(tmp_path: Path) -> Iterator[CoreDriver]:
    driver = view_of(tmp_path / "base")
    yield driver
    driver.close()


def commit(view: CoreDriver, numbers: range) -> None:
    """Make a commit for each of these numbers that writes to a file with two names in its place."""
    for number in numbers:
        view.append(b"%d" % number, b"more\n")
        view.commit()


def look(view: CoreDriver, path: bytes) -> Callable[[], str]:
    """Return what reads a file as it was after the first commit."""

    def read() -> str:
        files = named_state(view.session, "commit 1").files
        file = files.look(RelPath(path))
        assert file is not None
        with open(files.descriptor(file)) as content:
            return content.read()

    return read


def test_a_version_of_long_ago_takes_some_calls_for_each_commit_since(view: CoreDriver) -> None:
    commit(view, range(3))
    look(view, b"other")()  # imports call functions, too
    counts = []
    for first in (3, 7, 11):
        commit(view, range(first, first + 4))
        counts.append(calls_of(look(view, b"other")))
    assert counts[2] - counts[1] < 1.5 * (counts[1] - counts[0])
    assert [look(view, name)() for name in (b"0", b"1", b"5-linked", b"other")] == [
        "base\nmore\n",
        "base\n",
        "base\n",
        "other\n",
    ]


def test_a_version_is_found_over_more_commits_than_calls_can_be_nested(view: CoreDriver) -> None:
    commit(view, range(MANY))
    look(view, b"other")()  # imports nest calls, too
    limit, frame, depth = sys.getrecursionlimit(), sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 2 * MANY)
    try:
        assert look(view, b"5")() == "base\n"
    finally:
        sys.setrecursionlimit(limit)


def undo_last(view: CoreDriver) -> None:
    undo(view.session, choose_commit(view.session, None))


def foretell(view: CoreDriver) -> None:
    keep = KeepCommits(count=1_000_000, days=100_000, gib=1_000_000)
    freed_by(
        view.session, surplus(view.session.directory, keep, 0), 0, generations=bool(dead_generations(view.session))
    )


def opened_by(work: Callable[[CoreDriver], None], base: Path, count: int, *, is_first_undone: bool = False) -> int:
    """Return how many files of commits are opened, if there are so many commits."""
    view = view_of(base)
    if is_first_undone:
        view.create(b"first", b"first\n", 0o644)
        view.commit()
        undo_last(view)
        view.abort()
    commit(view, range(count))
    view.remount()
    foretell(view)  # which notes how much each of them takes
    with opened(Path(os.fsdecode(view.session.directory)) / "commits") as paths:
        work(view)
    view.session.close()
    return len(paths)


@pytest.mark.parametrize(("work", "each"), [(undo_last, 1), (foretell, 0)])
def test_no_more_of_many_commits_is_read_than_whether_each_is_an_undo(
    tmp_path: Path, work: Callable[[CoreDriver], None], each: int
) -> None:
    few, many = opened_by(work, tmp_path / "few", FEW), opened_by(work, tmp_path / "many", MANY)
    assert many - few <= each * (MANY - FEW) + AROUND


def test_an_undo_of_long_ago_has_the_last_one_read_no_more(tmp_path: Path) -> None:
    few, many = (opened_by(undo_last, tmp_path / f"{count}", count, is_first_undone=True) for count in (FEW, MANY))
    assert many - few <= MANY - FEW + AROUND


def undo_third(view: CoreDriver) -> None:
    undo(view.session, choose_commit(view.session, 3))


def test_an_undo_of_an_old_commit_reads_some_files_of_each_later_one(tmp_path: Path) -> None:
    few, many = (opened_by(undo_third, tmp_path / f"{count}", count) for count in (FEW, MANY))
    assert many - few <= 16 * (MANY - FEW)


def test_more_journals_are_read_than_files_may_be_open(view: CoreDriver) -> None:
    commit(view, range(MANY))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + MANY // 2, hard))
    damaged: list[int] = []
    try:
        with chapters(view.session, lambda number, _: damaged.append(number)) as found:
            assert [chapter.commit for chapter in found] == [*range(1, MANY + 1), None]
            assert all(not isinstance(at.marker, Snapshot) for chapter in found for at in chapter.journal.markers)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not damaged


READS_ALL = """
import os, resource, sys
from yolofs.session.history.chapters import chapters
from yolofs.session.session import Session, SessionAccess
with Session.open(os.fsencode(sys.argv[1]), SessionAccess.READ) as session:
    most = len(os.listdir("/proc/self/fd")) + int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with chapters(session, lambda number, _: print(number)):
        pass
"""


def test_a_journal_that_cannot_be_opened_beside_the_others_is_not_said_to_be_damaged(view: CoreDriver) -> None:
    commit(view, range(MANY))
    command = [sys.executable, "-P", "-c", READS_ALL, os.fsdecode(view.root), str(MANY // 2)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Too many open files" in done.stderr
    assert (done.returncode, done.stdout) == (1, "")
