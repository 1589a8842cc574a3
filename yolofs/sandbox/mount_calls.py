"""Mounts by descriptors: what is mounted, and where, is opened without following a link, and nobody
can exchange it meanwhile.

System calls: openat2(2), open_tree(2), move_mount(2), mount_setattr(2), fsopen(2), fsconfig(2),
fsmount(2), fspick(2); Linux 5.12.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Mapping

HERE = -100
"""Stands for the current directory where a descriptor of one is wanted (``AT_FDCWD``)."""
READ_ONLY, NO_SETUID, NO_DEVICES = 0x01, 0x02, 0x04
"""What a mount may be restricted by."""

_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _FSPICK = 428, 429, 430, 431, 432, 433
_OPENAT2, _MOUNT_SETATTR = 437, 442
"""The same on all machines."""
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_EMPTY_PATH, _MOVE_MOUNT_TO_EMPTY_PATH = 0x04, 0x40
_FS_CLOEXEC = 1
_FSPICK_EMPTY_PATH = 8
_SET_FLAG, _SET_STRING, _CREATE, _RECONFIGURE = 0, 1, 6, 7
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS = 0x02, 0x04
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


@contextlib.contextmanager
def opened(directory: int, path: bytes) -> Iterator[int]:
    """Give a descriptor (``O_PATH``) of what lies at a path, to which no link leads.

    Raises:
        OSError: it is not there, or a link is on the way.
    """
    how = _How(os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    fd = _checked(_libc.syscall(_OPENAT2, directory, path, ctypes.byref(how), size))
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def part(mount: int, path: bytes, *, with_mounts: bool = False) -> Iterator[int]:
    """Give a mount of what lies at a relative path of a mount; it is attached nowhere.
    ``with_mounts``: with other mounts below it.
    """
    flags = _AT_EMPTY_PATH | _OPEN_TREE_CLONE | os.O_CLOEXEC | (_AT_RECURSIVE if with_mounts else 0)
    with opened(mount, path) as source:
        tree = _checked(_libc.syscall(_OPEN_TREE, source, b"", flags))
        try:
            yield tree
        finally:
            os.close(tree)


def restrict(mount: int, by: int) -> None:
    """Restrict a mount, which has nothing mounted below."""
    wanted = _Attributes(by)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    _checked(_libc.syscall(_MOUNT_SETATTR, mount, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), size))


@contextlib.contextmanager
def filesystem(kind: bytes, options: Mapping[str, bytes], *, is_read_only: bool = True) -> Iterator[int]:
    """Give a mount of a new filesystem, which is mounted nowhere yet."""
    context = _checked(_libc.syscall(_FSOPEN, kind, _FS_CLOEXEC))
    try:
        for name, value in options.items():
            _configure(context, _SET_STRING, name.encode(), value[:255])
        if is_read_only:
            _configure(context, _SET_FLAG, b"ro", None)
        _configure(context, _CREATE, None, None)
        attributes = NO_SETUID | NO_DEVICES | (READ_ONLY if is_read_only else 0)
        mount = _checked(_libc.syscall(_FSMOUNT, context, _FS_CLOEXEC, attributes))
    finally:
        os.close(context)
    try:
        yield mount
    finally:
        os.close(mount)


def mount_at(mount: int, path: bytes) -> None:
    """Mount at a path, over what is there."""
    _checked(_libc.syscall(_MOVE_MOUNT, mount, b"", HERE, path, _MOVE_MOUNT_FROM_EMPTY_PATH))


def mount_on(mount: int, place: int) -> None:
    """Mount over what a descriptor stands for."""
    flags = _MOVE_MOUNT_FROM_EMPTY_PATH | _MOVE_MOUNT_TO_EMPTY_PATH
    _checked(_libc.syscall(_MOVE_MOUNT, mount, b"", place, b"", flags))


def reconfigurable(mount: int) -> int:
    """Return a descriptor for :func:`reconfigure` of the filesystem that is mounted."""
    return _checked(_libc.syscall(_FSPICK, mount, b"", _FS_CLOEXEC | _FSPICK_EMPTY_PATH))


def reconfigure(handle: int) -> None:
    """Have a read-only filesystem be configured again, as it is.

    Raises:
        OSError: it is not there any more.
    """
    _configure(handle, _SET_FLAG, b"ro", None)
    _configure(handle, _RECONFIGURE, None, None)


def _configure(context: int, command: int, name: bytes | None, value: bytes | None) -> None:
    _checked(_libc.syscall(_FSCONFIG, context, command, name, value, 0))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
