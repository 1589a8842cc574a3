"""The convenience link ``.yolofs`` in a project: to look around.  Nothing is read through it, so it
does no harm if somebody else changes it.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.system.own_names import SESSION_LINK


def put_link(project: bytes, session: bytes) -> bool:
    """Make sure that ``.yolofs`` in a project leads to its session; return whether it does.

    What is no link there stays: it is somebody else's.
    """
    path = os.path.join(project, SESSION_LINK)
    try:
        if os.readlink(path) == session:
            return True
    except FileNotFoundError:
        pass
    except OSError:  # it is no link
        return False
    temporary = path + b"-%d.new" % os.getpid()
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        os.symlink(session, temporary)
        os.rename(temporary, path)
    except OSError:  # a directory that may not be written to, for instance: nobody needs the link
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def remove_link(project: bytes, session: bytes) -> None:
    """Take the link away, if it leads to that session."""
    path = os.path.join(project, SESSION_LINK)
    with contextlib.suppress(OSError):
        if os.readlink(path) == session:
            os.unlink(path)
