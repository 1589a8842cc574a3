"""Opening files of a session that have to be regular ones, whatever a restored backup or somebody
has put there.

A fifo would keep a command waiting for ever, a link to a device or a file of terabytes of holes
would take all memory.
"""

from __future__ import annotations

import errno
import os
import stat


def open_plain(path: bytes, flags: int) -> int:
    """Open a regular file and return its descriptor; no link is followed, and nobody is waited for.

    What ``flags`` make is of mode 0600.

    Raises:
        OSError: as open(2); EINVAL for what is no regular file, a link too.
    """
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        raise _no_file(path) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _no_file(path)
    return fd


def read_plain(path: bytes, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: as :func:`open_plain`; EFBIG if it has more than ``most_bytes``.
    """
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB", path)
        return file.read()


def _no_file(path: bytes) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file", path)


def sync_directory(path: bytes) -> None:
    """Wait until what was renamed, made or removed in a directory is durable.

    Raises:
        OSError: the disk failed.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
