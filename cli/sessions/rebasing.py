"""Letting a session go on with another directory, as its project is gone."""

from __future__ import annotations

import os

from yolofs.cli.output import say
from yolofs.cli.sessions.session_condition import Condition, check_unmounted, condition_of, place_of
from yolofs.errors import UsageError
from yolofs.paths import display, in_shell
from yolofs.registry.registry import SessionEntry
from yolofs.registry.search import FoundProject, session_of
from yolofs.registry.start import check_owner
from yolofs.session.opening.moved_project import move_session


def rebase(entry: SessionEntry, target: bytes) -> None:
    """Make the directory ``target`` the project of a session.

    Raises:
        UsageError: it is no directory, or has a session; or the session's project is still there.
        SessionBusyError: the session is mounted.
        TrustError: the directory is somebody else's.
    """
    target = os.path.realpath(target)
    if not os.path.isdir(target):
        raise UsageError(f"{display(target)} is not a directory", hint="name the one that the project is now")
    check_owner(target)
    other = session_of(target)
    if other is not None and other.entry.id != entry.id:
        raise UsageError(
            f"{display(target)} has a session of its own", hint=f"yolofs sessions --forget {other.entry.id} removes it"
        )
    if condition_of(entry) in (Condition.READY, Condition.MOUNTED) and entry.project_path != target:
        raise UsageError(
            f"{display(entry.project_path)} is still there, and its session stays with it",
            hint=f"yolofs init {in_shell(target)} starts one of its own",
        )
    check_unmounted(entry)
    before = place_of(entry)
    move_session(FoundProject(target, entry))
    say(f"session {entry.id} goes on in {display(target)} (before: {before}), with all that is staged")
