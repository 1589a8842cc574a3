"""Between which directories a rename can lead: the same device, mount and project.

A directory of XFS, ext4 or F2FS may hand a project number down to all that is made in it, so that a
quota counts that.  The kernel refuses (EXDEV) to move or link anything in there that has another
number, whether a quota is in force or not.
"""

from __future__ import annotations

import fcntl
import os
import stat
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

    def takes(self, path: bytes) -> bool:
        """Tell whether what is at a path, which may have come from elsewhere with a number of its
        own, can be renamed to a directory here.

        Raises:
            OSError: as statx(2).
        """
        if device_and_mount(path) != (self.device, self.mount):
            return False
        if self.project is None:
            return True
        if not _tells_number(path):
            return rename_domain(os.path.dirname(path)).leads_to(self)
        number, _ = _project_and_flags(path) or (None, 0)
        return number is None or number == self.project


def rename_domain(directory: bytes) -> RenameDomain:
    """Return where a directory lies.

    A directory that may not be read does not tell of its project.

    Raises:
        OSError: as statx(2).
    """
    return RenameDomain(*device_and_mount(directory), _project(directory))


def _tells_number(path: bytes) -> bool:
    """Tell whether what is at a path may be opened to ask it, which does something to a device."""
    mode = os.lstat(path).st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _project(directory: bytes) -> int | None:
    number, flags = _project_and_flags(directory) or (None, 0)
    return number if flags & _HANDS_DOWN else None


def _project_and_flags(path: bytes) -> tuple[int, int] | None:
    """Return the number that a file or directory has, and its flags; None where nothing tells."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        flags, _, _, project, _ = _ATTRIBUTES.unpack(fcntl.ioctl(fd, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))
    except OSError:  # this filesystem knows none
        return None
    finally:
        os.close(fd)
    return project, flags
