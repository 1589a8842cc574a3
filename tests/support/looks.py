"""How a tree looks, to be compared with how it looks later."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def looks(top: Path) -> dict[str, tuple[object, ...]]:
    """Return all that an undo has to put back, by path: kind, mode, content, time and number of
    names.
    """
    found: dict[str, tuple[object, ...]] = {}
    for path in (top, *top.rglob("*")):
        if ".yolofs" in path.name:
            continue
        st = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        links = st.st_nlink if stat.S_ISREG(st.st_mode) else 0
        found[str(path.relative_to(top))] = (st.st_mode, content, st.st_mtime_ns, links)
    return found
