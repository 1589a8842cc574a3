"""The lock of a session: its holder alone changes the session."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from yolofs.errors import SessionBusyError
from yolofs.system.plain_files import open_plain


@contextlib.contextmanager
def locked(directory: bytes) -> Iterator[None]:
    """Hold the lock of the session in ``directory`` without opening it, which might not succeed.

    Raises:
        SessionBusyError: another process holds it.
    """
    fd = take_lock(directory)
    try:
        yield
    finally:
        os.close(fd)


def has_open(pid: int, directory: bytes) -> bool:
    """Tell whether a process of this user has the lock of the session in ``directory`` open, as its
    holder has.

    Somebody else's process is not told from one that has not.
    """
    try:
        lock = os.stat(os.path.join(directory, b"lock"), follow_symlinks=False)
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for number in numbers:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), lock):
                return True
    return False


def take_lock(directory: bytes) -> int:
    """Take the lock of the session in ``directory`` and return its descriptor.

    Raises:
        SessionBusyError: another process holds it.
    """
    path = os.path.join(directory, b"lock")
    fd = open_plain(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
        os.close(fd)
        raise SessionBusyError(
            f"process {holder or 'unknown'} is at work on this session", hint="wait for it, or: yolofs unmount"
        ) from None
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    except OSError as error:
        os.close(fd)
        error.filename = path
        raise
    return fd
