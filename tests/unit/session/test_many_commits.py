"""With many commits that are kept, a command reads no more of them than with few."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.counted import calls_of
from yolofs.paths import RelPath
from yolofs.session.named_states import named_state

MANY = 30


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
