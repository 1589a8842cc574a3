"""Starting a session in a directory, and writing the file for its settings."""

from __future__ import annotations

import contextlib
import os

from yolofs.cli.output import say, warn
from yolofs.cli.project.adopting import adopt, adopt_harmless
from yolofs.cli.project.which_project import unregistered
from yolofs.config.load import FILE_NAME
from yolofs.errors import UsageError
from yolofs.paths import display, in_shell
from yolofs.registry.search import has_earlier_layout, session_above, session_of
from yolofs.session.session import Session
from yolofs.system.git_exclude import exclude_from_git

SETTINGS = b"""\
# Settings of yolofs for this project; every value here is the default, and yolofs never writes to this file.
# All of them: docs/reference/config.md, or .yolofs.toml.example in the source.

# The base directory, which the view shows: absolute, below ~, or relative to this file.
#root = "/"

[rules]
# What programs in the view may do with a path: allow, read-only, write-ask, ask, deny or hidden.
# The project is open and credentials are hidden without any rule here: docs/reference/preset.md.
#"vendor"  = "read-only"
#"~/notes" = "allow"
"""
"""What a new .yolofs.toml says."""


def start(project: bytes, state: bytes | None, is_adopted: bool) -> None:
    """Start the session of ``project`` in the state directory ``state`` (None: the usual one), and
    say so.  With ``is_adopted`` take over the one that an earlier version left.

    Raises:
        UsageError: there is a session already, and the options ask for another; or there is none to
            take over.
    """
    place = display(project)
    if has_earlier_layout(project) and session_of(project) is None:
        (adopt if is_adopted else adopt_harmless)(project, state)
        return
    if is_adopted:
        raise UsageError(f"no earlier version has left a session in {place}", hint="yolofs init")
    lost = next((entry for entry in unregistered() if entry.project_path == project), None)
    if lost is not None:
        raise UsageError(
            f"{place} has session {lost.id}, which the registry no longer knows",
            hint=f"yolofs sessions --rebase {in_shell(project)} {lost.id}, or yolofs sessions --forget {lost.id}",
        )
    started = Session.create(project, state)
    if not started.is_new:
        if state is not None:
            raise UsageError(
                f"there is a session in {place} already, which stays where it is",
                hint="--state is for a new one: yolofs sessions --forget removes the old one",
            )
        say(f"there is a session in {place} already; nothing changed")
        return
    say(f"started a session in {place}")
    if started.copies_because:
        say(started.copies_because)
    above = session_above(project)
    if above is not None:
        warn(f"{display(above.project)} above it has a session, too; for what is in {place} this one counts now")
    repository = _repository_above(project)
    if repository is not None:
        say(
            f"note: git's repository is {display(repository)}, outside of the project: git has to ask there;"
            f" yolofs init {in_shell(repository)} starts a session for all of it"
        )


def offer_settings(project: bytes) -> None:
    """Write the settings file if there is none, have git ignore it, and say so; if it cannot be
    written, warn.
    """
    name = os.fsencode(FILE_NAME)
    try:
        if write_settings(os.path.join(project, name)):
            say(f"wrote {FILE_NAME}, for settings and rules of this project; it has none yet")
            if exclude_from_git(project, name):
                say(f"git ignores it, by a line in .git/info/exclude; to share it: git add -f {FILE_NAME}")
    except OSError as error:  # a project that one may only read can be worked on in a view all the same
        warn(f"{FILE_NAME} cannot be written: {error.strerror}; without it all settings are the default")


def _repository_above(project: bytes) -> bytes | None:
    """Return the nearest directory above a project that is a git repository, None if none is, or
    the project is one itself.
    """
    at = project
    while not os.path.lexists(os.path.join(at, b".git")):
        if at == b"/":
            return None
        at = os.path.dirname(at)
    return at if at != project else None


def write_settings(path: bytes) -> bool:
    """Write the settings file durably, if there is none; return whether there was none.

    Raises:
        OSError: it cannot be written.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        with open(fd, "wb") as file:
            file.write(SETTINGS)
            file.flush()
            os.fsync(fd)
    except OSError:  # no empty file is left, which a later init would take for the user's
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    return True
