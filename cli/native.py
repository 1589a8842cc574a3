"""Which directories can be bound straight from base where this process is, and the namespace that makes it safe.

What somebody mounts below such a directory later would show up in the sandbox as well, to be written to: bubblewrap
keeps the way from the host's mounts to its own open.  So bubblewrap is started in a mount namespace that gets to know
of no new mounts; where none can be had, nothing is bound.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from yolofs.daemon.mounts import MountEntry
from yolofs.paths import is_below

DISK_TYPES = frozenset(
    b"9p bcachefs btrfs erofs ext2 ext3 ext4 f2fs jfs nfs nfs4 overlay ramfs reiserfs squashfs tmpfs virtiofs xfs "
    b"zfs".split()
)
"""Filesystem types on which files lie, and which mount nothing by themselves."""
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def bindable(paths: Sequence[bytes], mounts: Sequence[MountEntry]) -> list[bytes]:
    """Return those of some directories that lie on a disk as a whole: nothing is mounted below them.

    ``mounts``: what this process sees, in the order in which it was mounted.
    """
    return [path for path in paths if _is_of_one_piece(path, mounts)]


def _is_of_one_piece(path: bytes, mounts: Sequence[MountEntry]) -> bool:
    if any(entry.mountpoint != path and is_below(entry.mountpoint, path) for entry in mounts):
        return False
    around = [entry for entry in mounts if is_below(path, entry.mountpoint.rstrip(b"/"))]
    deepest = max((len(entry.mountpoint) for entry in around), default=0)
    on_top = [entry for entry in around if len(entry.mountpoint) == deepest]
    return bool(on_top) and on_top[-1].type in DISK_TYPES


def can_leave_mounts() -> bool:
    """Tell whether :func:`leave_mounts` works here, by trying it in a child."""
    child = os.fork()
    if not child:
        try:
            leave_mounts()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def leave_mounts() -> None:
    """Go into a mount namespace to which no new mount comes; for a child that starts bubblewrap then.

    Who is not root needs a user namespace for it, in which the user is the same.

    Raises:
        OSError: this machine forbids it.
    """
    uid, gid, is_root = os.geteuid(), os.getegid(), os.geteuid() == 0
    _check(_libc.unshare(_CLONE_NEWNS | (0 if is_root else _CLONE_NEWUSER)))
    if not is_root:
        for name, text in (
            ("setgroups", b"deny"),
            ("uid_map", b"%d %d 1" % (uid, uid)),
            ("gid_map", b"%d %d 1" % (gid, gid)),
        ):
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
            os.write(fd, text)
            os.close(fd)
    _check(_libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
