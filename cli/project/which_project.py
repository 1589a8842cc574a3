"""Finds the project that a command is about, and its session.

Every command passes through here, so this imports little: what few commands need is imported late.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.cli.options import not_entered, options, start_directory
from yolofs.cli.output import say
from yolofs.errors import NoSessionError, SessionBusyError
from yolofs.paths import display
from yolofs.registry.identity import NO_IDENTITY
from yolofs.registry.registry import Registry, SessionEntry
from yolofs.registry.search import EarlierLayout, FoundProject, find, gone_error, session_of
from yolofs.registry.state_directory import SESSIONS, state_directory
from yolofs.session.opening.root import is_in_line, read_session_file
from yolofs.system.mounts import is_inside_mount
from yolofs.system.own_names import JOURNAL


def find_project(*, follow_move: bool = True) -> bytes:
    """Return the project that the command is about.

    A session with an earlier version's layout is first moved to the state directory.  With
    ``follow_move``, the session of a project that was moved goes on at its new path.

    Raises:
        NoSessionError: there is no session here.
        TrustError: this directory is somebody else's, or its session cannot be trusted.
        SessionBusyError: the session has to be moved, and is in use.
        YolofsError: this user may not enter the directory in which the command starts.
    """
    known = options().project
    if known is not None:
        return known
    start = start_directory()
    check_outside_mounts(start)
    try:
        found = find(start)
    except NoSessionError as error:
        if not os.access(start, os.X_OK, effective_ids=True):
            raise not_entered(start, is_start=True) from None
        raise _with_left_daemon(error, start) from None
    if isinstance(found, EarlierLayout):
        from yolofs.cli.project.adopting import adopt_harmless  # sessions of earlier versions are few

        found = adopt_harmless(found.project)
    if follow_move and not is_in_line(found):
        _follow(found)
    return found.project


def _with_left_daemon(error: NoSessionError, start: bytes) -> NoSessionError:
    """Return the error "no session"; it says how to end a daemon that still serves one, if there is
    one.
    """
    from yolofs.cli.project.left_daemons import linked_left_daemons  # most commands find their session

    for left in linked_left_daemons(start):
        return NoSessionError(
            f"{error.message}; but process {left.client.pid} still serves one of {display(left.project)} that is no"
            " longer here",
            hint=f"bring its state directory back, or end it: yolofs unmount --force; else: {error.hint}",
        )
    return error


def check_outside_mounts(directory: bytes) -> None:
    """Check that a directory lies in no yolofs mount, without a look there.

    Raises:
        NoSessionError: it does.
    """
    if is_inside_mount(directory):
        raise NoSessionError(
            f"{display(directory)} is inside a mount, where no session can be seen",
            hint="run yolofs from the project itself, or: yolofs -C PROJECT …",
        )


def session_directory(project: bytes) -> bytes:
    """Return the directory of the session of ``project``.

    Raises:
        NoSessionError: it has none, or the project is gone.
        TrustError: the state directory could be changed by others.
    """
    try:
        found = session_of(project)
    except FileNotFoundError:
        raise gone_error(project) from None
    if found is None:
        raise NoSessionError(f"there is no session in {display(project)}", hint="yolofs init")
    return found.session


def unregistered() -> list[SessionEntry]:
    """Return entries for sessions in the user's state directory that the registry has none of: it
    was damaged.
    """
    state = state_directory()
    with Registry.open() as registry:
        known = {entry.session_path for entry in registry}
    found = []
    with contextlib.suppress(OSError):
        for name in map(os.fsencode, os.listdir(os.path.join(state, SESSIONS))):
            session = os.path.join(state, SESSIONS, name)
            if session not in known and os.path.lexists(os.path.join(session, JOURNAL)):
                content = read_session_file(session)
                project = content.project_path if content is not None else b""
                found.append(SessionEntry.make(session, project, NO_IDENTITY))
    return found


def session_entry(session: str) -> SessionEntry:
    """Return what the registry has of the session with an id.

    Raises:
        NoSessionError: there is none.
    """
    with Registry.open() as registry:
        entries: list[SessionEntry] = [*registry, *unregistered()]
    for entry in entries:
        if entry.id == session:
            return entry
    raise NoSessionError(f"there is no session {session}", hint="yolofs sessions lists them")


def _follow(found: FoundProject) -> None:
    """Let a session go on where its project is now."""
    from yolofs.session.opening.moved_project import move_session  # projects are seldom moved

    before, now = display(found.entry.project_path), display(found.project)
    try:
        move_session(found)
    except SessionBusyError as error:
        raise SessionBusyError(
            f"{now} was {before}, where it is in use: {error.message}",
            hint="yolofs unmount, then the same command again",
        ) from None
    if found.moved_from is not None:
        say(f"{now} was {before}: its session goes on here, with all that is staged")
