"""What programs go on writing to after a commit: they wait while it is made, and may have written
only a part of what they are about to.
"""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.changes.changes import Change
from yolofs.cli.output import say
from yolofs.paths import display
from yolofs.session.session import Session

_MOST = 3


def open_files_told(session: Session, taken: Sequence[Change]) -> list[str]:
    """Return a line for each program that has something open for writing which a commit takes.

    Asks the mount nothing, which may be paused.  Takes some milliseconds if something is open at
    all.
    """
    if session.in_use is not None and not session.in_use:
        return []
    paths = {session.base.path(change.path) for change in taken if change.new is not None}
    from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file
    from yolofs.system.mount_users import Use, find_users  # hardly a commit comes here
    from yolofs.system.mounts import is_ours, mounts_at

    described = read_daemon_file(session.directory)
    entries = [entry for entry in mounts_at(mountpoint_path(described)) if is_ours(entry)] if described else []
    users = find_users(entries[-1], session.base.root) if entries else []
    lines = dict.fromkeys(
        f"note: {user.name}, process {user.pid}, has {display(user.path)} open for writing: what it writes from "
        "now on is staged anew"
        for user in users
        if user.use is Use.WRITING and user.path in paths
    )
    return list(lines)


def say_open_files(lines: Sequence[str]) -> None:
    """Say these lines; of many only some."""
    for line in lines[:_MOST]:
        say(line)
    if len(lines) > _MOST:
        say(f"note: {len(lines) - _MOST} more files that were committed are open for writing")
