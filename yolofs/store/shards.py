"""The directories that store inodes lie in, 256 in each: named, made, and spread over the disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import struct
import time
from collections.abc import Iterator

SHARD_BITS = 8
"""The shard of a store inode is its number without this many bits."""
_ACL_DEFAULT = "system.posix_acl_default"
_GET_FLAGS = 0x80086601 if struct.calcsize("l") == 8 else 0x80046601  # <linux/fs.h>: FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
_SET_FLAGS = 0x40086602 if struct.calcsize("l") == 8 else 0x40046602
_TOP_OF_HIERARCHIES = 0x20000  # FS_TOPDIR_FL, chattr +T
_NEW_SHARD = b"new-"
_is_new_shard = re.compile(rb"new-[0-9a-f]{16}").fullmatch
_is_shard = re.compile(rb"0[0-9a-f]|[1-9a-f][0-9a-f]{1,13}").fullmatch


def path_of_shard(directory: bytes, shard: int) -> bytes:
    """Return the path of a shard below the directory that all are in."""
    return b"%b/%02x" % (directory, shard)


def make_shard(directory: bytes, shard: int) -> None:
    """Make the directory of a shard, which ext4 is to put where little was deleted lately.

    The place follows from the name that a directory is made under, and shards have the same
    names everywhere.
    """
    _spread(directory)
    made = b"%b/%b%016x" % (directory, _NEW_SHARD, time.monotonic_ns())
    make_private_directory(made)
    os.rename(made, path_of_shard(directory, shard))


def remove_unfinished(directory: bytes) -> None:
    """Remove shards whose making a crash has cut short."""
    for name in os.listdir(directory):
        if _is_new_shard(name):
            with contextlib.suppress(OSError):  # ENOTEMPTY: it is not ours
                os.rmdir(os.path.join(directory, name))


def list_shards(directory: bytes) -> Iterator[int]:
    """Yield the numbers of the shards that there are."""
    with os.scandir(directory) as found:
        for item in found:
            if _is_shard(item.name) and item.is_dir(follow_symlinks=False):
                yield int(item.name, 16)


def make_private_directory(path: bytes) -> None:
    """Make a directory, if it is missing, and let it not pass on a group or an ACL to new files in
    it.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    with contextlib.suppress(OSError):  # ENODATA, as a rule
        os.removexattr(path, _ACL_DEFAULT)
    if stat.S_IMODE(os.stat(path).st_mode) != 0o700:  # setgid, if the parent has it
        os.chmod(path, 0o700)


def _spread(path: bytes) -> None:
    """Have ext4 put each new directory in here into another part of the disk; other filesystems
    have no such flag.

    To make a file ext4 without a journal looks at each inode beside its directory that was deleted
    in the last minutes: 4 to 200 µs, if much was.
    """
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
            if not flags & _TOP_OF_HIERARCHIES:
                fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", flags | _TOP_OF_HIERARCHIES))
        finally:
            os.close(fd)
