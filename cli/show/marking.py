"""Which of some changes are marked, by the environment of the command that looks or commits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yolofs.changes.changes import Change
from yolofs.config.load import user_host_code
from yolofs.errors import ConfigError
from yolofs.registry.runtime import runtime_roots
from yolofs.registry.state_directory import state_directory, state_of
from yolofs.session.session import Session
from yolofs.store.interfaces import StoreFiles

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks
    from yolofs.hostcode.mark_finder import MarkFinder


def mark_finder(session: Session, *, is_to_commit: bool = False, store: StoreFiles | None = None) -> MarkFinder:
    """Return what marks the changes of a session; ``store`` has their files, if not the session's.

    Raises:
        ConfigError: the user's own file of settings, which may name more such files, is wrong, and
            ``is_to_commit``.  A command that only looks reports that elsewhere.
    """
    from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file
    from yolofs.hostcode.code_files import CodeFileTable, FileMarkFinder  # most runs change nothing
    from yolofs.hostcode.commands import SearchPath
    from yolofs.hostcode.mark_finder import MarkFinder

    base = session.base
    described = read_daemon_file(session.directory)
    mountpoint = mountpoint_path(described) if described is not None else None
    home = os.path.abspath(os.path.expanduser(b"~"))
    more = session.settings.host_code
    try:
        more += user_host_code(home)
    except ConfigError:
        if is_to_commit:
            raise
    states = (state_directory(), state_of(session.directory))
    table = CodeFileTable(base, session.project, home, more, mountpoint, runtime_roots(), states)
    search = SearchPath.of_environment(base, mountpoint)
    files = store if store is not None else session.store
    return MarkFinder(search, lambda changes: FileMarkFinder(table, base, files, changes))


def marks_of(session: Session, changes: Sequence[Change], store: StoreFiles | None = None) -> Marks:
    """Return the marks of all changes between two states, as :func:`mark_finder` has them."""
    return mark_finder(session, store=store).marks(changes) if changes else {}
