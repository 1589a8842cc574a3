"""Steps before a session is open: find it, and check that its journal and settings can be used."""

from __future__ import annotations

import os
import time

import msgspec

from yolofs.config.settings import Settings
from yolofs.errors import ConfigError, JournalError, NoSessionError, SessionBusyError, UsageError
from yolofs.journal import cuts
from yolofs.journal.journal import Journal, KnownBeginning
from yolofs.journal.journal_file import sync_directory_of
from yolofs.paths import display
from yolofs.registry.private import private_directory
from yolofs.registry.search import FoundProject, session_of
from yolofs.registry.trust import load_in_force
from yolofs.session.archive import finish_put_away, has_ended_journal
from yolofs.session.opening.lock import session_locked
from yolofs.session.opening.root import MOVED_JOURNAL, has_root, is_in_line, read_session_file, write_session_file
from yolofs.state import checkpoint
from yolofs.system.plain_files import is_there

_JOURNAL_WAIT_S = 10.0
"""How long another process may take from the end of one journal to the beginning of the next."""


def locate(project: bytes) -> FoundProject:
    """Return the session of the very directory ``project``, its own directory opened once and found
    safe.

    Raises:
        NoSessionError: it has none, or that is gone.
        TrustError: the session's directory could be changed by others.
    """
    found = session_of(project)
    if found is None:
        raise NoSessionError(f"there is no session in {display(project)}", hint="yolofs init")
    try:
        with private_directory(found.session):
            is_ready = is_in_line(found)
    except FileNotFoundError:
        raise NoSessionError(
            f"the session of {display(found.project)} is gone: {display(found.session)} does not exist",
            hint=f"mount the disk that it was on, or: yolofs sessions --forget {found.entry.id}",
        ) from None
    if not is_ready:
        raise UsageError(
            f"{display(found.project)} has been moved since its session was used last", hint="yolofs status"
        )
    return found


def finish_move(directory: bytes) -> None:
    """Put the journal of a moved project in its place, if the command that wrote it died before.

    The caller holds the session's lock.
    """
    content = read_session_file(directory)
    if content is None or not content.has_moved_journal:
        return
    moved = os.path.join(directory, MOVED_JOURNAL)
    if is_there(moved):
        checkpoint.remove(directory)
        os.rename(moved, os.path.join(directory, b"journal"))
        sync_directory_of(moved)
    write_session_file(directory, msgspec.structs.replace(content, has_moved_journal=False))


def open_journal(path: bytes, known: KnownBeginning | None, *, read_only: bool) -> Journal:
    """Open a session's journal, of whose beginning something may be ``known``.

    Raises:
        JournalError: it cannot be used, or a torn tail not be moved away.
        OSError: it cannot be read.
    """
    try:
        return Journal.open(path, read_only=read_only, known=known)
    except OSError as error:
        if read_only:
            raise
        place = os.fsencode(error.filename) if isinstance(error.filename, str | bytes) else path + cuts.TORN_SUFFIX
        raise JournalError(
            f"a torn tail of the journal cannot be moved away, and so stays: {display(place)}: {error.strerror}",
            hint="make it writable; yolofs doctor tells what is torn",
        ) from error


def wait_for_journal(directory: bytes, path: bytes) -> None:
    """Make sure that there is a journal, and none that has ended: a commit may have died before it
    began the next.

    Blocks, for some :data:`_JOURNAL_WAIT_S` seconds at the most.

    Raises:
        SessionBusyError: there is none after a while, and another process holds the lock.
    """
    deadline = time.monotonic() + _JOURNAL_WAIT_S
    while not is_there(path) or _has_moved_journal(directory) or has_ended_journal(directory):
        try:
            with session_locked(directory):
                finish_move(directory)
                finish_put_away(directory)
        except SessionBusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)  # between two looks at a condition with a deadline


def _has_moved_journal(directory: bytes) -> bool:
    content = read_session_file(directory)
    return content is not None and content.has_moved_journal


def load_settings(project: bytes, directory: bytes, *, may_be_wrong: bool) -> tuple[Settings, str]:
    """Return the settings in force, and what is wrong with them.

    Where they ``may_be_wrong``, the defaults stand in for them.

    Raises:
        ConfigError: they are wrong, and the defaults will not do.
    """
    try:
        return load_in_force(project, directory).settings, ""
    except ConfigError as error:
        if not may_be_wrong or not has_root(directory):
            error.hint = error.hint or "mend it; or, if a commit has brought it into base: yolofs undo"
            raise
        return Settings.defaults(), error.message
