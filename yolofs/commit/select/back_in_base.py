"""Whether something staged is just what base gets back from an earlier commit, so that it need not
stay staged.
"""

from __future__ import annotations

import os
import stat

from yolofs.changes.contents import is_same_content
from yolofs.state.tree import Entry
from yolofs.store import copying
from yolofs.store.interfaces import StorePaths


def comes_back_as(entry: Entry, kept: bytes, store: StorePaths) -> bool:
    """Tell whether an entry shows what lies at the path ``kept``: content, metadata and times, with
    all below it.

    False for what is a hard link of something, or has a part of it in base.  Blocks while files are
    read.

    Raises:
        OSError: one of them cannot be read.
    """
    staged = entry.staged
    if staged is None or staged.origin is not None or staged.links or len(staged.names) != 1:
        return False
    path = store.path(staged.ino)
    st, there = store.lstat(staged.ino), os.lstat(kept)
    mtime_ns = entry.touched_ns or st.st_mtime_ns
    looks = (st.st_mode, st.st_uid, st.st_gid, mtime_ns, st.st_rdev)
    if looks != (there.st_mode, there.st_uid, there.st_gid, there.st_mtime_ns, there.st_rdev):
        return False
    if sorted(copying.read_metadata(path).xattrs) != sorted(copying.read_metadata(kept).xattrs):
        return False
    match stat.S_IFMT(st.st_mode):
        case stat.S_IFREG:
            return there.st_nlink == 1 and st.st_size == there.st_size and _is_same_file(path, kept)
        case stat.S_IFLNK:
            return os.readlink(path) == os.readlink(kept)
        case stat.S_IFDIR:
            children = {name: below for name, below in (entry.children or {}).items() if not below.is_tombstone}
            return children.keys() == set(os.listdir(kept)) and all(
                comes_back_as(below, os.path.join(kept, name), store) for name, below in children.items()
            )
        case _:
            return True


def _is_same_file(one: bytes, other: bytes) -> bool:
    """Tell whether two files hold the same bytes now, whatever was found of them before."""
    with open(one, "rb") as left, open(other, "rb") as right:
        return is_same_content(left.fileno(), right.fileno())
