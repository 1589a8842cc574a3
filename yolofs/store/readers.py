"""Readers of a mounted session.  As long as somebody reads, store inodes that nothing shows any
more stay in the store.

A command reads the journal, and then the store inodes that it names, perhaps for as long as
somebody reads its output.  Meanwhile a program removes what it has made.  So commands share a
flock(2) on the store's directory, and whoever is to remove a store inode tries to have that alone,
without waiting.  A reader takes the lock before it has the daemon write its records out.  If
something was removed before that, the journal that it reads says so; everything else is still
there.

The kernel takes the lock back from a process that has ended.  No view shows the store, so no
program in one can hold it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

FILES = b"files"
"""The store's directory in that of a session."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def reading_store(session_directory: bytes) -> Iterator[None]:
    """Have the store of a session keep what it has for the time of the block.  If it cannot be
    opened, nothing is kept; the command that reads will say why.
    """
    try:
        fd = os.open(os.path.join(session_directory, FILES), _FLAGS)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a filesystem without such locks
            fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


class Readers:
    """Tells whether anybody reads a store.  For one thread."""

    def __init__(self, directory: bytes) -> None:
        """``directory`` is the store's."""
        self._directory = directory
        self._fd = -1

    def are_there(self) -> bool:
        """Tell whether anybody reads the store, by two system calls."""
        try:
            if self._fd < 0:
                self._fd = os.open(self._directory, _FLAGS)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # it is gone, or has no locks: then nobody could have one either
            return False
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Close what it looks by; it may be asked again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
