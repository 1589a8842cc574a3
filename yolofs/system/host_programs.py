"""Programs of the host that yolofs itself starts: git, bubblewrap, fusermount3.

They are looked for by ``PATH``, as a shell does, but never in a view: what is staged there is
nobody's program before it is committed.  A yolofs mount is not even touched, as a paused one
answers nobody until the commit is done.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from yolofs.paths import is_in
from yolofs.system.mount_table import mounted_paths
from yolofs.system.symlinks import follow

_TYPE = b"fuse.yolofs"


def find_program(name: str, search_path: str | None = None) -> str | None:
    """Return the absolute path of a program, without links; None if there is none outside of all
    views.

    ``search_path`` is as ``PATH``, and that of this process if it is not given.  Relative entries
    are passed over.
    """
    if search_path is None:
        search_path = os.environ.get("PATH", os.defpath)
    views = _views()
    for directory in os.fsencode(search_path).split(b":"):
        if directory.startswith(b"/"):
            place = follow(os.path.join(directory, os.fsencode(name)), lambda path: _target(path, views)).place
            if not _is_in_a_view(place, views) and _is_program(place):
                return os.fsdecode(place)
    return None


def _views() -> Collection[bytes]:
    """Return where yolofs is mounted."""
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            views = {path for path, kind in mounted_paths(lines) if kind == _TYPE}
    except FileNotFoundError:  # as in a chroot
        return ()
    return views if b"/" not in views else ()  # in a sandbox, all there is is the view


def _is_in_a_view(path: bytes, views: Collection[bytes]) -> bool:
    return any(is_in(path, view) for view in views)


def _target(path: bytes, views: Collection[bytes]) -> bytes | None:
    """Return what the link at a path holds; None if it is none, or lies in a view."""
    if _is_in_a_view(path, views):
        return None
    try:
        return os.readlink(path)
    except OSError:
        return None


def _is_program(path: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False
