"""What is agreed with the kernel as a mount begins."""

from __future__ import annotations

import errno
import os
from typing import Literal

from yolofs.fuse.direct.kernel_protocol import IN_SIZE, INIT_IN, INIT_OUT, MAJOR, MINOR, Init

MAX_WRITE = 1 << 20
"""The most bytes of a write."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_LEAST_MINOR = 23
"""From Linux 3.15 on the messages look as we take them."""
_NEEDED = Init.DO_READDIRPLUS | Init.BIG_WRITES
_WANTED = (
    _NEEDED
    | Init.ASYNC_READ
    | Init.ATOMIC_O_TRUNC
    | Init.EXPORT_SUPPORT
    | Init.ASYNC_DIO
    | Init.PARALLEL_DIROPS
    | Init.MAX_PAGES
    | Init.CACHE_SYMLINKS
    | Init.INIT_EXT
)
"""Left out on purpose: ``WRITEBACK_CACHE`` (``docs/design/kernel-options.md``), ``NO_OPEN_SUPPORT``
and ``NO_OPENDIR_SUPPORT``, as the gate looks at each open.
"""


_LISTS = Init.POSIX_ACL | Init.DONT_MASK
"""Both are needed for access control lists that the kernel judges by: what is made in a directory
gets its list from us, and so its mode.
"""
_WITH_XATTRS = Init.HANDLE_KILLPRIV_V2 | Init.SETXATTR_EXT
"""A kernel that lacks these takes setuid bits away by itself."""


def serves_xattrs(message: bytearray, setting: bool | Literal["auto"]) -> bool:
    """Tell whether extended attributes are served to the kernel that has sent its first message.

    A kernel that keeps to itself what a write takes away asks for ``security.capability`` before
    each, so with "auto" it gets none.
    """
    if setting == "auto":
        return bool(INIT_IN.unpack_from(message, IN_SIZE)[3] & Init.HANDLE_KILLPRIV_V2)
    return setting


def answer_init(unique: int, message: bytearray, *, drops_pages_itself: bool, xattrs: bool) -> tuple[bytes, Init]:
    """Return the answer to the kernel's first message, and what is agreed.

    With ``xattrs`` (:func:`serves_xattrs`) we take away what a write takes away, which saves the
    kernel to ask for ``security.capability`` before each; and the kernel judges by access control
    lists.

    Raises:
        OSError: EPROTO, it speaks another version.
    """
    major, minor, readahead, offered = INIT_IN.unpack_from(message, IN_SIZE)
    if major != MAJOR or minor < _LEAST_MINOR or offered & _NEEDED != _NEEDED:
        raise OSError(errno.EPROTO, f"the kernel speaks version {major}.{minor} of FUSE's protocol")
    agreed = offered & _WANTED
    leaves_pages = offered & Init.EXPLICIT_INVAL_DATA and not drops_pages_itself
    agreed |= Init.EXPLICIT_INVAL_DATA if leaves_pages else offered & Init.AUTO_INVAL_DATA
    if xattrs:
        agreed |= offered & _WITH_XATTRS
        if offered & _LISTS == _LISTS:
            agreed |= _LISTS
    answer = INIT_OUT.pack(
        INIT_OUT.size, 0, unique, MAJOR, min(minor, MINOR), readahead, agreed, 0, 0, MAX_WRITE, 1,
        MAX_WRITE // _PAGE_SIZE, 0, 0,
    )  # fmt: skip
    return answer, Init(agreed)
