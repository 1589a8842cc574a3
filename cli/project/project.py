"""Which project a command is about, and its session, opened the right way with or without a
mount.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Sequence

from yolofs.cli.options import start_directory
from yolofs.cli.output import warn
from yolofs.cli.project.connection import connected
from yolofs.cli.project.deferred_output import deferred_output
from yolofs.cli.project.which_project import find_project, session_directory
from yolofs.daemon.rpc.protocol import LoanKind, unquote
from yolofs.errors import DaemonError, UsageError, YolofsError
from yolofs.journal import cuts
from yolofs.paths import RelPath, display, is_below, is_in, split
from yolofs.session.archive import interrupted_commit
from yolofs.session.opening.lock import command_at_work
from yolofs.session.opening.root import known_root
from yolofs.session.session import Session, SessionAccess
from yolofs.session.state_files import StateFiles
from yolofs.state.view_symlinks import StateLinks
from yolofs.store.readers import reading_store
from yolofs.system import stop_signals
from yolofs.system.symlinks import follow_parent

__all__ = [
    "absolute_path",
    "changing",
    "find_project",
    "looking",
    "reading",
    "relative_paths",
    "session_directory",
]


@contextlib.contextmanager
def reading(project: bytes) -> Iterator[Session]:
    """Open a session to look at it; what programs in the mount have written by now is in it, and
    stays for the time of the block.
    """
    with reading_store(session_directory(project)):
        with connected(project) as client:
            if client is not None:
                client.flush()
        with looking(project) as session:
            yield session


@contextlib.contextmanager
def reading_whole(project: bytes) -> Iterator[Session]:
    """Open a session as :func:`reading`, for what has no meaning while a commit is interrupted: a
    preview of a commit, an undo or a removal of old commits, and bringing back.

    Raises:
        CommitError, TrustError: a commit was interrupted, and nothing can be told before that has
            an end.
    """
    if was_interrupted(project):
        with Session.open(project, SessionAccess.READ) as session:
            session.check_no_interrupted_commit()
    with reading(project) as session:
        yield session


def was_interrupted(project: bytes) -> bool:
    """Tell whether a commit was interrupted; one that a process is still at work on was not.

    Blocks until that has ended, where there is a mount.

    Raises:
        SessionBusyError: another process is at work, and does not end.
    """
    directory = session_directory(project)
    if interrupted_commit(directory) is None:
        return False
    with connected(project) as client:
        if client is None:
            at_work = command_at_work(directory)
            if at_work is not None:
                raise at_work.error
            return interrupted_commit(directory) is not None
        client.flush()  # answered when what was lent has come back
    return interrupted_commit(directory) is not None


@contextlib.contextmanager
def looking(project: bytes) -> Iterator[Session]:
    """Open a session to look at it as it is on the disk."""
    stop_signals.hear()
    with Session.open(project, SessionAccess.READ) as session:
        for warning in warnings_of(session):
            warn(warning)
        yield session


def warnings_of(session: Session) -> list[str]:
    """Return what is said of a session whoever looks at it."""
    found = list(_told_of_commit(session))
    if session.settings_problem:
        found.append(f"{session.settings_problem}; no mount and no commit until that is fixed")
    return found


def _told_of_commit(session: Session) -> Iterator[str]:
    """Give a line if base is half committed: by a process that goes on, or by one that is gone."""
    at_work = session.at_work
    if at_work is not None:
        root = display(session.base.root)
        yield f"{at_work.text}, so base ({root}) may be partly what the view was: {at_work.hint}"
        return
    found = session.interrupted()
    if found is not None:
        yield f"{found.text}: {found.hint}"


def warn_of_half_commit(project: bytes) -> None:
    """Say so if a commit was interrupted, or goes on; a session that cannot be opened is for other
    commands to complain of.
    """
    if interrupted_commit(session_directory(project)) is not None:
        with contextlib.suppress(YolofsError, OSError), Session.open(project, SessionAccess.READ) as session:
            for line in _told_of_commit(session):
                warn(line)


@contextlib.contextmanager
def writing(
    project: bytes, access: SessionAccess = SessionAccess.WRITE, *, command: str = "", needs_settings: bool = True
) -> Iterator[Session]:
    """Open a session to change it, and say so if its journal was found to have lost its end.

    ``command``: what others are told of it, if that is not the word on the command line;
    ``needs_settings`` as for :meth:`Session.open`.
    """
    with Session.open(project, access, command=_word() or command, needs_settings=needs_settings) as session:
        if session.settings_problem:
            warn(f"{session.settings_problem}; this command goes on without it")
        for cut in session.journal.cuts:
            warn(cuts.sentence(cut, session.journal.path))
        yield session


@contextlib.contextmanager
def changing(project: bytes, kind: LoanKind, *, needs_settings: bool = True) -> Iterator[tuple[Session, bool]]:
    """Open a session to commit or abort it, and tell whether it is mounted: the mount serves no
    request meanwhile.  ``needs_settings`` as for :meth:`Session.open`.

    From here on SIGTERM and SIGHUP are the same as Ctrl-C.

    Danger: nothing in the block may touch the mount; it would wait for itself.  What is written to
    stdout and stderr is held back until the end, where these lead into the mount.
    """
    stop_signals.catch()
    stop_signals.hear()
    with connected(project) as client:
        if client is None:
            with writing(project, command=kind.value, needs_settings=needs_settings) as session:
                yield session, False
            return
        is_done = False
        try:
            with (
                deferred_output(unquote(client.info().mountpoint)),
                client.lend(kind, _word() or kind.value) as in_use,
                writing(project, SessionAccess.LENT, needs_settings=needs_settings) as session,
            ):
                session.in_use = in_use
                yield session, True
                is_done = True
        except DaemonError as error:
            if not is_done:
                raise
            warn(f"it is done, but the mount cannot take the session back: {error.message}; {error.hint}")


def _word() -> str:
    """Return the word after `yolofs` on the command line, "" in another thread than the command's
    own, and of a command without click (:mod:`yolofs.cli.without_click`).
    """
    click = sys.modules.get("click")
    context = click.get_current_context(silent=True) if click is not None else None
    return (context.info_name or "") if context is not None else ""


def relative_paths(session: Session, paths: Sequence[bytes], states: Sequence[StateFiles] = ()) -> list[RelPath]:
    """Return the paths that a user typed, relative to base.

    A path in the mount stands for the same one in base.  A last component that is a symlink is not
    followed; those before it are, by base, and where base has nothing by the view.  No link is
    followed where one of the ``states`` (without them: the view) has a directory, if it shows
    something at the path: that is how lists name it.

    Raises:
        UsageError: one lies outside base, or is empty.
    """
    from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file

    described = read_daemon_file(session.directory)
    mountpoint = mountpoint_path(described) if described is not None else None
    return [_relative_path(session, path, mountpoint, states) for path in paths]


def _relative_path(session: Session, path: bytes, mountpoint: bytes | None, states: Sequence[StateFiles]) -> RelPath:
    full = _host_path(path, session.directory, mountpoint, session.base.root)
    typed = _by_links_of_base(path, full, mountpoint)
    if typed is not None:
        listed = _by_directories(session, typed, full, states, is_shown=True)
        if listed is not None:
            return listed
    relative = session.base.relative(full)
    if relative is None:
        raise UsageError(
            f"{display(path)} lies outside the base directory {display(session.base.root)}", hint="name a path below it"
        )
    return relative if session.base.has(split(relative)[0]) else _by_the_view(session, relative, path)


def _by_links_of_base(path: bytes, full: bytes, mountpoint: bytes | None) -> bytes | None:
    """Return a path that a user typed, absolute, with its links, if base's links have led it to
    ``full``; None if there are none, or it leads into the mount.
    """
    typed = os.path.join(start_directory(), path)
    if os.path.normpath(typed) == full or (mountpoint is not None and is_below(os.path.realpath(typed), mountpoint)):
        return None
    return typed


def _by_directories(
    session: Session, typed: bytes, full: bytes, states: Sequence[StateFiles] = (), *, is_shown: bool = False
) -> RelPath | None:
    """Return where an absolute path leads without those links of base in whose place a state has a
    directory; None if it goes by none of these, or, with ``is_shown``, nothing is shown there.
    """
    base = session.base
    for files in states or (StateFiles(session, session.state()),):

        def target(path: bytes, files: StateFiles = files) -> bytes | None:
            relative = base.relative(path)
            if not os.path.islink(path):
                return None
            file = files.look(relative) if relative is not None else None
            return None if file is not None and file.is_directory else os.readlink(path)

        place = follow_parent(typed, target).place
        relative = base.relative(place)
        if place != full and relative is not None and not (is_shown and files.look(relative) is None):
            return relative
    return None


def _by_the_view(session: Session, relative: RelPath, typed: bytes) -> RelPath:
    """Return a base path with those links followed that only the view has."""
    led_to = session.base.relative(_led_by_the_view(session, session.base.path(relative), typed))
    if led_to is None:
        raise UsageError(
            f"{display(typed)} leads out of {display(session.base.root)} by a link", hint="name a path below it"
        )
    return led_to


def _led_by_the_view(session: Session, path: bytes, typed: bytes) -> bytes:
    """Return where an absolute path leads by links that the view alone has, except for its last
    component.
    """
    links = StateLinks(session.state(), session.base, session.store)
    way = follow_parent(path, links.target_if_base_has_none)
    if way.is_circle:
        raise UsageError(f"{display(typed)}: {os.strerror(errno.ELOOP)}", hint="name the path without the links")
    return way.place


def absolute_path(project: bytes, path: bytes) -> bytes:
    """Return a path that a user typed as the host names it: absolute, and one in the mount as the
    same in base.

    A last component that is a symlink is not followed; those before it are, by base, and where base
    has nothing by the view.  No link is followed where the view has a directory.

    Raises:
        UsageError: it is empty, or its links lead round in a circle.
    """
    from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file, root_path

    directory = session_directory(project)
    described = read_daemon_file(directory)
    mountpoint, root = (mountpoint_path(described), root_path(described)) if described is not None else (None, b"/")
    full = _host_path(path, directory, mountpoint, root)
    base = known_root(directory)
    is_in_base = base is not None and is_in(full, os.path.realpath(base))
    typed = _by_links_of_base(path, full, mountpoint)
    if not is_in_base or (typed is None and os.path.lexists(os.path.dirname(full))):
        return full
    with looking(project) as session:
        listed = _by_directories(session, typed, full) if typed is not None else None
        if listed is not None:
            return session.base.path(listed)
        if os.path.lexists(os.path.dirname(full)):
            return full
        return _led_by_the_view(session, full, path)


def _is_link_to_mount(parent: bytes, name: bytes, directory: bytes) -> bool:
    """Tell whether a path is that of the link to the mountpoint, in the session's directory."""
    return name == b"mnt" and os.path.realpath(parent) == directory


def _host_path(path: bytes, directory: bytes, mountpoint: bytes | None, root: bytes) -> bytes:
    """Return the absolute path of what a user typed; a last component that is a symlink is not
    followed.
    """
    if not path:  # of a variable in a script that is not set, say
        raise UsageError("an empty path means nothing", hint="for the current directory: .")
    full = os.path.join(start_directory(), path).rstrip(b"/") or b"/"
    parent, name = os.path.split(full)
    if name in (b"", b".", b"..") or _is_link_to_mount(parent, name, directory):
        full = os.path.realpath(full)
    else:
        full = os.path.join(os.path.realpath(parent), name)
    if mountpoint is not None and is_below(full, mountpoint):
        full = os.path.join(root, full[len(mountpoint) + 1 :]).rstrip(b"/") or b"/"
    return full
