"""The kernel's FUSE protocol as far as the view speaks it: numbers and layouts of
``include/uapi/linux/fuse.h``.

All is in native byte order and without padding of the compiler's own.  A request is a header, a
body of its kind, and names that end with a zero byte.
"""

from __future__ import annotations

import enum
from struct import Struct
from typing import Final


class Opcode(enum.IntEnum):
    """The kinds of requests."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45
    LSEEK = 46
    COPY_FILE_RANGE = 47
    TMPFILE = 51
    STATX = 52


OPCODES: Final = 64
"""More than there are kinds of requests."""


class NoticeCode(enum.IntEnum):
    """What the kernel is told without having asked."""

    INVAL_INODE = 2
    INVAL_ENTRY = 3


class Init(enum.IntFlag):
    """What a kernel offers as a mount begins, and what of it is accepted."""

    ASYNC_READ = 1 << 0
    ATOMIC_O_TRUNC = 1 << 3
    EXPORT_SUPPORT = 1 << 4
    BIG_WRITES = 1 << 5
    DONT_MASK = 1 << 6
    AUTO_INVAL_DATA = 1 << 12
    DO_READDIRPLUS = 1 << 13
    ASYNC_DIO = 1 << 15
    PARALLEL_DIROPS = 1 << 18
    POSIX_ACL = 1 << 20
    MAX_PAGES = 1 << 22
    CACHE_SYMLINKS = 1 << 23
    EXPLICIT_INVAL_DATA = 1 << 25
    HANDLE_KILLPRIV_V2 = 1 << 28
    SETXATTR_EXT = 1 << 29
    INIT_EXT = 1 << 30


MAJOR: Final = 7
MINOR: Final = 39
"""The version that we speak: Linux 6.6's.  A younger kernel speaks it, too, and what an older one
does not know it does not ask for.
"""

# Parts of the kernel's messages.

IN: Final = Struct("=4xIQQIII4x")
"""``fuse_in_header`` without its length: opcode, unique, node, uid, gid, pid."""
IN_SIZE: Final = 40
HANDLE: Final = Struct("=Q")
"""Of release, releasedir and fsync; the directory of a link or rename; the count of a forget."""
OPEN_IN: Final = Struct("=II")
"""Flags of the open file, and of the kernel's own."""
CREATE_IN: Final = Struct("=IIII")
MKNOD_IN: Final = Struct("=III")
MKDIR_IN: Final = Struct("=II")
"""Each ends with the umask of whoever makes it."""
RENAME2_IN: Final = Struct("=QI")
IO_IN: Final = Struct("=QQI")
"""Of read, write and readdir: handle, offset, size."""
WRITE_IN: Final = Struct("=QQII8xI")
"""handle, offset, size, flags of the kernel's own, flags of the open file"""
WRITE_DATA_AT: Final = IN_SIZE + 40
SETATTR_IN: Final = Struct("=I4xQQ8xqqqIIIIIII")
"""valid, handle, size, atime, mtime, ctime, their nanoseconds, mode, unused, uid, gid."""
SETXATTR_IN: Final = Struct("=II")
SETXATTR_EXT_IN: Final = Struct("=III4x")
"""With flags of the kernel's own, if that is agreed."""
GETXATTR_IN: Final = Struct("=I")
FORGETS_IN: Final = Struct("=I")
FORGET_ONE: Final = Struct("=QQ")
FALLOCATE_IN: Final = Struct("=QQQI")
COPY_FILE_RANGE_IN: Final = Struct("=QQQQQQQ")
LSEEK_IN: Final = Struct("=QqI")
INIT_IN: Final = Struct("=IIII")
INTERRUPT_IN: Final = Struct("=Q")


class Valid:
    """Which fields of a setattr count.  Plain numbers, as an ``IntFlag`` makes an object of each
    test.
    """

    MODE: Final = 1 << 0
    UID: Final = 1 << 1
    GID: Final = 1 << 2
    SIZE: Final = 1 << 3
    ATIME: Final = 1 << 4
    MTIME: Final = 1 << 5
    HANDLE: Final = 1 << 6
    ATIME_NOW: Final = 1 << 7
    MTIME_NOW: Final = 1 << 8
    KILL_SUIDGID: Final = 1 << 11


WRITE_CACHE: Final = 1 << 0
"""Of a write: the kernel writes out pages of a mapping, by whichever open file it finds."""
OPEN_KILL_SUIDGID: Final = 1 << 0
"""Of an open or create that empties a file: by somebody who may not keep setuid and setgid bits."""
WRITE_KILL_SUIDGID: Final = 1 << 2
"""Of a write: by somebody who may not keep setuid and setgid bits."""
SETXATTR_ACL_KILL_SGID: Final = 1 << 0
"""Of a setxattr: an access control list, by somebody who may not keep the setgid bit."""


# Answers, each with its header: length, negative errno, unique.

_ATTR: Final = (
    "QQQqqqIIIIIIIIII"  # ino size blocks a- m- ctime, their nanoseconds, mode nlink uid gid rdev blksize flags
)
_ENTRY: Final = "QQQQII" + _ATTR  # node generation name's and attributes' lifetime, their nanoseconds
OUT: Final = Struct("=IiQ")
OUT_SIZE: Final = 16
ENTRY_OUT: Final = Struct("=IiQ" + _ENTRY)
CREATE_OUT: Final = Struct("=IiQ" + _ENTRY + "QII")
ATTR_OUT: Final = Struct("=IiQQII" + _ATTR)
STATX_OUT: Final = Struct("=IiQ" + "QII16x" + "IIQIIIH2xQQQQ" + "qI4x" * 4 + "IIII112x")
"""attributes' lifetime, its nanoseconds, flags; mask blksize attributes nlink uid gid mode ino size
blocks attributes' mask; atime, birth, ctime, mtime with nanoseconds; numbers of device and disk
"""
STATX_BASIC: Final = 0x7FF
STATX_BIRTH: Final = 0x800
OPEN_OUT: Final = Struct("=IiQQII")
COUNT_OUT: Final = Struct("=IiQII")
"""Of write, copy_file_range, getxattr and listxattr: a number of bytes."""
OFFSET_OUT: Final = Struct("=IiQQ")
STATFS_OUT: Final = Struct("=IiQQQQQQIII28x")
"""blocks bfree bavail files ffree, bsize namelen frsize"""
INIT_OUT: Final = Struct("=IiQIIIIHHIIHHI28x")
"""major minor max_readahead flags, max_background congestion_threshold, max_write time_gran,
max_pages map_alignment, flags2
"""
DIRENTPLUS: Final = Struct("=" + _ENTRY + "QQII")
"""Followed by the name, and zero bytes to a multiple of eight."""
DIRENTPLUS_LIFETIMES: Final = Struct("=QQII")
DIRENTPLUS_LIFETIMES_AT: Final = 16

KEEP_CACHE: Final = 1 << 1
"""Of an open: the pages that the kernel has of the file are right."""
CACHE_DIR: Final = 1 << 3
"""Of an opendir: the kernel may keep the listing."""

INVAL_INODE_OUT: Final = Struct("=IiQQqq")
INVAL_ENTRY_OUT: Final = Struct("=IiQQII")
"""Followed by the name and a zero byte; last come flags."""
EXPIRE_ONLY: Final = 1
"""Of such a notice: the name is to be looked up anew, not dropped."""
