"""What tells a filesystem from all others, also after its disk got another device number.

The kernel numbers disks as it finds them: a disk that is plugged in again, or a machine that starts
anew, may give another number.  Subvolumes of btrfs and all that is no disk get theirs at each
mount.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

import msgspec

from yolofs.paths import is_below
from yolofs.system.mounts import MountEntry, is_ours, read_mounts

_BY_UUID = b"/dev/disk/by-uuid"


class OnDisk(msgspec.Struct, frozen=True, order=True, array_like=True, forbid_unknown_fields=True):
    """Which file it is: each disk has one with that inode number."""

    disk: bytes | None
    """The :func:`disk_key` of its disk, empty for that of base's root; None if nobody knows, and it
    may be any.
    """
    inode: int

    def may_be(self, other: OnDisk) -> bool:
        """Tell whether it is the same file, as far as is known."""
        return self.inode == other.inode and (None in (self.disk, other.disk) or self.disk == other.disk)


class FilesOnDisks:
    """Some files of several disks."""

    def __init__(self, files: Iterable[OnDisk] = ()) -> None:
        self._by_inode: dict[int, list[OnDisk]] = {}
        for file in files:
            self._by_inode.setdefault(file.inode, []).append(file)

    def has(self, file: OnDisk) -> bool:
        """Tell whether a file is among these, as far as is known."""
        return any(file.may_be(one) for one in self._by_inode.get(file.inode, ()))


def disk_key(device: int) -> bytes:
    """Return an identity of the filesystem with a device number (``st_dev``) that lasts as long as
    possible: the UUID that udev knows, else its ``f_fsid``, else the number itself.

    Something of that filesystem has been looked at just now, so that asking it does not block.
    """
    try:
        mounts = read_mounts()
    except OSError:
        mounts = []
    entry = _mount_of(device, mounts)
    uuid = _uuid_of(device)
    if uuid:
        return b"uuid %b" % uuid
    if entry is not None:
        with contextlib.suppress(OSError):
            fsid = os.statvfs(entry.mountpoint).f_fsid
            if fsid and (os.major(device) or entry.type == b"btrfs"):
                return b"fsid %b %d" % (entry.type, fsid)
            if fsid:  # layers have the one of what is below, so where it is mounted counts, too
                return b"fsid %b %d %b" % (entry.type, fsid, entry.mountpoint)
    return b"device %d" % device


def _mount_of(device: int, mounts: list[MountEntry]) -> MountEntry | None:
    """Return a mount that shows a device and that no other one covers, None if none does.

    Danger: a look below a mount of ours would wait for the thread that looks.
    """
    ours = [entry.mountpoint for entry in mounts if is_ours(entry)]
    seen = {entry.mountpoint: entry for entry in mounts}.values()
    top = [entry for entry in seen if not any(is_below(entry.mountpoint, one) for one in ours)]
    name = b"%d:%d" % (os.major(device), os.minor(device))
    for entry in top:
        if entry.device == name or (entry.type == b"btrfs" and not os.major(device)):
            with contextlib.suppress(OSError):
                if os.lstat(entry.mountpoint).st_dev == device:
                    return entry
    return None


def _uuid_of(device: int) -> bytes:
    if not os.major(device):  # no block device
        return b""
    with contextlib.suppress(OSError), os.scandir(_BY_UUID) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.stat().st_rdev == device:
                    return entry.name
    return b""
