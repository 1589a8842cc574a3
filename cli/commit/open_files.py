"""What programs go on writing to after a commit: they wait while it is made, and may have written
only a part of what they are about to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from yolofs.changes.changes import Change
from yolofs.cli.options import options
from yolofs.cli.output import say
from yolofs.cli.show.json_forms import text_fields
from yolofs.paths import display
from yolofs.session.session import Session

_MOST = 3


class OpenFile(NamedTuple):
    """A file that a program has open for writing."""

    path: bytes
    """Absolute, as the host names it."""
    name: str
    """The program's, printable."""
    pid: int


def find_open_files(session: Session, changes: Sequence[Change]) -> list[OpenFile]:
    """Return which of the changed files programs have open for writing; none inside a sandbox,
    where nobody is told of the host's programs.

    Asks the mount nothing, which may be paused.  Takes some milliseconds if something is open at
    all.
    """
    if (session.in_use is not None and not session.in_use) or options().guard is not None:
        return []
    paths = {session.base.path(change.path) for change in changes if change.new is not None}
    if not paths:
        return []
    from yolofs.daemon.rpc.daemon_files import mountpoint_path, read_daemon_file
    from yolofs.system.mount_users import UseKind, find_users  # hardly a commit comes here
    from yolofs.system.mounts import is_ours, mounts_at

    described = read_daemon_file(session.directory)
    entries = [entry for entry in mounts_at(mountpoint_path(described)) if is_ours(entry)] if described else []
    users = find_users(entries[-1], session.base.root) if entries else []
    found = (OpenFile(user.path, user.name, user.pid) for user in users if user.use is UseKind.WRITING)
    return list(dict.fromkeys(one for one in found if one.path in paths))


def open_files_told(files: Sequence[OpenFile]) -> list[str]:
    """Return a line for each program that has something open which a commit takes; of many only
    some.
    """
    lines = [
        f"note: {one.name}, process {one.pid}, has {display(one.path)} open for writing: what it writes from now on is "
        "staged anew"
        for one in files[:_MOST]
    ]
    if (more := len(files) - _MOST) > 0:
        are = "file of this commit is" if more == 1 else "files of this commit are"
        lines.append(f"note: {more} more {are} open for writing")
    return lines


def open_files_fields(files: Sequence[OpenFile]) -> list[dict[str, Any]]:
    """Return the files that are open for writing, for a JSON document."""
    return [{**text_fields("path", one.path), "name": one.name, "pid": one.pid} for one in files]


def say_open_files(files: Sequence[OpenFile]) -> None:
    """Say which files of a commit are open for writing."""
    for line in open_files_told(files):
        say(line)
