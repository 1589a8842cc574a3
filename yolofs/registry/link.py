"""The convenience link ``.yolofs`` in a project: to look around.  Nothing is read through it, so it
does no harm if somebody else changes it.

Git is told to ignore it, and other files that yolofs puts into a project.
"""

from __future__ import annotations

import contextlib
import os
import stat

from yolofs.system.own_names import SESSION_LINK

_MAX_BYTES = 1 << 20
"""What is longer is no list that somebody has written: an archive may bring a file of terabytes,
all holes.
"""


def put_link(project: bytes, session: bytes) -> bool:
    """Make sure that ``.yolofs`` in a project leads to its session; return whether it does.

    What is no link there stays: it is somebody else's.
    """
    path = os.path.join(project, SESSION_LINK)
    try:
        if os.readlink(path) == session:
            return True
    except FileNotFoundError:
        pass
    except OSError:  # it is no link
        return False
    temporary = path + b"-%d.new" % os.getpid()
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        os.symlink(session, temporary)
        os.rename(temporary, path)
    except OSError:  # a directory that may not be written to, for instance: nobody needs the link
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def remove_link(project: bytes, session: bytes) -> None:
    """Take the link away, if it leads to that session."""
    path = os.path.join(project, SESSION_LINK)
    with contextlib.suppress(OSError):
        if os.readlink(path) == session:
            os.unlink(path)


def exclude_from_git(project: bytes, name: bytes) -> bool:
    """Have git ignore a file at the top of a project, by a line in ``.git/info/exclude``, if that
    is a plain file of a plain repository; return whether it has the line.

    Nothing of this follows a link, as the repository may be anybody's.
    """
    is_excluded = False
    directory = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        git = os.open(os.path.join(project, b".git"), directory)
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(b"info", 0o777, dir_fd=git)
            info = os.open(b"info", directory, dir_fd=git)
        finally:
            os.close(git)
        try:
            is_excluded = _add_line(info, b"/" + name)
        finally:
            os.close(info)
    return is_excluded


def _add_line(info: int, line: bytes) -> bool:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(b"exclude", flags, 0o666, dir_fd=info), "rb+", buffering=0) as file:
        st = os.fstat(file.fileno())
        is_plain = stat.S_ISREG(st.st_mode) and st.st_nlink == 1 and st.st_size <= _MAX_BYTES
        if not is_plain or st.st_uid != os.geteuid():
            return False
        content = file.read()
        if line not in content.split(b"\n"):
            file.write((b"\n" if content and not content.endswith(b"\n") else b"") + line + b"\n")
        return True
