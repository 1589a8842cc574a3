"""The progress bar, on a terminal that is none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress, TaskID

from yolofs.cli import progress

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


def test_ctrl_c_while_the_bar_appears_leaves_the_cursor_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = io.StringIO()
    really_start = Progress.start

    def start(bar: Progress) -> None:
        really_start(bar)
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=seen, force_terminal=True))
    monkeypatch.setattr(Progress, "start", start)
    with pytest.raises(KeyboardInterrupt), progress.bar("working") as update:
        update(1, 5000)
    assert HIDDEN in seen.getvalue()
    assert seen.getvalue().rindex(SHOWN) > seen.getvalue().rindex(HIDDEN)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how much was done each time that the bar was told."""
    found: list[int] = []
    really_update = Progress.update

    def update(bar: Progress, task: TaskID, *, completed: int, total: int) -> None:
        found.append(completed)
        really_update(bar, task, completed=completed, total=total)

    monkeypatch.setattr(Progress, "update", update)
    return found


def test_of_many_things_the_bar_is_told_now_and_then_and_at_the_end(told: list[int]) -> None:
    with progress.bar("working") as update:
        for done in range(1, 20_001):
            update(done, 20_000)
    assert len(told) < 1000
    assert told[0] == 1
    assert told[-1] == 20_000


def test_the_progress_bar_moves_with_each_of_a_few_things(told: list[int]) -> None:
    """One of them may take long."""
    with progress.bar("working") as update:
        for done in range(1, 11):
            update(done, 10)
    assert told == list(range(1, 11))
