"""Dropping the dead generations, which the present view is not built from, and what only they have
staged.

The journal is written anew without their segments.  The others keep their order, names and times,
and get new numbers.  Where a travel went is no longer recorded.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.journal.journal_file import sync_directory_of
from yolofs.session.session import Session
from yolofs.state import checkpoint

NEW = b".next"
"""At the end of the name of the journal that is being written."""


def dead_generations(session: Session) -> int:
    """Return how many generations the present view is not built from."""
    return len(session.journal.markers) - (len(session.timeline.live_segments) - 1)


def drop_dead_generations(session: Session) -> int:
    """Write the journal of a session anew without its dead generations, and return how many these
    were.

    A mount of the session must be paused meanwhile.  Store inodes that no journal names any more
    are removed by the next :meth:`~yolofs.session.session.Session.collect`.

    Raises:
        CommitError, TrustError: a commit was interrupted.
        JournalError: the journal is damaged.
        OSError: the new one cannot be written; the old one stays.
    """
    session.check_no_interrupted_commit()
    count = dead_generations(session)
    if not count:
        return 0
    old = session.journal
    path, new = old.path, old.path + NEW
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    with Journal.create(new) as journal:
        for segment in session.timeline.live_segments:
            journal.append(*old.read_segment(segment))
            if segment <= len(old.markers):
                journal.append(old.markers[segment - 1].marker)
        journal.sync()
    checkpoint.remove(session.directory)
    os.rename(new, path)
    sync_directory_of(path)
    with contextlib.suppress(OSError):  # they were about the old one, as their key tells
        cuts.forget(path)
    session.reopen()
    return count
