"""What tells a directory from all others, whatever it is called: device, inode number and time of birth.

The number of a device may change when the machine starts anew, and an inode number is given again once a file is
gone.  A number and a time of birth together are never given twice on one disk.
"""

from __future__ import annotations

import ctypes
import os
import struct

import msgspec

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_EMPTY_PATH = 0x1000
_STATX_INO_BTIME = 0x100 | 0x800
_STATX_BYTES = 256
_libc = ctypes.CDLL(None, use_errno=True)


class Identity(msgspec.Struct, frozen=True):
    """What tells a directory from all others."""

    device: int
    """As ``st_dev``."""
    inode: int
    birth_ns: int | None = None
    """Since 1970; None where the filesystem keeps no times of birth."""

    def is_same(self, other: Identity) -> bool:
        """Tell whether two identities are of one directory, on a disk whose device number may have changed."""
        if self.inode != other.inode:
            return False
        if self.birth_ns is None or other.birth_ns is None:
            return self.device == other.device
        return self.birth_ns == other.birth_ns


NO_IDENTITY = Identity(0, 0)
"""Of no directory: where it is not known which one it is."""


def identity_of(target: bytes | int) -> Identity:
    """Return the identity of what is at a path (a link itself), or of an open descriptor.

    Raises:
        OSError: as statx(2).
    """
    st = os.lstat(target) if isinstance(target, bytes) else os.fstat(target)
    return Identity(st.st_dev, st.st_ino, _birth_ns(target))


def _birth_ns(target: bytes | int) -> int | None:
    statx = getattr(_libc, "statx", None)  # glibc has it from 2.28
    if statx is None:
        return None
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if isinstance(target, bytes):
        failed = statx(_AT_FDCWD, target, _AT_SYMLINK_NOFOLLOW, _STATX_INO_BTIME, found)
    else:
        failed = statx(target, b"", _AT_EMPTY_PATH, _STATX_INO_BTIME, found)
    if failed:
        return None
    (mask,) = struct.unpack_from("I", found, 0)
    if not mask & 0x800:
        return None
    seconds, nanoseconds = struct.unpack_from("qI", found, 80)  # stx_btime: statx(2), <linux/stat.h>
    return int(seconds) * 1_000_000_000 + int(nanoseconds) or None  # 0: some filesystems say so of all they have
