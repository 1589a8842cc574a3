"""Opening files of a session that have to be regular files, whatever a restored backup or an
attacker has put there.

A fifo would keep a command waiting for ever, a link to a device or a file of terabytes of holes
would take all memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator


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
    try:
        with naming(path):
            is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        if not is_file:
            raise _no_file(path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_plain(path: bytes, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: as :func:`open_plain`; EFBIG if it has more than ``most_bytes``.
    """
    with open(open_plain(path, os.O_RDONLY), "rb") as file, naming(path):
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB", path)
        return file.read()


def read_note(path: bytes, most_bytes: int) -> bytes | None:
    """Return the content of a file that need not be there; None if no regular file of such a size
    is.

    Danger: a disk that fails is no reason to take a note for one that nobody wrote.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return read_plain(path, most_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EFBIG):
            raise
        return None


def is_there(path: bytes) -> bool:
    """Tell whether anything lies at a path; a link is not followed.

    Danger: ``os.path.lexists`` says no, too, where the disk does not tell.

    Raises:
        OSError: that cannot be told.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@contextlib.contextmanager
def naming(path: bytes) -> Iterator[None]:
    """Have an error of the system in a block, which is about what is open, or a name in it, name
    its path.
    """
    try:
        yield
    except OSError as error:
        name = error.filename
        if not isinstance(name, str | bytes) or not os.path.isabs(name):
            error.filename = path
        raise


def _no_file(path: bytes) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file", path)


def replace_note(path: bytes, text: bytes) -> None:
    """Make a note what ``text`` says, durably: it is the old or the new one at any time.

    Raises:
        OSError: it cannot be written.
    """
    with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + b".new", path)
    sync_directory(os.path.dirname(path))


def make_directory(path: bytes) -> None:
    """Make a directory for this user alone, and those above it, unless it is there.

    Raises:
        FileExistsError: something else is there.
        OSError: it cannot be made, or the disk does not tell what is there.
    """
    try:
        os.makedirs(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise


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
