"""The progress bar, on a terminal that is none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress

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
