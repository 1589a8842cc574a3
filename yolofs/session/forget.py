"""Removing a session with all that belongs to it."""

from __future__ import annotations

import os

from yolofs.commit.trees import remove_tree
from yolofs.session import locked
from yolofs.sessions.link import remove_link
from yolofs.sessions.registry import Entry
from yolofs.sessions.start import unregister
from yolofs.sessions.trust import forget as forget_agreements


def forget(entry: Entry) -> None:
    """Remove a session: what is staged, its history and what its commits keep.  Base and the project stay as they are.

    Raises:
        SessionBusyError: it is mounted, or in use.
        OSError: a part cannot be removed.
    """
    session = entry.session_path
    if os.path.isdir(session):
        with locked(session):
            unregister(entry)
            forget_agreements(session)
            remove_tree(session)
    else:
        unregister(entry)
    remove_link(entry.project_path, session)
