"""``yolofs unmount``."""

from __future__ import annotations

import os

import click

from yolofs.cli.completing import session_ids
from yolofs.cli.output import say
from yolofs.cli.project import find_project, session_directory, warn_of_half_commit
from yolofs.cli.which_project import session_entry
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file
from yolofs.daemon.rpc.daemon_process import end_unreachable
from yolofs.errors import DaemonError
from yolofs.registry.runtime import MOUNT_NAME, runtime_directory
from yolofs.session.lock import session_locked
from yolofs.system.mounts import detach_stale


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=session_ids)
@click.option("--force", is_flag=True, help="Unmount even while processes are inside; kill the daemon if it hangs.")
def command(session: str | None, force: bool) -> None:
    """Take the mount away.

    What is staged stays staged. unmount refuses while processes are at work inside; --force takes
    the mount away from under them. ID names any session, even one whose project is gone: `yolofs
    sessions` lists them.
    """
    if session is not None:
        _take_away(session_entry(session).session_path, force=force)
        return
    project = find_project(follow_move=False)
    _take_away(session_directory(project), force=force)
    warn_of_half_commit(project)


def _take_away(directory: bytes, *, force: bool) -> None:
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
