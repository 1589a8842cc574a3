"""Starting a session: where it is to lie, and making it.

A session lies on the disk of its project if it can: then a commit only renames what it replaces,
and a copy-up may share blocks.  The place on another disk than that of
the state directory follows the freedesktop trash specification 1.0 with ``.yolofs-UID`` for
``.Trash-UID``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from yolofs.config.load import load_file, user_file
from yolofs.config.settings import UserSettings
from yolofs.errors import TrustError, UsageError
from yolofs.paths import display, is_below
from yolofs.registry.identity import lasting_identity_of
from yolofs.registry.private import ELSEWHERE
from yolofs.registry.registry import Registry, SessionEntry
from yolofs.registry.search import FoundProject, is_safe_directory, session_of, somebody_elses
from yolofs.registry.state_directory import (
    REGISTRY,
    SESSIONS,
    has_chosen_state,
    open_part,
    open_state,
    state_directory,
    state_of,
    user_home,
)
from yolofs.system.own_names import disk_state_name


class StartedSession(NamedTuple):
    """A session that was started, or was there already."""

    found: FoundProject
    is_new: bool
    copies_because: str = ""
    """Why its files lie on another disk than the project, so that they are copied where others are
    renamed.
    """


def start(project: bytes, state: bytes | None = None) -> StartedSession:
    """Start the session of a directory, unless it has one.

    ``state`` is the state directory that the user has named for this session.

    Raises:
        UsageError: ``project`` is no directory, or ``state`` lies in it.
        TrustError: it is somebody else's, or so is the state directory.
        OSError: it cannot be made.
    """
    project = os.path.realpath(project)
    if not os.path.isdir(project):
        raise UsageError(f"{display(project)} is not a directory", hint="name one: yolofs init DIR")
    check_owner(project)
    known = session_of(project)
    if known is not None:
        return StartedSession(known, is_new=False)
    place, why = choose_state(project, state)
    with Registry.open(make=True) as registry, registry.locked():
        known = session_of(project)
        if known is not None:  # by another command, just now: of two sessions one would be out of sight
            return StartedSession(known, is_new=False)
        session_id = os.urandom(6).hex().encode()
        session = os.path.join(place, SESSIONS, session_id)
        make_session(place, session_id)
        entry = SessionEntry.make(session, project, lasting_identity_of(project))
        register(entry, place)
    return StartedSession(FoundProject(project, entry), is_new=True, copies_because=why)


def check_owner(project: bytes) -> None:
    """Raise TrustError unless a directory is the user's, root's, or one that the user has named as
    safe.
    """
    owner = os.stat(project).st_uid
    if owner not in (0, os.geteuid()) and not is_safe_directory(project):
        raise somebody_elses(project, owner)


def make_session(state: bytes, session_id: bytes) -> None:
    """Make the directory of a session in a state directory, which is made, too.

    Raises:
        OSError: EEXIST if there is a session of that id; it cannot be made.
        TrustError, UsageError: as :func:`yolofs.registry.state_directory.open_state`.
    """
    state_fd = open_state(state, make=True)
    try:
        sessions = open_part(state_fd, SESSIONS)
    finally:
        os.close(state_fd)
    try:
        os.mkdir(session_id, 0o700, dir_fd=sessions)
    finally:
        os.close(sessions)


def register(entry: SessionEntry, state: bytes, *, instead_of: SessionEntry | None = None) -> None:
    """Write a session into the registry of the user's state directory, and into that of the one
    where it lies.
    """
    for place in dict.fromkeys((state, state_directory())):
        with Registry.open(place, make=True) as registry:
            registry.add(entry, instead_of=instead_of)


def unregister(entry: SessionEntry) -> None:
    """Take a session out of all registries that have it."""
    for place in dict.fromkeys((state_of(entry.session_path), state_directory())):
        try:
            with Registry.open(place) as registry:
                registry.remove(entry)
        except (OSError, TrustError):  # its disk is not there: nothing to take away
            continue


def choose_state(project: bytes, named: bytes | None) -> tuple[bytes, str]:
    """Return the state directory for the session of a new project, made; and why it is on another
    disk, if it is.

    Raises:
        UsageError: ``named`` lies in the project, or holds other things.
        TrustError: others could change it.
        ConfigError: the user's own file is not in order.
        OSError: it cannot be made.
    """
    if named is not None:
        if is_below(os.path.realpath(named), project):
            raise _in_project(named)
        _make(named)
        return named, ""
    own_file = user_file(user_home())
    load_file(own_file, display(own_file), UserSettings)  # a mistake in it may be about where the user wants it
    usual = state_directory()
    if is_below(os.path.realpath(usual), project) and not is_below(os.path.realpath(user_home()), project):
        raise _in_project(usual)
    _make(usual)
    device = os.stat(project).st_dev
    if os.stat(usual).st_dev == device:
        return usual, ""
    if not has_chosen_state():
        for directory in _places_on_disk(project, device):
            path = os.path.join(directory, disk_state_name(os.geteuid()))
            try:
                _make(path)
                return path, ""
            except (TrustError, UsageError, OSError):
                continue
    return usual, f"{display(usual)} is on another disk than the project, so files are copied instead of renamed"


def _in_project(state: bytes) -> UsageError:
    return UsageError(
        f"{display(state)} lies in the project, where git or an archive could put anything",
        hint="name a directory outside of it",
    )


def _make(state: bytes) -> None:
    try:
        fd = open_state(state, make=True)
        try:
            for part in (SESSIONS, REGISTRY):
                os.close(open_part(fd, part))
        finally:
            os.close(fd)
    except OSError as error:
        raise TrustError(
            f"{display(state)}, where sessions are to lie, cannot be made: {error.strerror}", hint=ELSEWHERE
        ) from error


def servers_of(device: int, mountinfo: Iterable[bytes]) -> set[int]:
    """Return the users by whose processes a disk is served, as the lines of
    ``/proc/self/mountinfo`` tell: proc(5).
    """
    number = b"%d:%d" % (os.major(device), os.minor(device))
    found: set[int] = set()
    for line in mountinfo:
        fields, _, rest = line.partition(b" - ")
        kind, *others = rest.split()
        if fields.split(b" ")[2] == number and kind.startswith(b"fuse"):
            options = b",".join(others).split(b",")
            found.update(int(option[8:]) for option in options if option.startswith(b"user_id="))
    return found


def _places_on_disk(project: bytes, device: int) -> Iterator[bytes]:
    """Yield where on the project's disk a state directory may lie: the top, and the topmost
    directory of the user.

    It does not lie in a work tree of git, which ``git clean`` empties, and into which others put
    files.  There is none on a disk that another user serves (FUSE), as that user makes up its
    owners and modes.
    """
    with open("/proc/self/mountinfo", "rb") as lines:
        if not servers_of(device, lines) <= {0, os.geteuid()}:
            return
    above: list[bytes] = []
    directory = project
    while (parent := os.path.dirname(directory)) != directory and os.stat(parent).st_dev == device:
        above.append(directory := parent)
    top_first = above[::-1]
    places = top_first[:1] + [path for path in top_first[1:] if os.stat(path).st_uid == os.geteuid()][:1]
    yield from (path for path in places if not os.path.lexists(os.path.join(path, b".git")))
