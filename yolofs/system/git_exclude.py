"""``.git/info/exclude``: by lines in it, git ignores what yolofs puts into a project."""

from __future__ import annotations

import contextlib
import os
import stat

from yolofs.system.own_names import SESSION_LINK

EXCLUDE = b".git/info/exclude"
_MAX_BYTES = 1 << 20
"""What is longer is no list that somebody has written: an archive may bring a file of terabytes,
all holes.
"""
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def exclude_from_git(project: bytes, name: bytes, *, may_create: bool = True) -> bool:
    """Have git ignore a file at the top of a project, by a line in ``.git/info/exclude``, if that
    is a plain file of a plain repository; return whether it has the line.

    The file keeps its mtime: that tells later that nobody else has changed it
    (:func:`without_own_line`).  With ``may_create`` a file that is not there is made.  Nothing of
    this follows a link, as the repository may be anybody's.
    """
    is_excluded = False
    directory = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        git = os.open(os.path.join(project, b".git"), directory)
        try:
            if may_create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(b"info", 0o777, dir_fd=git)
            info = os.open(b"info", directory, dir_fd=git)
        finally:
            os.close(git)
        try:
            is_excluded = _add_line(info, _line(name), os.O_CREAT if may_create else 0)
        finally:
            os.close(info)
    return is_excluded


def without_own_line(path: bytes, st: os.stat_result) -> os.stat_result:
    """Return ``st`` of a list of git's with the size that it had before the line that ignores
    ``.yolofs`` was added at its end; ``st`` itself if it does not end with that line.
    """
    if not path.endswith(b"/" + EXCLUDE) or not stat.S_ISREG(st.st_mode) or st.st_size > _MAX_BYTES:
        return st
    with contextlib.suppress(OSError), open(os.open(path, os.O_RDONLY | _SAFELY), "rb") as file:
        now = os.fstat(file.fileno())
        content = file.read(_MAX_BYTES)
        before = content.removesuffix(_line(SESSION_LINK) + b"\n")
        if (now.st_ino, now.st_ctime_ns) == (st.st_ino, st.st_ctime_ns) and before != content:
            times = {name: getattr(st, name) for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")}
            return os.stat_result((*st[:6], len(before), *st[7:]), times)
    return st


def _line(name: bytes) -> bytes:
    return b"/" + name


def _add_line(info: int, line: bytes, create_flag: int) -> bool:
    """Add a line to the list in the directory ``info``, if it has none such;
    ``create_flag`` is ``O_CREAT``, or 0.
    """
    flags = os.O_RDWR | os.O_APPEND | _SAFELY | create_flag
    with open(os.open(b"exclude", flags, 0o666, dir_fd=info), "rb+", buffering=0) as file:
        st = os.fstat(file.fileno())
        is_plain = stat.S_ISREG(st.st_mode) and st.st_nlink == 1 and st.st_size <= _MAX_BYTES
        if not is_plain or st.st_uid != os.geteuid():
            return False
        content = file.read()
        if line not in content.split(b"\n"):
            file.write((b"\n" if content and not content.endswith(b"\n") else b"") + line + b"\n")
            os.utime(file.fileno(), ns=(st.st_atime_ns, st.st_mtime_ns))
        return True
