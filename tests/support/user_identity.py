"""Being root or an ordinary user in a test."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NOBODY = 65534
ROOT = "root"
ORDINARY = "ordinary user"
USERS = [True, False] if os.geteuid() == 0 else [False]
"""For a parameter ``is_root``."""


@contextmanager
def acting_as(uid: int, gid: int) -> Iterator[None]:
    """Let the system judge this process (all its threads) as another user; takes effect only for
    root.
    """
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@contextmanager
def acting_as_root() -> Iterator[None]:
    """Within :func:`acting_as`, be root again, if the process is root's."""
    if os.getuid() != 0:
        yield
        return
    uid, gid = os.geteuid(), os.getegid()
    os.seteuid(0)
    os.setegid(0)
    try:
        yield
    finally:
        os.setegid(gid)
        os.seteuid(uid)


@contextmanager
def room_of(who: str) -> Iterator[bytes]:
    """Give a directory that belongs to ``who`` (pytest's own is closed to others) and act as
    them.
    """
    room = os.fsencode(tempfile.mkdtemp(prefix="yolofs-room."))
    try:
        if who == ORDINARY and os.geteuid() == 0:
            os.chown(room, NOBODY, NOBODY)
            with acting_as(NOBODY, NOBODY):
                yield room
        else:
            yield room
    finally:
        _remove(room)


def _remove(room: bytes) -> None:
    """Remove a room, directories included that are closed to their owner."""
    for directory, names, _ in os.walk(room):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(room)


def make(path: bytes, data: bytes = b"", mode: int = 0o644) -> bytes:
    """Make a file and return its path."""
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    return path


def in_child(act: Callable[[], object], *, is_root: bool) -> int:
    """Do something in another process, as root or as an ordinary user; return its exit code, or
    minus its signal.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if not is_root and not os.geteuid():
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, which setuid clears: else /proc/self/fd would be root's
        act()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
        try:
            traceback.print_exc()
        finally:  # also if there is nowhere to print it to: else the child would go on as pytest
            os._exit(1)
