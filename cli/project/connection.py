"""The way to the daemon of a project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from yolofs.cli.output import warn
from yolofs.cli.project.which_project import session_directory
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.daemon_files import other_version
from yolofs.daemon.rpc.revision import REMOUNT
from yolofs.errors import DaemonError


@contextlib.contextmanager
def connected(project: bytes) -> Iterator[Client | None]:
    """Connect to the project's daemon for the time of the block; None if there is none."""
    client = Client.connect(session_directory(project))
    if client is None:
        yield None
        return
    with client:
        yield client


@contextlib.contextmanager
def connected_or_refused(project: bytes) -> Iterator[Client]:
    """Connect to the project's daemon for the time of the block.

    Raises:
        DaemonError: there is none.
    """
    with connected(project) as client:
        if client is None:
            raise DaemonError("the project is not mounted, so nothing is asked", hint="yolofs mount")
        yield client


def warn_of_other_version(client: Client) -> None:
    """Say so if the daemon is of another version than this command."""
    versions = other_version(client.described)
    if versions:
        warn(f"{versions}; nothing can be committed, undone or aborted until {REMOUNT}")
