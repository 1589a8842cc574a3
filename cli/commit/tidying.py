"""Removing old commits that are no longer kept: by ``yolofs gc``, and after each commit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from yolofs.cli.output import warn
from yolofs.config.load import keep_of, user_keep_commits
from yolofs.config.settings import KeepCommits
from yolofs.errors import YolofsError, reason
from yolofs.session.ended_commits import EndedCommit
from yolofs.session.retention import put_aside, remove_gone, surplus
from yolofs.session.session import Session


def surplus_of(session: Session, project: KeepCommits | None = None) -> list[EndedCommit]:
    """Return the commits of a session that are not kept any more, by what its project says and the
    user.

    Raises:
        ConfigError: the user's own file is not in order, so nobody knows how long they want them.
        TrustError: the state directory is not the user's alone.
    """
    keep = keep_of(project if project is not None else session.settings.keep_commits, user_keep_commits())
    return surplus(session.directory, keep, time.time_ns())


def tidy(session: Session) -> Sequence[EndedCommit]:
    """After a commit, set aside the commits that are no longer kept.  An error here is only
    reported.
    """
    try:
        gone = surplus_of(session)
        put_aside(gone)
    except (YolofsError, OSError) as error:
        warn(f"older commits were not removed: {error.message if isinstance(error, YolofsError) else reason(error)}")
        return ()
    return gone


def remove_tidied(directory: bytes) -> None:
    """Remove what was set aside.  What cannot be removed now is removed by a later call."""
    with contextlib.suppress(OSError):
        remove_gone(directory)
