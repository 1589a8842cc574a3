"""Directories in which one command works: they hold an editor's patch, a diff tool's files, and
such.

Their command holds a lock on a file in them.  The system gives that back however the command ends.
So what a killed command has left is told from what somebody works in, and anybody may remove it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from yolofs.system.busy_trees import remove_tree
from yolofs.system.plain_files import is_there, open_plain

Purpose: TypeAlias = Literal["diff", "edit", "ignored", "merge", "review", "undo"]
"""What a command works on in its directory; its name begins with that."""
_NAME = rb"(?:diff|edit|ignored|merge|review|undo)-[a-z0-9_]{8}"
_LOCK = b".lock"


@contextlib.contextmanager
def work_directory(place: bytes, purpose: Purpose) -> Iterator[bytes]:
    """Give the absolute path of a new directory in ``place``, an absolute path, which is this
    user's alone, for the time of the block.

    Raises:
        OSError: it cannot be made, or not be removed.
    """
    path, lock = _made(place, purpose)
    try:
        yield path
    finally:
        try:
            _remove(path)
        finally:
            os.close(lock)


def left_behind(place: bytes) -> list[bytes]:
    """Return the paths of those directories in ``place`` whose command is gone, in no order.

    Raises:
        OSError: ``place`` cannot be read.
    """
    with os.scandir(place) as entries:
        found = [one.path for one in entries if re.fullmatch(_NAME, one.name) and one.is_dir(follow_symlinks=False)]
    return [path for path in found if _is_left(path)]


def remove_left_behind(place: bytes) -> None:
    """Remove :func:`left_behind`.

    Raises:
        OSError: something cannot be removed; all else is.
    """
    failure: OSError | None = None
    for path in left_behind(place):
        try:
            lock = _claimed(path)
            if lock is None:
                continue
            try:
                _remove(path)
            finally:
                os.close(lock)
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _made(place: bytes, purpose: Purpose) -> tuple[bytes, int]:
    """Make a directory, and return its path and the descriptor that holds its lock."""
    while True:
        path = os.path.join(place, f"{purpose}-{os.urandom(4).hex()}".encode())
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
            lock = _claimed(path)
            if lock is not None:
                return path, lock


def _claimed(path: bytes) -> int | None:
    """Return a descriptor that holds a directory's lock; None if another process has it, or has
    just removed it.
    """
    file = os.path.join(path, _LOCK)
    try:
        lock = open_plain(file, os.O_RDWR | os.O_CREAT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(file, follow_symlinks=False)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _is_left(path: bytes) -> bool:
    """Tell whether nobody has a directory's lock; nothing is made for that."""
    try:
        lock = open_plain(os.path.join(path, _LOCK), os.O_RDWR)
    except FileNotFoundError:  # its command was killed before it had one; or the next one is about to make it
        return is_there(path)
    except OSError:  # no directory, or somebody else's
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _remove(path: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):  # the command's own tool may have removed it
        remove_tree(path)
