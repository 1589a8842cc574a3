"""Bringing many paths back, or dropping many changes, takes as long for each as with few."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.counted import calls_of
from yolofs.paths import RelPath
from yolofs.session.history.named_states import named_state
from yolofs.session.restore import restore
from yolofs.session.selecting import Hunks, drop_hunks
from yolofs.state.tree import Tree

MOST_GROWTH = 2.3
"""How many times as many calls twice as many paths may take; four times, if each looks at each."""


def restored(root: Path, number: int) -> int:
    """Bring back a file in each of so many new directories."""
    root.mkdir()
    view = CoreDriver(os.fsencode(root))
    paths = [RelPath(b"dir%d/file" % one) for one in range(number)]
    for path in paths:
        view.mkdir(os.path.dirname(path), 0o755)
        view.create(path, b"first\n", 0o644)
    view.snapshot()
    for path in paths:
        view.overwrite(path, b"second\n")
    count = calls_of(lambda: restore(view.session, named_state(view.session, "1"), paths, b"restored"))
    view.close()
    return count


def dropped(root: Path, number: int) -> int:
    """Drop every second deletion of so many directories."""
    root.mkdir()
    view = CoreDriver(os.fsencode(root))
    for one in range(number):
        (root / f"dir{one}").mkdir()
        (root / f"dir{one}/file").write_text("base\n")
        view.unlink(b"dir%d/file" % one)
        view.rmdir(b"dir%d" % one)
    half = {b"dir%d" % one for one in range(0, number, 2)}
    files = [file for file in Hunks(view.session, Tree()).files() if file.path.split(b"/")[0] in half]
    picks = {hunk.id: None for file in files for hunk in file.hunks}
    assert len(picks) == number
    count = calls_of(lambda: drop_hunks(view.session, Tree(), picks, b"dropped"))
    view.close()
    return count


@pytest.mark.parametrize("work", [restored, dropped])
def test_twice_as_many_paths_take_twice_as_long_to_restore_or_drop(
    tmp_path: Path, work: Callable[[Path, int], int]
) -> None:
    few, many = work(tmp_path / "few", 100), work(tmp_path / "many", 200)
    assert many < MOST_GROWTH * few
