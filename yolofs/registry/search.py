"""From a directory to the project that it lies in, and to the session of that project.

The search goes upwards.  Like git's search, it stops at the user's home, at mount points, and at a
directory that is neither the user's nor root's.  ``safe_directories`` in the user's own
``config.toml`` makes exceptions, like git's ``safe.directory``.  Only the registry tells, by
identity, which directory is a project.  Nothing in the tree does.
"""

from __future__ import annotations

import contextlib
import os
import stat

import msgspec

from yolofs.config.load import user_places
from yolofs.errors import NoSessionError, TrustError
from yolofs.paths import display, in_shell, is_below, is_in
from yolofs.registry.identity import DirectoryIdentity, identity_of
from yolofs.registry.private import user_name
from yolofs.registry.registry import Registry, SessionEntry
from yolofs.registry.state_directory import state_directory, user_home
from yolofs.system.own_names import JOURNAL, SESSION_LINK


class FoundProject(msgspec.Struct, frozen=True):
    """A project and its session."""

    project: bytes
    """Where the project is now, without links."""
    entry: SessionEntry
    """What the registry has of it."""

    @property
    def session(self) -> bytes:
        """The session's directory."""
        return self.entry.session_path

    @property
    def moved_from(self) -> bytes | None:
        """Where the project was when it was used last, if that was elsewhere."""
        return self.entry.project_path if self.entry.project_path != self.project else None


class EarlierLayout(msgspec.Struct, frozen=True):
    """A project whose session still lies in it, as earlier versions had it."""

    project: bytes


def session_of(project: bytes) -> FoundProject | None:
    """Return the session of the very directory ``project``, None if it has none.

    Raises:
        TrustError: the state directory could be changed by others.
        OSError: there is no such directory, or the registry cannot be read.
    """
    project = os.path.realpath(project)
    with Registry.open() as registry:
        return _at(registry, project, os.stat(project).st_ino)


def find(start: bytes) -> FoundProject | EarlierLayout:
    """Return the session of the nearest directory, ``start`` or above it, that has one.

    Raises:
        NoSessionError: there is none; the message says why, where that can be told.
        TrustError: ``start`` is somebody else's, or the state directory could be changed by others.
        OSError: the registry cannot be read.
    """
    start = directory = os.path.realpath(start)
    home = os.path.realpath(user_home())
    passed: list[bytes] = []
    device = os.stat(start).st_dev
    with Registry.open() as registry:
        while True:
            st = os.stat(directory)
            if st.st_dev != device:
                raise _not_found(registry, start, passed, f"the search stops at the mount point {display(passed[-1])}")
            if st.st_uid not in (0, os.geteuid()) and not is_safe_directory(directory):
                if not passed:
                    raise somebody_elses(directory, st.st_uid)
                why = f"the search stops at {display(directory)}, which belongs to {user_name(st.st_uid)}"
                raise _not_found(registry, start, passed, why)
            found = _at(registry, directory, st.st_ino)
            if found is not None:
                return found
            if has_earlier_layout(directory):
                return EarlierLayout(directory)
            passed.append(directory)
            parent = os.path.dirname(directory)
            if directory == home or parent == directory:
                raise _not_found(registry, start, passed, "")
            directory = parent


def gone_error(project: bytes) -> NoSessionError:
    """Return the error for a project whose directory was removed, or moved, since a daemon or a run
    began there.
    """
    hint = hint_of_gone(project) or "yolofs sessions"
    return NoSessionError(f"the project's directory, {display(project)}, is gone", hint=hint)


def hint_of_gone(directory: bytes) -> str:
    """Return what to do about the session of a project that was at ``directory`` or above it and is
    gone; empty if there was none.
    """
    with contextlib.suppress(OSError, TrustError), Registry.open() as registry:
        for entry in registry:
            if is_below(directory, entry.project_path) and not _is_still_there(entry):
                command = f"yolofs sessions --rebase DIR {entry.id}"
                return f"its session keeps what is staged; to go on in another directory: {command}"
    return ""


def session_above(project: bytes) -> FoundProject | None:
    """Return the session of a directory above ``project``, None if there is none to be found."""
    try:
        found = find(os.path.dirname(os.path.realpath(project)))
    except (NoSessionError, TrustError, OSError):
        return None
    return found if isinstance(found, FoundProject) and found.project != project else None


def has_earlier_layout(project: bytes) -> bool:
    """Tell whether a directory called ``.yolofs`` lies in a project that looks like a session of
    earlier versions.
    """
    path = os.path.join(project, SESSION_LINK)
    try:
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
    return is_directory and any(os.path.lexists(os.path.join(path, name)) for name in (JOURNAL, b"session.json"))


def is_safe_directory(path: bytes) -> bool:
    """Tell whether the user has named a directory, or one above it, as one in which others' files
    do no harm.
    """
    for name in user_places(user_home()).safe_directories:
        safe = os.path.realpath(os.path.expanduser(os.fsencode(name)))
        if name == "*" or is_in(path, safe):
            return True
    return False


def somebody_elses(path: bytes, uid: int) -> TrustError:
    """Return the error for a directory of another user."""
    others = "run it as that user"
    if os.geteuid() == 0:
        others = f"with that user's rights: yolofs --as-owner -C {in_shell(path)} …"
    return TrustError(
        f"{display(path)} belongs to {user_name(uid)}, and only the user who made a session may use it",
        hint=f"{others}; if it is yours all the same, name it in safe_directories in ~/.config/yolofs/config.toml",
    )


def _at(registry: Registry, directory: bytes, inode: int) -> FoundProject | None:
    """Return the session of one directory."""
    identity: DirectoryIdentity | None = None
    moved: FoundProject | None = None
    for entry in registry.of_inode(inode):
        identity = identity if identity is not None else identity_of(directory)
        if not entry.identity.is_same(identity) or (entry.is_about_to_move and has_earlier_layout(directory)):
            continue
        if entry.project_path == directory:
            return FoundProject(directory, entry)
        if _is_still_there(entry):  # the same directory by another path (a bind mount), or a clone of its disk
            if entry.identity.device == identity.device:
                return FoundProject(entry.project_path, entry)
        else:
            moved = FoundProject(directory, entry)
    return moved


def _is_still_there(entry: SessionEntry) -> bool:
    """Tell whether the project is where it was."""
    try:
        return entry.identity.is_same(identity_of(entry.project_path))
    except OSError:
        return False


def _not_found(registry: Registry, start: bytes, passed: list[bytes], why: str) -> NoSessionError:
    """Return the error for a search that found nothing in the directories that it passed."""
    by_id = {entry.id: entry for entry in registry}
    by_project = {entry.project_path: entry for entry in by_id.values()}
    for directory in passed:
        entry = by_project.get(directory)
        if entry is not None:
            return NoSessionError(
                f"another directory is at {display(directory)} now than when session {entry.id} was started there",
                hint=f"yolofs sessions --rebase . {entry.id} goes on here; yolofs init starts one of its own",
            )
        entry = by_id.get(_named_by_link(directory))
        if entry is not None:
            original = display(entry.project_path)
            gone = "" if _is_still_there(entry) else ", which is gone"
            goes_on = f"; yolofs sessions --rebase . {entry.id} goes on with that one here" if gone else ""
            return NoSessionError(
                f"{display(directory)} is a copy of {original}{gone}, and a copy has no session",
                hint=f"yolofs init starts one of its own{goes_on}",
            )
    message = f"there is no session in {display(start)} or above it"
    if registry.damaged:
        names = ", ".join(os.fsdecode(name.partition(b"-")[2]) for name in registry.damaged)
        return NoSessionError(
            f"{message}; but the registry's entry of {display(os.fsencode(names))} cannot be read",
            hint="if that one is about this project: yolofs sessions --rebase . ID; else: yolofs init",
        )
    elsewhere = next(filter(None, map(_linked_state, passed)), None)
    if elsewhere is not None:
        return NoSessionError(
            f"{message}, but {display(SESSION_LINK)} leads to one in {display(elsewhere)}, which is not looked into",
            hint=f"if you made it: YOLOFS_STATE={in_shell(elsewhere)}; else: yolofs init",
        )
    return NoSessionError(
        f"{message} ({why})" if why else message, hint="yolofs init; from elsewhere: yolofs -C PROJECT …"
    )


def _linked_state(directory: bytes) -> bytes | None:
    """Return the state directory that the convenience link in a directory names, for a message."""
    try:
        above, name = os.path.split(os.path.dirname(os.readlink(os.path.join(directory, SESSION_LINK))))
    except OSError:
        return None
    return above if name == b"sessions" and os.path.isabs(above) and above != state_directory() else None


def _named_by_link(directory: bytes) -> str:
    """Return the id that the convenience link in a directory names, for a message; nothing is
    looked for behind it.
    """
    try:
        return os.fsdecode(os.path.basename(os.readlink(os.path.join(directory, SESSION_LINK))))
    except OSError:
        return ""
