"""Removing a session with all that belongs to it."""

from __future__ import annotations

import os

from yolofs.registry.link import remove_link
from yolofs.registry.registry import SessionEntry
from yolofs.registry.start import unregister
from yolofs.registry.trust import forget_agreements as forget_agreements
from yolofs.session import run_tmp
from yolofs.session.opening.lock import session_locked
from yolofs.system.busy_trees import remove_tree


def forget_session(entry: SessionEntry) -> None:
    """Remove a session: what is staged, its history, what its commits keep, and the private
    ``/tmp`` of its runs.  Base and the project stay as they are.

    Raises:
        SessionBusyError: it is mounted, or in use.
        OSError: a part cannot be removed.
    """
    session = entry.session_path
    if os.path.isdir(session):
        with session_locked(session):
            unregister(entry)
            forget_agreements(session)
            run_tmp.remove(session)  # a run that its daemon has left alone may still write there
            remove_tree(session)
    else:
        unregister(entry)
    remove_link(entry.project_path, session)
