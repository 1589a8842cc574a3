"""Between which directories a rename can lead: the same device, mount and project.

A directory of XFS, ext4 or F2FS may hand a project number down to all that is made in it, so that a
quota counts that.  The kernel refuses (EXDEV) to move or link anything in there that has another
number, whether a quota is in force or not.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import NamedTuple

from yolofs.system.syscalls import device_and_mount

_GET_ATTRIBUTES = 0x801C581F  # <linux/fs.h>: FS_IOC_FSGETXATTR, the same number on all machines that yolofs runs on
_ATTRIBUTES = struct.Struct("5I8x")  # struct fsxattr
_HANDS_DOWN = 0x200  # FS_XFLAG_PROJINHERIT


class RenameDomain(NamedTuple):
    """Where a directory lies."""

    device: int
    mount: int
    """The number of the mount: two mounts may show the same device."""
    project: int | None
    """The number that it hands down to what is made in it; None if it hands down none."""

    def leads_to(self, other: RenameDomain) -> bool:
        """Tell whether what is made here can be renamed to a directory there."""
        is_near = (self.device, self.mount) == (other.device, other.mount)
        return is_near and other.project in (None, self.project or 0)


def rename_domain(directory: bytes) -> RenameDomain:
    """Return where a directory lies.

    A directory that may not be read does not tell of its project.

    Raises:
        OSError: as statx(2).
    """
    return RenameDomain(*device_and_mount(directory), _project(directory))


def _project(directory: bytes) -> int | None:
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        flags, _, _, project, _ = _ATTRIBUTES.unpack(fcntl.ioctl(fd, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))
    except OSError:  # this filesystem knows none
        return None
    finally:
        os.close(fd)
    return project if flags & _HANDS_DOWN else None
