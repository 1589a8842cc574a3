"""A survey finds the same with an earlier one at hand as without, whatever happened to base between
the two.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.surveys import found, next_tick
from yolofs.daemon.runs.native_survey import load, save

NAMES = ("a", "b", ".yolofs", ".yolofs-7", ".yolofs-state", "sessions", "journal", "é", "new\nline")
PLACES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
OPERATIONS = st.tuples(
    st.sampled_from(("mkdir", "mkdir", "mkdir", "touch", "mkfifo", "link", "remove", "move", "exchange", "symlink")),
    PLACES,
    PLACES,
)


def carry_out(top: Path, operation: tuple[str, str, str]) -> None:
    """Do something to base; what cannot be done is left."""
    what, name, other = operation
    place, second = top / name, top / other
    with contextlib.suppress(OSError, shutil.Error):
        match what:
            case "mkdir":
                place.mkdir(parents=True)
            case "touch":
                place.touch()
            case "mkfifo":
                os.mkfifo(place)
            case "link":
                os.link(place, second)
            case "symlink":
                place.symlink_to(second)
            case "move":
                place.rename(second)
            case "remove":
                shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
            case "exchange":
                place.rename(top / "aside")
                try:
                    second.rename(place)
                finally:
                    (top / "aside").rename(second if not os.path.lexists(second) else place)


@contextlib.contextmanager
def directories() -> Iterator[tuple[Path, int]]:
    """Make a directory to look through, and one to keep a survey in."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "top").mkdir()
        (Path(name) / "state").mkdir()
        state = os.open(Path(name) / "state", os.O_RDONLY)
        try:
            yield Path(name) / "top", state
        finally:
            os.close(state)


@settings(deadline=None)
@given(st.lists(st.lists(OPERATIONS, min_size=1, max_size=8), min_size=2, max_size=6))
def test_a_survey_by_what_is_known_finds_what_a_fresh_one_finds(rounds: list[list[tuple[str, str, str]]]) -> None:
    with directories() as (top, state):
        for operations in rounds:
            for operation in operations:
                carry_out(top, operation)
            next_tick(top.parent)
            fresh, all_that_is_there = found({}, top)
            by_known, kept = found(load(state), top)
            assert by_known == fresh
            assert kept == all_that_is_there
            save(state, kept)
