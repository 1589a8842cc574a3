"""Dropping the dead generations, which the present view is not built from, and what only they have
staged.

The journal is written anew without their segments.  The others keep their order, names and times,
and get new numbers.  Where a travel went is no longer recorded.
"""

from __future__ import annotations

import contextlib
import errno
import os
from functools import partial

from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.journal.journal_file import sync_directory_of
from yolofs.journal.journal_length import LENGTH_SUFFIX, in_reserve
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
    try:
        _replace(session, new)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        old.give_back()
        in_reserve(path, partial(_replace, session, new, is_full=True))
    sync_directory_of(path)
    with contextlib.suppress(OSError):  # they were about the old one, as their key tells
        cuts.forget(path)
    session.reopen()
    return count


def _replace(session: Session, new: bytes, *, is_full: bool = False) -> None:
    """Write the journal of the live generations and put it in the place of the other one; where the
    disk ``is_full`` with no room ahead of its end.
    """
    old = session.journal
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    try:
        with Journal.create(new, spare=old.path + LENGTH_SUFFIX if is_full else None) as journal:
            if is_full:
                journal.take_no_room()
            for segment in session.timeline.live_segments:
                journal.append(*old.read_segment(segment))
                if segment <= len(old.markers):
                    journal.append(old.markers[segment - 1].marker)
            journal.sync()
    except BaseException:
        with contextlib.suppress(OSError):  # on a full disk it would be in the way
            os.unlink(new)
        raise
    checkpoint.remove(session.directory)
    os.rename(new, old.path)
