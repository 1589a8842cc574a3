"""Which of some changes are marked, as the environment of whoever looks or commits has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from yolofs.changes import Change
from yolofs.session import Session

if TYPE_CHECKING:
    from yolofs.commands import Marker, Marks


def marker(session: Session) -> Marker:
    """Return what marks the changes of a session."""
    from yolofs.commands import Marker, SearchPath  # most runs change nothing
    from yolofs.daemon.files import mountpoint_path, read_daemon_file

    described = read_daemon_file(session.directory)
    mountpoint = mountpoint_path(described) if described is not None else None
    return Marker(SearchPath.of_environment(session.base, mountpoint))


def marks_of(session: Session, changes: Sequence[Change]) -> Marks:
    """Return the marks of all changes between two states."""
    return marker(session).marks(changes) if changes else {}
