"""The identity of a directory, whatever its path: device, inode number and time of birth.

The number of a device may change when the machine starts anew, and an inode number is given again
once a file is gone.  A number and a time of birth together are never given twice on one disk.
"""

import contextlib
import os
from typing import Self

import msgspec

from yolofs.system import syscalls


class DirectoryIdentity(msgspec.Struct, frozen=True):
    """The identity of a directory."""

    device: int
    """As ``st_dev``."""
    inode: int
    birth_ns: int | None = None
    """Since 1970; None where the filesystem keeps no times of birth."""

    def is_same(self, other: Self) -> bool:
        """Tell whether two identities are of one directory, on a disk whose device number may have
        changed.
        """
        if self.inode != other.inode:
            return False
        if self.birth_ns is None or other.birth_ns is None:
            return self.device == other.device
        return self.birth_ns == other.birth_ns


NO_IDENTITY = DirectoryIdentity(0, 0)
"""Of no directory: where it is not known which one it is."""


def identity_of(target: bytes | int) -> DirectoryIdentity:
    """Return the identity of what is at a path (a link itself), or of an open descriptor.

    Raises:
        OSError: as statx(2).
    """
    st = os.lstat(target) if isinstance(target, bytes) else os.fstat(target)
    return DirectoryIdentity(st.st_dev, st.st_ino, syscalls.look(target).birth_ns)


def lasting_identity_of(directory: bytes) -> DirectoryIdentity:
    """Return the identity that a directory has and keeps.

    OverlayFS, which containers lie on, tells another time of birth once something in a directory of
    the image is changed.  So this sets the times of such a directory to what they are, after which
    OverlayFS tells the lasting time.

    Raises:
        OSError: as statx(2).
    """
    if not syscalls.look(directory).keeps_birth:
        st = os.lstat(directory)
        with contextlib.suppress(OSError):  # another user's, or read-only
            os.utime(directory, ns=(st.st_atime_ns, st.st_mtime_ns), follow_symlinks=False)
    return identity_of(directory)
