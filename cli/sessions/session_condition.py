"""How sessions are, looked at without opening one: for the list of all."""

from __future__ import annotations

import os
from enum import Enum

from yolofs.daemon.rpc.client import Client
from yolofs.errors import DaemonError, JournalError, SessionBusyError
from yolofs.journal.journal import Journal
from yolofs.paths import display
from yolofs.registry.identity import NO_IDENTITY, identity_of
from yolofs.registry.registry import SessionEntry
from yolofs.session.archive import interrupted_commit, journal_loss
from yolofs.session.opening.lock import command_at_work
from yolofs.state import checkpoint
from yolofs.system.own_names import JOURNAL
from yolofs.system.plain_files import open_plain

_HEADER_BYTES = 1 << 10
"""Above the length of a journal's first line."""


class Condition(Enum):
    """How a session and its project are; the value is the word for it."""

    MOUNTED = "mounted"
    READY = "ready"
    GONE = "gone"
    """The project is not at its path any more; if it was moved, the next command in it finds
    out.
    """
    UNLISTED = "unlisted"
    """The registry has no entry of it that can be read."""
    REPLACED = "replaced"
    """Another directory is at the project's path."""
    UNREACHABLE = "unreachable"
    """The session's own directory is not there: its disk, perhaps."""


def condition_of(entry: SessionEntry) -> Condition:
    """Return how a session and its project are."""
    if not os.path.isdir(entry.session_path):
        return Condition.UNREACHABLE
    if entry.identity == NO_IDENTITY:
        return Condition.UNLISTED
    try:
        is_there = entry.identity.is_same(identity_of(entry.project_path))
    except OSError:
        return Condition.GONE
    if not is_there:
        return Condition.REPLACED
    return Condition.MOUNTED if is_mounted(entry) else Condition.READY


def has_staged(entry: SessionEntry) -> bool:
    """Tell whether the journal of a session holds any record.  A missing journal counts as one that
    does.
    """
    try:
        with open(open_plain(_journal_of(entry), os.O_RDONLY), "rb") as journal:
            return bool(journal.readline(_HEADER_BYTES) and journal.read(1))
    except (FileNotFoundError, NotADirectoryError):
        return journal_loss(entry.session_path) is not None
    except OSError:  # something else is there now
        return True


def interrupted_number(entry: SessionEntry) -> int | None:
    """Return the number of the commit of a session that was interrupted, None if there is none, or
    a process is at work on it still.
    """
    directory = interrupted_commit(entry.session_path)
    if directory is not None and command_at_work(entry.session_path) is not None:
        return None
    return int(os.path.basename(directory)) if directory is not None else None


def damage_of(entry: SessionEntry) -> str | None:
    """Return, as a sentence, why the journal of a session cannot be read; None if it can, or the
    session is not there.

    Blocks while that is read from the last checkpoint on.
    """
    known = checkpoint.read(entry.session_path)
    try:
        Journal.open(_journal_of(entry), read_only=True, known=known.known if known is not None else None).close()
    except FileNotFoundError:
        lost = journal_loss(entry.session_path)
        return lost.message if lost is not None else None
    except JournalError as error:
        return error.message
    except OSError as error:
        return f"{display(_journal_of(entry))} cannot be read: {error.strerror}"
    return None


def _journal_of(entry: SessionEntry) -> bytes:
    return os.path.join(entry.session_path, JOURNAL)


def is_mounted(entry: SessionEntry) -> bool:
    """Tell whether a session is mounted."""
    try:
        client = Client.connect(entry.session_path)
    except DaemonError:  # it is there, and does not answer
        return True
    if client is None:
        return False
    client.close()
    return True


def place_of(entry: SessionEntry) -> str:
    """Return where the project of a session is, or was."""
    return display(entry.project_path) if entry.project else "(not known)"


def check_unmounted(entry: SessionEntry) -> None:
    """Check that a session is not mounted.

    Raises:
        SessionBusyError: it is.
    """
    if is_mounted(entry):
        raise SessionBusyError(f"session {entry.id} of {place_of(entry)} is mounted", hint=f"yolofs unmount {entry.id}")
