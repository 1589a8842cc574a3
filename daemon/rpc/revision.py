"""Which yolofs serves a mount: a command of another one does not change the session beside it.

A daemon goes on after yolofs was upgraded.  It passes over fields of a record that it does not
know, and would show another state than the record tells; and what it imports late is of the new
version.
"""

from __future__ import annotations

from typing import Final

from yolofs import __version__
from yolofs.errors import DaemonError

REVISION: Final = 1
"""Raised with each change of what a command writes and a daemon reads: records of the journal,
plans of commits, messages.  Daemons that tell none have 0.
"""
REMOUNT: Final = "yolofs unmount && yolofs mount"


def is_this_version(version: str, revision: int) -> bool:
    """Tell whether a daemon is of the same version as this command."""
    return (version, revision) == (__version__, REVISION)


def difference(version: str, revision: int) -> str:
    """Return which version serves the mount, and which the command is of."""
    if version != __version__:
        return f"yolofs {version} serves the mount, and this is yolofs {__version__}"
    age = "an earlier" if revision < REVISION else "a later"
    return f"{age} state of yolofs {version} serves the mount (revision {revision}, and this is revision {REVISION})"


def other_version_error(version: str, revision: int) -> DaemonError:
    """Return what to raise where a command and a daemon of two versions would have to understand
    each other.
    """
    return DaemonError(
        f"{difference(version, revision)}: the one could misread what the other writes; nothing was changed",
        hint=f"{REMOUNT} (what is staged stays), then try again",
    )
