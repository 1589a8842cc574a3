"""Directories that their owner has closed to everybody, themselves too."""

from __future__ import annotations

import os
import stat

_TO_ENTER = stat.S_IRUSR | stat.S_IXUSR


def closed_directory(path: bytes) -> bytes | None:
    """Return the topmost directory above an absolute path, or at it, that this process may not list
    or enter, though it belongs to its user; None if there is none.
    """
    place = b"/"
    for name in path.split(b"/"):
        place = os.path.join(place, name)
        try:
            st = os.lstat(place)
        except OSError:
            return None
        if stat.S_ISDIR(st.st_mode) and st.st_uid == os.geteuid() != 0 and st.st_mode & _TO_ENTER != _TO_ENTER:
            return place
    return None
