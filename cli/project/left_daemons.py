"""Daemons that still serve a project whose session is not here: its disk was taken away."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import unquote
from yolofs.errors import DaemonError
from yolofs.paths import is_in
from yolofs.registry.runtime import SOCKET_NAME, runtime_directory, runtime_root
from yolofs.system.own_names import SESSION_LINK


class LeftDaemon(NamedTuple):
    """One of them."""

    client: Client
    """Connected until the next daemon is asked for."""
    runtime: bytes
    """Its runtime directory."""
    project: bytes


def left_daemons(start: bytes) -> Iterator[LeftDaemon]:
    """Yield this user's daemons for the project at ``start`` or above it whose session is gone from
    its place.

    Blocks for seconds while one of the user's daemons, be it of another project, does not answer.
    """
    names: list[bytes] = []
    with contextlib.suppress(OSError):
        names = sorted(os.listdir(runtime_root()))
    yield from _left(start, (os.path.join(runtime_root(), name) for name in names))


def linked_left_daemons(start: bytes) -> Iterator[LeftDaemon]:
    """Yield those of them whose session the links in ``start`` and above it name; no other daemon
    is asked.
    """
    yield from _left(start, map(runtime_directory, _linked_sessions(start)))


def _linked_sessions(directory: bytes) -> Iterator[bytes]:
    while True:
        with contextlib.suppress(OSError):
            yield os.path.join(directory, os.readlink(os.path.join(directory, SESSION_LINK)))
        if directory == b"/":
            return
        directory = os.path.dirname(directory)


def _left(start: bytes, runtimes: Iterable[bytes]) -> Iterator[LeftDaemon]:
    for runtime in runtimes:
        try:
            client = Client(os.path.join(runtime, SOCKET_NAME))
        except OSError:
            continue
        with client:
            project = _left_project(client)
            if project is not None and is_in(start, project):
                yield LeftDaemon(client, runtime, project)


def _left_project(client: Client) -> bytes | None:
    """Return the project that a daemon serves, None if it is another user's or its session is
    there.
    """
    try:
        if client.uid != os.geteuid():
            return None
        info = client.info()
    except DaemonError:  # of another version, or it hangs: who knows whose it is
        return None
    is_gone = bool(info.session) and not os.path.lexists(unquote(info.session))
    return unquote(info.project) if is_gone else None
