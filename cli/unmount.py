"""``yolofs unmount``."""

from __future__ import annotations

import os

import click

from yolofs.cli.output import say
from yolofs.cli.project import connected, find_project, session_directory
from yolofs.daemon.client import Client
from yolofs.daemon.files import mountpoint_path, read_daemon_file
from yolofs.daemon.mounts import detach_stale
from yolofs.errors import DaemonError
from yolofs.runtime import MOUNT_NAME, runtime_directory
from yolofs.session import locked


@click.command()
@click.option("--force", is_flag=True, help="Also while processes are inside, and if the daemon hangs: it is killed.")
def command(force: bool) -> None:
    """Take the mount away.

    What is staged stays staged. Refuses while processes are at work inside; --force takes the mount away from under
    them.
    """
    project = find_project()
    with connected(project) as client:
        if client is not None and _stop(client, force=force):
            return
    if _clean_up(project):
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


def _clean_up(project: bytes) -> int:
    """Take away what a dead daemon left mounted; return how many mounts that were."""
    directory = session_directory(project)
    described = read_daemon_file(directory)
    places = {os.path.join(runtime_directory(directory), MOUNT_NAME)}
    if described is not None:
        places.add(mountpoint_path(described))
    with locked(directory):  # so nobody serves these
        return sum(map(detach_stale, places))
