"""A process of its own that looks for what must not be reached straight from base, in directories that are to be bound.

``python -I -S survey.py NICENESS DIRECTORY...`` writes a report for each directory: its path, and the paths of what was
found in it, with a NUL byte between them and two at the end.  Looked for are sockets and fifos, through which one
reaches the program at the other end although they lie in a read-only mount, and what belongs to sessions, which no view
shows.  What cannot be read is passed over: the sandbox has the same user and no more rights.

Why a process: looking at a hundred thousand names takes a second and holds the interpreter lock, which the daemon that
serves a mount cannot spare.  It gets along without yolofs, so that it starts at once.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

SESSION_LINK = b".yolofs"
JOURNAL = b"journal"
STATE_MARK = b".yolofs-state"
DISK_STATE = b".yolofs-"
"""These are those of :mod:`yolofs.marks`; the last one stands before a user's number."""
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
                if entry.name.startswith(SESSION_LINK):  # hardly any; all others are looked at as little as can be
                    if entry.name == STATE_MARK:
                        found.append(directory)
                        below = []
                        break
                    if _is_of_session(entry):
                        found.append(entry.path)
                        continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()) and _leads_out(entry.path):
                    found.append(entry.path)
            todo += below
    return found if len(found) <= _MOST else [top]


def _is_of_session(entry: os.DirEntry[bytes]) -> bool:
    """Tell whether it is a session, the link to one, or called as a user's state directory on a disk."""
    if entry.name == SESSION_LINK:
        return entry.is_symlink() or os.path.lexists(os.path.join(entry.path, JOURNAL))
    return entry.name.startswith(DISK_STATE) and entry.name[len(DISK_STATE) :].isdigit()


def _leads_out(path: bytes) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _write(report: bytes) -> None:
    while report:
        report = report[os.write(1, report) :]


def main(niceness: int, directories: Sequence[str]) -> None:
    """Report on each directory as soon as it is known."""
    os.nice(niceness)
    for directory in map(os.fsencode, directories):
        try:
            _write(b"\0".join((directory, *find(directory))) + b"\0\0")
        except BrokenPipeError:  # the daemon has been killed: nobody wants to know any more
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
