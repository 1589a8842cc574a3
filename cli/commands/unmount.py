"""``yolofs unmount``."""

from __future__ import annotations

import click

from yolofs.cli.completion.completing import session_ids
from yolofs.cli.options import start_directory
from yolofs.cli.project.project import find_project, session_directory, warn_of_half_commit
from yolofs.cli.project.which_project import session_entry
from yolofs.cli.sessions.unmounting import end_daemons_without_state, take_away
from yolofs.errors import NoSessionError


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=session_ids)
@click.option("--force", is_flag=True, help="Unmount even while processes are inside; kill the daemon if it hangs.")
def command(session: str | None, force: bool) -> None:
    """Take the mount away.

    What is staged stays staged. unmount refuses while processes are at work inside; --force takes
    the mount away from under them, and ends a daemon whose session's disk has been taken away. ID
    names any session, even one whose project is gone: `yolofs sessions` lists them.
    """
    if session is not None:
        take_away(session_entry(session).session_path, force=force)
        return
    try:
        project = find_project(follow_move=False)
        directory = session_directory(project)
    except NoSessionError:
        if force and end_daemons_without_state(start_directory()):
            return
        raise
    take_away(directory, force=force)
    warn_of_half_commit(project)
