"""How a tree looks, to be compared with how it looks later."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.plain_directory import by_first_name, walk_tree


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


def exactly(project: Path) -> dict[str, tuple[int, ...]]:
    """Return all that tells what base is: kind, mode, owner, inode number, size and time of
    everything in it.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path in (project, *project.rglob("*")):
        if ".yolofs" not in path.parts:
            st = path.lstat()
            found[str(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_size, st.st_mtime_ns, st.st_nlink)
    return found


def tree_of(directory: Path) -> dict[bytes, tuple[Any, ...]]:
    """Return all that is below a directory but for sessions: names, types, modes, contents,
    links.
    """
    return by_first_name(dict(walk_tree(os.fsencode(directory))))


Described = dict[str, tuple[object, ...]]


def everything_below(root: str, *, times: bool = True) -> Described:
    """Return everything about every path below ``root`` but the session's directory."""
    return dict(_describe_all(root, times))


def _describe_all(root: str, times: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    links: dict[int, str] = {}
    for directory, names, files in os.walk(root):
        if directory == root and ".yolofs" in names:
            names.remove(".yolofs")
        names.sort()
        for name in sorted(names + files):
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            st = os.lstat(path)
            content = ""
            if stat.S_ISREG(st.st_mode):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(path)
            first = links.setdefault(st.st_ino, relative) if st.st_nlink > 1 and not stat.S_ISDIR(st.st_mode) else ""
            yield relative, (st.st_mode, st.st_uid, st.st_gid, content, first, st.st_mtime_ns if times else 0)
