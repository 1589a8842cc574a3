"""The names of yolofs's own files and directories, whoever owns them: no view shows them.

Two of them hide whatever has them, so that nothing can be given them in a view, either.  The others
depend on what lies there, as other things may be called so, too.
"""

from __future__ import annotations

import os

SESSION_LINK = b".yolofs"
"""In a project: the convenience link to its session (and in earlier versions the session
itself).
"""
STATE_NAME = b"yolofs"
"""The last component of a state directory in ``$XDG_STATE_HOME``."""
STATE_MARK = b".yolofs-state"
"""A file in each state directory, by which it is known."""
NATIVE_SURVEY = b"native-survey"
"""In a state directory: what was seen in directories that sandboxes may have straight from base."""
STATE_PARTS = frozenset({STATE_MARK, b"sessions", b"registry", b"trust", b"seal.key", b"machine-id", NATIVE_SURVEY})
"""The names in a state directory, wherever the user has put it."""
JOURNAL = b"journal"
"""What tells a session's directory from another one called ``.yolofs``."""
DISK_STATE = b".yolofs-"
"""Stands before the user's number in the name of a state directory that is not on the home's disk.
"""


def disk_state_name(uid: int) -> bytes:
    """Return the name of a user's state directory that is not on the home's disk."""
    return DISK_STATE + b"%d" % uid


def may_be_hidden(name: bytes) -> bool:
    """Tell whether :func:`is_hidden` may hold for something of this name; cheap, and false for
    nearly all names.
    """
    return name in _NAMES or name.startswith(DISK_STATE)


def may_hold_hidden(names: list[bytes]) -> bool:
    """Tell whether :func:`may_be_hidden` holds for any of the names in a directory; cheap for many
    names.
    """
    return not _NAMES.isdisjoint(names) or b"/" + DISK_STATE in b"/" + b"/".join(names)


def is_hidden(directory: bytes, name: bytes) -> bool:
    """Tell whether what lies at ``name`` in ``directory`` (absolute) is a session, a state
    directory or a part of one.

    Looks at the disk.  What the user may not enter counts as what its name says.
    """
    if name == STATE_MARK or (name.startswith(DISK_STATE) and name[len(DISK_STATE) :].isdigit()):
        return True
    path = os.path.join(directory, name)
    if name == SESSION_LINK:
        return os.path.islink(path) or _has(path, JOURNAL)
    if name == STATE_NAME:
        return _has(path, STATE_MARK)
    return name in STATE_PARTS and _has(directory, STATE_MARK)


_NAMES = STATE_PARTS | {SESSION_LINK, STATE_NAME}


def _has(directory: bytes, name: bytes) -> bool:
    """Tell whether a directory holds a name; one that may not be entered may hold it."""
    try:
        os.lstat(os.path.join(directory, name))
    except PermissionError:
        return True
    except OSError:
        return False
    return True
