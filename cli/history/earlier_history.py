"""The history before the commits that are kept, and its parts that cannot be shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from yolofs.cli.output import say
from yolofs.errors import YolofsError
from yolofs.session.history.chapters import Chapter, chapters
from yolofs.session.session import Session


@contextlib.contextmanager
def chapters_told(session: Session) -> Iterator[list[Chapter]]:
    """Give the chapters of a session for the time of the block, oldest first, the one that goes on
    last.

    Says of which commits the journal is damaged or missing, if any is.
    """
    damaged: dict[int, str] = {}

    def note(number: int, error: YolofsError | OSError) -> None:
        damaged[number] = "missing" if isinstance(error, FileNotFoundError) else "damaged"

    with chapters(session, note) as found:
        if damaged:
            numbers = ", ".join(map(str, sorted(damaged)))
            how = " or ".join(sorted(set(damaged.values())))
            of_which = (
                f"commits {numbers} is not shown, as their journals are"
                if len(damaged) > 1
                else (f"commit {numbers} is not shown, as its journal is")
            )
            say(f"note: what was done before {of_which} {how}: yolofs doctor")
        yield found
