"""Which extended attributes a file is known not to have, and that it lends nobody's rights.

The kernel asks for a file's capability before it writes, and for access control lists when it
judges; and each write of an ordinary user is to take setuid and setgid bits away.  Hardly a file
has any of these, and to look takes longer than all else of the answer.  So it is kept beside the
inode of which version of a file that was seen: what is staged, which only the view changes, or the
base file at a ctime.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from yolofs.overlay import acl
from yolofs.overlay.inodes import Inode
from yolofs.state.tree import Staged

CAPABILITY: Final = 1
ACL: Final = 2
DEFAULT_ACL: Final = 4
SETUID: Final = 8
"""Setuid and setgid bits, which are none of the extended attributes; kept of what is staged."""
ALL: Final = CAPABILITY | ACL | DEFAULT_ACL
BITS: Final = {
    b"security.capability": CAPABILITY,
    os.fsencode(acl.XATTR): ACL,
    os.fsencode(acl.DEFAULT_XATTR): DEFAULT_ACL,
}
"""The attributes that this is kept of, by their names."""


def note(inode: Inode, bits: int, version: Staged | int) -> None:
    """Note that a version of a file does not have some attributes."""
    if inode.lacks_at != version:
        inode.lacks, inode.lacks_at = 0, version
    inode.lacks |= bits


def lacks(inode: Inode, bits: int, version: Staged | int) -> bool:
    """Tell whether a version of a file is known not to have an attribute."""
    return inode.lacks & bits != 0 and inode.lacks_at == version


def missing(names: Iterable[str]) -> int:
    """Return which attributes are not among those named."""
    bits = ALL
    for name in names:
        bits &= ~BITS.get(os.fsencode(name), 0)
    return bits
