"""What a plan that has lain on the disk may not do, though its seal fits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.commit.plan.plan import Create, Plan
from yolofs.commit.plan.recheck import find_obstacle, find_problem
from yolofs.paths import RelPath, StoreIno
from yolofs.store.base import Base
from yolofs.store.store import Store


@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        (b"home/state", True),
        (b"home/state/key", True),
        (b"home/state/sessions/x/journal", True),
        (b"home/state2", False),
        (b"home/other/state", False),
        (b"home", False),
    ],
)
@pytest.mark.parametrize("done", [0, 1])
def test_nothing_is_committed_into_a_closed_directory(tmp_path: Path, path: bytes, is_refused: bool, done: int) -> None:
    """Whether the step is done already or not: it tells that the plan is none of ours."""
    state = tmp_path / "base/home/state"
    state.mkdir(parents=True)
    store = Store(os.fsencode(tmp_path / "store"))
    Path(os.fsdecode(store.path(1))).parent.mkdir(parents=True)
    Path(os.fsdecode(store.path(1))).write_text("content")
    base = Base(os.fsencode(tmp_path / "base"))
    plan = Plan(base.root, (Create(RelPath(path), StoreIno(1), 1, 7, 1),))
    closed = [os.fsencode(state), b"/elsewhere"]
    problem = find_problem(plan, base, closed=closed) or find_obstacle(plan, base, store, done=done)
    expected = f"its plan has {os.fsdecode(path)}, where no view and no commit may do anything" if is_refused else ""
    assert problem == expected


def test_a_base_that_is_closed_itself_takes_nothing(tmp_path: Path) -> None:
    base = Base(os.fsencode(tmp_path))
    plan = Plan(base.root, (Create(RelPath(b"x"), StoreIno(1), 1, 1, 1),))
    assert "its plan has x" in find_problem(plan, base, closed=[base.root])
