"""Removing the sessions of projects that a test makes by the hundred.

Each would be looked through by every later command.  And a directory that lived for less than a
tick of the kernel's clock may leave its inode number and its time of birth to the next one, which
no user's does.
"""

from __future__ import annotations

import os

from yolofs.registry.registry import Registry
from yolofs.session.forget import forget


def remove_sessions_below(directory: bytes) -> None:
    """Remove the sessions of all projects in a directory; none may be in use."""
    directory = os.path.realpath(directory)
    with Registry.open() as registry:
        entries = list(registry)
    for entry in entries:
        if entry.project_path == directory or entry.project_path.startswith(directory + b"/"):
            forget(entry)
