"""Mode bits that let nobody in whom an access control list keeps out.

The kernel judges by mode bits alone in a FUSE mount.  Those of a file with a list say too much: the
group's bits are the list's mask, so that of ``user:alice:rw`` on a file of mode 0600 the whole
group would profit.
"""

from __future__ import annotations

import os
import struct

XATTR = "system.posix_acl_access"
_VERSION = 2
_USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 2, 4, 8, 16, 32


def read(file: bytes | int, *, follows: bool = False) -> bytes | None:
    """Return the list of a file (its path or descriptor); None if it has none, or the filesystem
    none at all.
    """
    try:
        return os.getxattr(file, XATTR, follow_symlinks=follows or isinstance(file, int))
    except OSError:
        return None


def narrowed(mode: int, acl: bytes) -> int:
    """Return ``mode`` with those group bits alone that also each named user has, and the same for
    others.

    Whoever is not named counts as before; one who is named is in the group, in none of the groups,
    or the owner.
    """
    (version,) = struct.unpack_from("<I", acl)
    entries = [(tag, rights) for tag, rights, _ in struct.iter_unpack("<HHI", acl[4:])]
    if version != _VERSION:
        return mode & ~0o077
    mask = next((rights for tag, rights in entries if tag == _MASK), 7)
    group, others = mode >> 3 & 7, mode & 7
    for tag, rights in entries:
        if tag in (_USER, _GROUP_OBJ):
            group &= rights & mask
        if tag in (_USER, _GROUP):
            others &= rights & mask
        if tag == _OTHER:
            others &= rights
    return mode & ~0o077 | group << 3 | others
