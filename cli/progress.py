"""A progress bar on stderr.  Apart from :mod:`yolofs.cli.output` as rich takes a tenth of a second
to import.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_DELAY_S = 0.3
_MANY = 1000
"""Work on fewer things shows no bar if it is done within the delay, and each is told."""
_PAUSE_S = 0.05
"""How often the bar is told how far more things have come: to tell it takes half as long as to
commit a file.
"""


class _WhileItIsThere:
    """Stderr, but that nothing fails once its terminal is closed: the work goes on, or is taken
    back.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr  # in whose place rich puts something else as long as the bar is shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


@contextlib.contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to call with how much is done and how much there is; the bar goes away at the
    end.
    """
    console = Console(file=cast("IO[str]", _WhileItIsThere()))
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(label, total=None)
    begun = time.monotonic()
    is_shown = False
    told = 0.0

    def update(done: int, total: int) -> None:
        nonlocal is_shown, told
        now = time.monotonic()
        if total >= _MANY and done < total and now - told < _PAUSE_S:
            return
        told = now
        progress.update(task, completed=done, total=total)
        if not is_shown and (total >= _MANY or now - begun > _DELAY_S):
            is_shown = True  # before it is: Ctrl-C in between would leave the cursor hidden
            progress.start()

    try:
        yield update
    finally:
        if is_shown:
            progress.stop()
