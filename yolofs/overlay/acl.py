"""Access control lists, in the form of the extended attributes that hold them.

Unless it is agreed otherwise, the kernel judges by mode bits alone in a FUSE mount.  The mode of a
file with a list says too much: the group's bits are the list's mask.  With ``user:alice:rw`` on a
file of mode 0600, the whole group would get in.  :func:`narrowed` are bits that let nobody in whom
a list keeps out.

Where the kernel does judge by lists, what is made in a directory with a default list gets its own
one from us (:func:`inherited`).
"""

from __future__ import annotations

import errno
import os
import struct

from yolofs.store.copying import at
from yolofs.system.syscalls import AttributeReader

XATTR = "system.posix_acl_access"
DEFAULT_XATTR = "system.posix_acl_default"
NAMES = frozenset([os.fsencode(XATTR), os.fsencode(DEFAULT_XATTR)])
_VERSION = 2
_HEAD, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER_OBJ = 1
_USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 2, 4, 8, 16, 32


def read(file: bytes | int, *, follows: bool = False) -> bytes | None:
    """Return the list of a file (its path or descriptor); None if it has none, or the filesystem
    none at all.
    """
    try:
        return os.getxattr(file, XATTR, follow_symlinks=follows or isinstance(file, int))
    except OSError:
        return None


class AclReader:
    """Reads the lists of names in open directories.  For one thread."""

    def __init__(self) -> None:
        self._reader: AttributeReader | None = AttributeReader(XATTR.encode())

    def read(self, directory: int, name: bytes) -> bytes | None:
        """Return the list of a name in an open directory, as :func:`read`."""
        if self._reader is not None:
            try:
                return self._reader.read(directory, name)
            except OSError as error:
                if error.errno == errno.ENOSYS:
                    self._reader = None
        return read(at(directory, name))


def narrowed(mode: int, acl: bytes) -> int:
    """Return ``mode`` with those group bits alone that also each named user has, and the same for
    others.

    Whoever is not named counts as before; one who is named is in the group, in none of the groups,
    or the owner.
    """
    (version,) = _HEAD.unpack_from(acl)
    entries = [(tag, rights) for tag, rights, _ in _ENTRY.iter_unpack(acl[_HEAD.size :])]
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


def inherited(default: bytes, mode: int) -> tuple[int, bytes | None]:
    """Return the permission bits and the list of what is made with ``mode`` in a directory with a
    default list.

    Nobody gets more than both allow.  There is no list where the bits say all.
    """
    entries = list(_ENTRY.iter_unpack(default[_HEAD.size :]))
    has_mask = any(tag == _MASK for tag, _, _ in entries)
    shifts = {_USER_OBJ: 6, _MASK if has_mask else _GROUP_OBJ: 3, _OTHER: 0}
    own = bytearray(default[: _HEAD.size])
    for tag, rights, number in entries:
        shift = shifts.get(tag)
        allowed = rights if shift is None else rights & mode >> shift
        if shift is not None:
            mode = mode & ~(7 << shift) | allowed << shift
        own += _ENTRY.pack(tag, allowed, number)
    is_plain = all(tag in (_USER_OBJ, _GROUP_OBJ, _OTHER) for tag, _, _ in entries)
    return mode, None if is_plain else bytes(own)
