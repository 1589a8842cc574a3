"""What happened before the commits that are kept, and which of it can't be shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from yolofs.cli.output import say
from yolofs.session.history import Chapter, chapters
from yolofs.session.session import Session


@contextlib.contextmanager
def chapters_told(session: Session) -> Iterator[list[Chapter]]:
    """Give the chapters of a session for the time of the block, oldest first, the one that goes on
    last.

    Says of which commits the journal is damaged, if any is.
    """
    damaged: list[int] = []
    with chapters(session, lambda number, _: damaged.append(number)) as found:
        if damaged:
            numbers = ", ".join(map(str, sorted(damaged)))
            many = len(damaged) > 1
            of_which = (
                f"commits {numbers} is not shown, as their journals are"
                if many
                else (f"commit {numbers} is not shown, as its journal is")
            )
            say(f"note: what was done before {of_which} damaged: yolofs doctor")
        yield found
