"""A process of its own that looks for what must not be reached straight from base, in directories
that are to be bound.

``python -I -S survey.py NICENESS DIRECTORY...`` writes a report for each directory: its path, and
the paths of what was found in it, with a NUL byte between them and two at the end.  Looked for are
sockets and fifos, through which one reaches the program at the other end although they lie in a
read-only mount, and what belongs to sessions, which no view shows.  What cannot be read is passed
over: the sandbox has the same user and no more rights.

Why a process: looking at a hundred thousand names takes a second and holds the interpreter lock,
which the daemon that serves a mount cannot spare.  It gets along without yolofs, so that it starts
at once.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

SESSION_LINK = b".yolofs"
JOURNAL = b"journal"
STATE_MARK = b".yolofs-state"
SESSIONS = b"sessions"
DISK_STATE = b".yolofs-"
"""These are those of :mod:`yolofs.system.marks`; the last one stands before a user's number."""
_MOST = 50
"""Of so many each is told."""


def find(top: bytes) -> list[bytes]:
    """Return the paths below ``top`` that must not be reached; ``top`` itself if there are many."""
    found: list[bytes] = []
    todo = [] if os.path.islink(top) else [top]
    while todo and len(found) <= _MOST:
        directory = todo.pop()
        try:
            entries = os.scandir(directory)
        except OSError:
            continue
        with entries:
            below: list[bytes] = []
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name == SESSIONS and os.path.lexists(os.path.join(directory, STATE_MARK)):
                        found.append(directory)
                        below = []
                        break
                    is_ours = entry.name.startswith(SESSION_LINK) and _is_of_session(entry)
                    (found if is_ours else below).append(entry.path)
                elif not entry.is_file(follow_symlinks=False) and _leads_out(entry):  # the name of a file says nothing
                    found.append(entry.path)
            todo += below
    return found if len(found) <= _MOST else [top]


def _is_of_session(entry: os.DirEntry[bytes]) -> bool:
    """Tell whether a directory is a session, or called as a user's state directory on a disk."""
    if entry.name == SESSION_LINK:
        return os.path.lexists(os.path.join(entry.path, JOURNAL))
    return entry.name.startswith(DISK_STATE) and entry.name[len(DISK_STATE) :].isdigit()


def _leads_out(entry: os.DirEntry[bytes]) -> bool:
    """Tell whether somebody else is at the other end, or it is the link to a session."""
    if entry.is_symlink():
        return entry.name == SESSION_LINK
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def write(report: bytes) -> None:
    """Write a report to stdout, all of it."""
    while report:
        report = report[os.write(1, report) :]


def main(niceness: int, directories: Sequence[str]) -> None:
    """Report on each directory as soon as it is known."""
    os.nice(niceness)
    for directory in map(os.fsencode, directories):
        try:
            write(b"\0".join((directory, *find(directory))) + b"\0\0")
        except BrokenPipeError:  # the daemon has been killed: nobody wants to know any more
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
