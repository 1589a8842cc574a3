"""Making a file of the store anew in a folder of the commit.

That is what a commit mostly does, for tens of thousands of files, and a system call takes as long
as ten lines around it.  So a call is left out here if an earlier one has shown that it would change
nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from yolofs.store import copying, file_data
from yolofs.store.interfaces import StoreFiles

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_inode(store: StoreFiles, ino: int) -> copying.CopySource:
    """Open a store inode to be copied; the caller closes it.

    Raises:
        OSError: it cannot be read.
    """
    path = store.path(ino)
    st = store.lstat(ino)
    if not stat.S_ISREG(st.st_mode):
        target = os.readlink(path) if stat.S_ISLNK(st.st_mode) else b""
        return copying.CopySource(copying.read_metadata(path, st=st), target=target)
    fd = _open_file(store, ino)
    try:
        return copying.CopySource(copying.read_metadata(fd, st=st), fd=fd)
    except BaseException:
        os.close(fd)
        raise


def _open_file(store: StoreFiles, ino: int) -> int:
    try:
        return store.open(ino, os.O_RDONLY | os.O_NOATIME)  # else the disk has to write an access time for each
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        return store.open(ino, os.O_RDONLY)  # another user's: only its owner may leave the access time alone


def is_plain(folder: int) -> bool:
    """Tell whether an open folder is closed to others and passes on nothing to what is made in
    it.
    """
    st = os.fstat(folder)
    return st.st_uid == os.geteuid() and not st.st_mode & 0o077 and copying.has_only_labels(folder)


class MadeFile(NamedTuple):
    """A file that was made just now."""

    left_out: tuple[str, ...]
    """What could not be carried over."""
    st: os.stat_result


def make_file(source: copying.CopySource, folder: int, name: bytes) -> MadeFile:
    """Make ``name`` in an open folder, which :func:`is_plain`, a copy of a regular file.

    As nobody else gets at it there, it may have its mode from the beginning.

    Raises:
        OSError: it cannot be written; nothing is left then.
    """
    wanted = source.metadata
    fd = os.open(name, _NEW, stat.S_IMODE(wanted.st.st_mode) & 0o777 | 0o600, dir_fd=folder)
    try:
        if not file_data.copy_small(source.fd, fd, wanted.st, wanted.st.st_size):
            file_data.copy_data(source.fd, fd, wanted.st.st_size)
        left_out: tuple[str, ...] = () if copying.may_set_times(fd, wanted.st) else ("times",)
        st = os.fstat(fd)
        if wanted.xattrs or wanted.unread or _mode_and_owner(st) != _mode_and_owner(wanted.st):
            left_out = copying.write_metadata(fd, wanted)
            st = os.fstat(fd)
        return MadeFile(left_out, st)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(fd)


def _mode_and_owner(st: os.stat_result) -> tuple[int, int, int]:
    return st.st_mode, st.st_uid, st.st_gid
