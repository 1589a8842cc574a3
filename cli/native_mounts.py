"""Mounting what comes straight from base over the view, before bubblewrap makes that the root and takes it along.

bubblewrap could bind directories itself, but reads the whole mount table anew for each, and follows every symbolic link
that it is to put something over.  System calls: openat2(2), open_tree(2), mount_setattr(2), move_mount(2); Linux 5.12.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator

_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
"""The same on all machines."""
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_EMPTY_PATHS = 0x04 | 0x40
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS = 0x02, 0x04
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 0x01, 0x02, 0x04
_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """``struct open_how``."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _Attributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def mount_over(view: bytes, paths: Iterable[bytes]) -> None:
    """Mount directories, files and symbolic links over what a view shows at the same paths, read-only.

    For a process in a mount namespace of its own (:func:`yolofs.cli.namespaces.leave_mounts`).  ``view`` is the
    mountpoint of a view of ``/``; no path leads through a symbolic link, in base and in the view.  What cannot be
    mounted stays as the view shows it.
    """
    for path in paths:
        with contextlib.suppress(OSError), _copied(path) as tree, _opened(view + path) as place:
            _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", place, b"", _MOVE_MOUNT_EMPTY_PATHS))


def try_copy() -> None:
    """Do what :func:`mount_over` does, short of mounting anything anywhere.

    Raises:
        OSError: this machine forbids it, or its Linux is too old.
    """
    with _copied(os.fsencode(os.path.realpath(__file__))):
        pass


@contextlib.contextmanager
def _copied(path: bytes) -> Iterator[int]:
    """Give a mount of what lies at a path, which is mounted nowhere; it has nothing of what is mounted below."""
    with _opened(path) as source:
        flags = _AT_EMPTY_PATH | _OPEN_TREE_CLONE | os.O_CLOEXEC
        tree = _checked(_libc.syscall(_OPEN_TREE, source, b"", flags))
        try:
            wanted = _Attributes(_READ_ONLY | _NO_SETUID | _NO_DEVICES)
            size = ctypes.c_size_t(ctypes.sizeof(wanted))
            _checked(_libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), size))
            yield tree
        finally:
            os.close(tree)


@contextlib.contextmanager
def _opened(path: bytes) -> Iterator[int]:
    how = _How(os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    fd = _checked(_libc.syscall(_OPENAT2, _AT_FDCWD, path, ctypes.byref(how), size))
    try:
        yield fd
    finally:
        os.close(fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
