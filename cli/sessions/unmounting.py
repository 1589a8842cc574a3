"""Taking a session's mount away, also one whose daemon has died or does not answer."""

from __future__ import annotations

import os

from yolofs.cli.output import say
from yolofs.cli.project.left_daemons import left_daemons
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file
from yolofs.daemon.rpc.daemon_process import end_unreachable
from yolofs.errors import DaemonError
from yolofs.paths import display
from yolofs.registry.runtime import MOUNT_NAME, runtime_directory
from yolofs.session.opening.lock import session_locked
from yolofs.system.mounts import detach_stale


def take_away(directory: bytes, *, force: bool) -> None:
    """Take away the mount of the session in ``directory``, and say so; with ``force`` also while
    processes are at work in it, and if its daemon does not answer.

    Raises:
        BusyFilesError: processes are at work in it, and ``force`` is not given.
        DaemonError: the daemon does not answer, and ``force`` is not given, or did not end it.
    """
    try:
        client = Client.connect(directory)
    except DaemonError as error:
        if not (force and end_unreachable(directory)):
            raise
        _clean_up(directory)
        say(f"{error.message}; ended it, and took its mount away")
        return
    if client is not None:
        with client:
            if _stop(client, force=force):
                return
    if _clean_up(directory):
        say("took away the mount of a daemon that had died")
    else:
        say("not mounted; nothing to do")


def end_daemons_without_state(start: bytes) -> int:
    """End this user's daemons for the project at ``start`` or above it whose session is gone, as
    its disk was taken away.  Say so, and return how many there were.

    Raises:
        DaemonError: one does not end.
    """
    count = 0
    for left in left_daemons(start):
        if not _stop(left.client, force=True):
            detach_stale(os.path.join(left.runtime, MOUNT_NAME))
        say(
            f"ended the daemon, process {left.client.pid}, of a session of {display(left.project)} that is no longer"
            " here"
        )
        count += 1
    return count


def _stop(client: Client, *, force: bool) -> bool:
    """Stop the daemon and tell whether it went of its own accord."""
    try:
        if force:
            client.info()  # which is answered at once, or never
        client.stop(force=force)
    except DaemonError as error:
        if not force:
            raise
        client.kill()
        say(f"{error.message}; killed it")
        return False
    return True


def _clean_up(directory: bytes) -> int:
    """Take away what a dead daemon left mounted; return how many mounts that were."""
    described = read_daemon_file(directory)
    places = {os.path.join(runtime_directory(directory), MOUNT_NAME)}
    if described is not None:
        places.add(mountpoint_path(described))
    with session_locked(directory):  # so nobody serves these
        return sum(map(detach_stale, places))
