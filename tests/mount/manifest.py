"""Whole trees, told so that two of them can be compared."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

Manifest = dict[str, tuple[object, ...]]


def manifest(root: str | Path) -> Manifest:
    """Return what any two copies of a tree have in common: types, modes, owners, links, contents
    and no times.
    """
    return dict(_walk(str(root), _common))


def untouched(root: str | Path) -> Manifest:
    """Return all that changes when somebody changes anything: also inode numbers, mtimes and
    ctimes.
    """
    return dict(_walk(str(root), _everything))


Describe = Callable[[os.stat_result], tuple[object, ...]]


def _walk(root: str, describe: Describe) -> Iterator[tuple[str, tuple[object, ...]]]:
    firsts: dict[tuple[int, int], str] = {}
    if describe is _everything:
        st = os.lstat(root)
        yield ".", (st.st_mode, st.st_uid, st.st_gid, st.st_ino)  # its times are those of .yolofs coming and going
    start = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for directory, names, files, at in os.fwalk(".", dir_fd=start):
            if directory == "." and ".yolofs" in names:
                names.remove(".yolofs")
            for name in sorted(names + files):
                path = os.path.normpath(os.path.join(directory, name))
                st = os.lstat(name, dir_fd=at)
                first = firsts.setdefault((st.st_dev, st.st_ino), path) if not stat.S_ISDIR(st.st_mode) else path
                yield path, (*describe(st), first, _content(name, st, at))
    finally:
        os.close(start)


def _common(st: os.stat_result) -> tuple[object, ...]:
    size = 0 if stat.S_ISDIR(st.st_mode) else st.st_size
    return st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_rdev, size


def _everything(st: os.stat_result) -> tuple[object, ...]:
    return *_common(st), st.st_ino, st.st_mtime_ns, st.st_ctime_ns


def _content(name: str, st: os.stat_result, at: int) -> str:
    if stat.S_ISLNK(st.st_mode):
        return os.readlink(name, dir_fd=at)
    if not stat.S_ISREG(st.st_mode):
        return ""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=at)
    with os.fdopen(fd, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
