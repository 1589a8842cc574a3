"""The lock of a session: its holder alone changes the session."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from typing import Self

import msgspec

from yolofs.errors import SessionBusyError
from yolofs.system.plain_files import open_plain
from yolofs.system.processes import is_stopped

MOUNT = "mount"
"""The command of a daemon."""
_NOTE = rb"([1-9][0-9]{0,9})(?: ([a-z-]{1,32}))?\n"
_NOTE_BYTES = 64
_LOOK_S = 0.02
"""How long a process that only checks the lock may hold it."""


class Holder(msgspec.Struct, frozen=True):
    """The process that holds the lock, as it has noted itself."""

    pid: int = 0
    """0 if that is not known."""
    command: str = ""
    """The word after `yolofs`, "" if that is not known."""

    @classmethod
    def noted_in(cls, fd: int) -> Self:
        """Read who has noted itself last in an open lock; nobody is known if that process has the
        lock no more.

        So it is where the holder had no room to note itself (:func:`note_holder`).
        """
        found = re.fullmatch(_NOTE, os.pread(fd, _NOTE_BYTES, 0))
        if found is None or not _may_hold(int(found[1]), fd):
            return cls()
        return cls(int(found[1]), (found[2] or b"").decode())

    @property
    def text(self) -> str:
        """A sentence about it."""
        command = f" (yolofs {self.command})" if self.command else ""
        stopped = ", and was stopped" if self._is_stopped else ""
        return f"process {self.pid or 'unknown'}{command} is at work on this session{stopped}"

    @property
    def hint(self) -> str:
        """What to do about it."""
        if self.command == MOUNT:
            return f"yolofs unmount; if that does not find it: kill {self.pid}"
        if self._is_stopped:
            return f"kill -CONT {self.pid} lets it go on"
        return f"wait for it to end, or end it: kill {self.pid}" if self.pid else "wait for it to end"

    @property
    def error(self) -> SessionBusyError:
        """What to raise where it is in the way."""
        return SessionBusyError(self.text, hint=self.hint)

    @property
    def _is_stopped(self) -> bool:
        return bool(self.pid) and is_stopped(self.pid)


def command_at_work(directory: bytes) -> Holder | None:
    """Return which command changes the session in ``directory`` just now, None if none does.

    A daemon is none; a command that it has lent the session to is one.
    """
    try:
        fd = open_plain(os.path.join(directory, b"lock"), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found = Holder.noted_in(fd)
            return found if found.command != MOUNT else None
        return None
    finally:
        os.close(fd)


def note_holder(fd: int, command: str) -> None:
    """Note in an open lock that this process holds it, to carry out ``command``.

    Where the disk is full nothing is noted: a mount is not to end by that, and some commands make
    room.  On a disk that shares its blocks the note of the last holder may stay then.

    Raises:
        OSError: it cannot be noted for another reason.
    """
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {command}".strip().encode() + b"\n", 0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


@contextlib.contextmanager
def session_locked(directory: bytes) -> Iterator[None]:
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

    Of another user's process that cannot be told: the answer is no.
    """
    try:
        return _has_open(pid, os.stat(os.path.join(directory, b"lock"), follow_symlinks=False))
    except OSError:
        return False


def _may_hold(pid: int, fd: int) -> bool:
    """Tell whether a process has an open lock open, too; of another user's process, whether it has
    locked it.
    """
    lock = os.fstat(fd)
    try:
        return _has_open(pid, lock)
    except PermissionError:
        return _has_locked(pid, lock)
    except OSError:
        return False


def _has_open(pid: int, lock: os.stat_result) -> bool:
    """Tell whether a process has a file open.

    Raises:
        PermissionError: it is another user's.
        OSError: it is gone.
    """
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), lock):
                return True
    return False


def _has_locked(pid: int, lock: os.stat_result) -> bool:
    """Tell whether the kernel lists a process as one that has locked a file.

    Some disks have another device number there; a process that has locked a file of that inode
    number is taken for it.
    """
    try:
        with open("/proc/locks", "rb") as file:
            return any(
                words[1:2] == [b"FLOCK"] and int(words[4]) == pid and int(words[5].rpartition(b":")[2]) == lock.st_ino
                for words in map(bytes.split, file)
            )
    except (OSError, ValueError, IndexError):
        return False


def take_lock(directory: bytes, command: str = "") -> int:
    """Take the lock of the session in ``directory`` to carry out ``command``, and return its
    descriptor.

    Raises:
        SessionBusyError: another process holds it.
    """
    path = os.path.join(directory, b"lock")
    fd = open_plain(path, os.O_RDWR | os.O_CREAT)
    try:
        _lock(fd)
        note_holder(fd, command)
    except OSError as error:
        os.close(fd)
        error.filename = path
        raise
    except SessionBusyError:
        os.close(fd)
        raise
    return fd


def _lock(fd: int) -> None:
    """Lock an open lock.

    Raises:
        SessionBusyError: another process holds it, and does not only look.
    """
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    time.sleep(_LOOK_S)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Holder.noted_in(fd).error from None
