"""The namespaces that the kernel lets us have, and the one in which bubblewrap is started.

bubblewrap lets mounts of the host appear in its own.  So what somebody mounts on the host later
would show up, writable, below a directory that the sandbox has straight from base.  So it is
started in a mount namespace that gets to know of no new mounts; where none can be had, nothing is
bound.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

import msgspec

from yolofs.sandbox.native_mounts import try_copy

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


class Possible(msgspec.Struct, frozen=True):
    """What this process can do."""

    native_mounts: bool
    """Whether :func:`leave_mounts` works, and :mod:`yolofs.sandbox.native_mounts` then."""
    user_namespace: bool
    """Whether a user namespace can be had; not tried for an ordinary user, who needs one anyway."""


@functools.cache
def find_possible() -> Possible:
    """Try it in a child, once in a process.

    Raises:
        OSError: no child can be had.
    """
    child = os.fork()
    if not child:
        can_mount = _works(leave_mounts) and _works(try_copy)
        os._exit(can_mount | 2 * (os.geteuid() != 0 or _works(_make_user_namespace)))
    found = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Possible(bool(found & 1), bool(found & 2))


def leave_mounts() -> None:
    """Go into a mount namespace to which no new mount comes; for a child that starts bubblewrap
    then.

    Users other than root need a user namespace for it, in which they stay the same user.

    Raises:
        OSError: this machine forbids it.
    """
    uid, gid, is_root = os.geteuid(), os.getegid(), os.geteuid() == 0
    _check(_libc.unshare(_CLONE_NEWNS | (0 if is_root else _CLONE_NEWUSER)))
    if not is_root:
        _write("setgroups", b"deny")
        _write("uid_map", b"%d %d 1" % (uid, uid))
        _write("gid_map", b"%d %d 1" % (gid, gid))
    _check(_libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))


def _make_user_namespace() -> None:
    _check(_libc.unshare(_CLONE_NEWUSER))


def _works(step: Callable[[], None]) -> bool:
    try:
        step()
    except OSError:
        return False
    return True


def _write(name: str, text: bytes) -> None:
    fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
